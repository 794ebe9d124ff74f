//! Follows a run to its end: progress, the merged logs of all tasks, and the
//! outcome.

mod event;
mod liveness;
mod queries;
mod reader;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use longshore_client::{Cache, Change, Changes, Cluster, kinds};
use tokio::{
    sync::{mpsc, watch},
    task::{JoinHandle, JoinSet},
    time::Instant,
};

use crate::{
    evidence::{JobEvidence, PodEvidence},
    explain::Around,
    names::Task,
    run::Run,
    runs,
    track::{Seen, Step, Track},
};
pub use event::{Event, GapCause, LogGap, LogLine, Unfinished};
use liveness::{Liveness, Source};
use queries::FIRST_POLL_INTERVAL;
use reader::Reader;

pub use crate::{
    outcome::{Ending, Outcome, Retry},
    progress::{Progress, RoleProgress},
};

/// Why a run can no longer be followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The cluster returned an error or did not answer.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
    /// The connection was closed while the run was active.
    #[error(
        "the connection to the cluster was closed; the run continues, `longshore logs --follow` follows it again"
    )]
    Closed,
}

/// How to follow a run.
#[derive(Debug, Clone)]
pub struct FollowOptions {
    /// Read the tasks' logs.
    pub logs: bool,
    /// The number of existing lines of each task's log to begin with; `None` for all.
    pub tail: Option<u64>,
    /// Begin with the lines that the nodes received at this time or later; `None` for all.
    /// Kubernetes compares whole seconds, so earlier lines of that second may be included.
    pub since: Option<Timestamp>,
    /// Stop the remaining tasks when the outcome is decided: the other tasks when one failed,
    /// and the service roles when all others have ended.
    pub stop: bool,
    /// The maximum time until a task starts.
    pub start_timeout: Duration,
    /// Keep unfinished lines for [`Follow::unfinished`].
    pub unfinished: bool,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self {
            logs: true,
            tail: None,
            since: None,
            stop: true,
            start_timeout: Duration::from_secs(600),
            unfinished: false,
        }
    }
}

/// A followed run. Dropping it stops following, but not the run.
#[derive(Debug)]
pub struct Follow {
    events: mpsc::Receiver<Result<Event, Error>>,
    liveness: Arc<Liveness>,
    worker: JoinHandle<()>,
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

/// The capacity of the event queue. Log readers wait when it is full.
const QUEUE: usize = 1024;
/// How long the logs that belong to the outcome may be silent before the outcome is reported
/// without them.
const LOG_SILENCE_TIMEOUT: Duration = Duration::from_secs(10);
/// The logs of other tasks are read until they have been silent for this long.
const LOG_QUIET_PERIOD: Duration = Duration::from_secs(1);
/// The maximum time to read them.
const LOG_DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a cluster may be unreachable before following fails.
const UNREACHABLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The retry interval for a cluster that does not answer.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

impl Follow {
    /// Starts following an existing run. Waits up to a minute for a server that cannot be
    /// reached.
    ///
    /// # Errors
    /// The run's pods or Jobs cannot be listed.
    pub async fn start(
        cluster: &Cluster,
        run: &Run,
        options: FollowOptions,
    ) -> Result<Self, Error> {
        let (pods, jobs) = (run.pods(cluster)?, run.jobs(cluster)?);
        let begin = Instant::now();
        let (pods, jobs) = loop {
            match futures::try_join!(pods.cache(), jobs.cache()) {
                Err(error) if error.is_unreachable() && begin.elapsed() < UNREACHABLE_TIMEOUT => {
                    tracing::info!(%error, "the run is followed when the cluster answers again");
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                caches => break caches?,
            }
        };
        let (sender, events) = mpsc::channel(QUEUE);
        let driver = Driver::new(cluster.clone(), run.clone(), options, sender);
        let liveness = driver.liveness.clone();
        let worker = tokio::spawn(driver.run(pods, jobs));
        Ok(Self {
            events,
            liveness,
            worker,
        })
    }

    /// The next event; `None` after the last. Cancel-safe: no event is lost.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        self.events.recv().await
    }

    /// The next event, if one is available.
    pub fn try_next(&mut self) -> Option<Result<Event, Error>> {
        self.events.try_recv().ok()
    }

    /// The current state of unfinished lines, such as progress bars, if
    /// [`FollowOptions::unfinished`] is set. Container runtimes that deliver only whole lines
    /// have none.
    #[must_use]
    pub fn unfinished(&self) -> Vec<Unfinished> {
        self.liveness.unfinished()
    }
}

/// The result of a log reader.
struct LogEnd {
    uid: String,
    container: String,
    last_line: Option<String>,
}

struct Driver {
    cluster: Cluster,
    run: Run,
    options: FollowOptions,
    track: Track,
    events: mpsc::Sender<Result<Event, Error>>,
    readers: JoinSet<LogEnd>,
    /// Logs that are being read, by pod and container.
    open: BTreeMap<(String, String), Source>,
    last_lines: BTreeMap<String, String>,
    /// Notifies readers that their pod has ended.
    over: BTreeMap<String, watch::Sender<bool>>,
    /// Shared with the readers.
    liveness: Arc<Liveness>,
    /// Whether the outage of the cluster was reported.
    away_reported: bool,
    decided: Option<Decided>,
    /// The pending query, the time of the last one, and the interval until the next.
    question: JoinSet<Option<Around>>,
    asked: Option<Instant>,
    pause: Duration,
    /// Whether to list all objects again before giving up a task, and when they were listed.
    recheck: bool,
    relisted: Option<Instant>,
}

struct Decided {
    outcome: Outcome,
    evidence: BTreeSet<String>,
    /// Since when readers have made no progress, and their progress at that time.
    quiet_since: Instant,
    progress: u64,
    drained_at: Option<Instant>,
}

/// The receiver of the events was dropped.
struct ReceiverDropped;

impl Driver {
    fn new(
        cluster: Cluster,
        run: Run,
        options: FollowOptions,
        events: mpsc::Sender<Result<Event, Error>>,
    ) -> Self {
        let liveness = Arc::new(Liveness::new(options.unfinished));
        let track = Track::new(run.roles.clone(), options.start_timeout, Timestamp::now());
        Self {
            cluster,
            run,
            options,
            track,
            events,
            readers: JoinSet::new(),
            open: BTreeMap::new(),
            last_lines: BTreeMap::new(),
            over: BTreeMap::new(),
            liveness,
            away_reported: false,
            decided: None,
            question: JoinSet::new(),
            asked: None,
            pause: FIRST_POLL_INTERVAL,
            recheck: false,
            relisted: None,
        }
    }

    async fn run(mut self, pods: Cache<kinds::Pod>, jobs: Cache<kinds::Job>) {
        let result = self.drive(pods.subscribe(), jobs.subscribe()).await;
        if let Ok(Err(error)) = result {
            // The receiver may be dropped.
            let _ = self.events.send(Err(error)).await;
        }
    }

    async fn drive(
        &mut self,
        mut pods: Changes<kinds::Pod>,
        mut jobs: Changes<kinds::Job>,
    ) -> Result<Result<(), Error>, ReceiverDropped> {
        // Existing objects form the initial state.
        while let Some(change) = jobs.try_next() {
            self.see_job(&change).await?;
        }
        while let Some(change) = pods.try_next() {
            self.see_pod(&change).await?;
        }
        self.see(Seen::Synced).await?;
        let mut ticks = tokio::time::interval(Duration::from_millis(500));
        loop {
            if std::mem::take(&mut self.recheck) {
                self.relist().await?;
            }
            if self.finish_if_done().await? {
                return Ok(Ok(()));
            }
            tokio::select! {
                change = pods.next() => match change {
                    Some(change) => self.see_pod(&change).await?,
                    None => return Ok(Err(Error::Closed)),
                },
                change = jobs.next() => match change {
                    Some(change) => self.see_job(&change).await?,
                    None => return Ok(Err(Error::Closed)),
                },
                Some(ended) = self.readers.join_next() => {
                    if let Ok(end) = ended {
                        self.open.remove(&(end.uid.clone(), end.container));
                        if let Some(line) = end.last_line {
                            self.last_lines.insert(end.uid, line);
                        }
                    }
                }
                Some(answer) = self.question.join_next() => {
                    if let Ok(Some(around)) = answer {
                        self.see(Seen::Around(Box::new(around))).await?;
                    }
                }
                _ = ticks.tick() => {
                    self.ask_why();
                    self.report_away().await?;
                    self.see(Seen::Tick).await?;
                }
                () = self.events.closed() => return Err(ReceiverDropped),
            }
        }
    }

    async fn see_pod(&mut self, change: &Change<kinds::Pod>) -> Result<(), ReceiverDropped> {
        let seen = match change {
            Change::Upsert(item) => match item.typed::<PodEvidence>() {
                Ok(pod) if !self.run.has(&pod.metadata) => return Ok(()),
                Ok(pod) => Seen::Pod(Box::new(pod)),
                Err(error) => {
                    tracing::warn!(%error, "a pod cannot be read");
                    return Ok(());
                }
            },
            Change::Gone(item) => Seen::PodGone(item.uid().to_owned()),
        };
        self.see(seen).await
    }

    async fn see_job(&mut self, change: &Change<kinds::Job>) -> Result<(), ReceiverDropped> {
        let job = match change.item().typed::<JobEvidence>() {
            Ok(job) if !self.run.has(&job.metadata) => return Ok(()),
            Ok(job) => job,
            Err(error) => {
                tracing::warn!(%error, "a Job cannot be read");
                return Ok(());
            }
        };
        let seen = match change {
            Change::Upsert(_) => Seen::Job(Box::new(job)),
            Change::Gone(_) => Seen::JobGone(job.role().unwrap_or_default().to_owned()),
        };
        self.see(seen).await
    }

    async fn see(&mut self, seen: Seen) -> Result<(), ReceiverDropped> {
        for step in self.track.see(seen, Timestamp::now()) {
            match step {
                Step::Progress(progress) => self.send(Event::Progress(progress)).await?,
                Step::Waiting(why) => self.send(Event::Waiting(why)).await?,
                Step::Retry(retry) => self.send(Event::Retry(retry)).await?,
                Step::Read {
                    uid,
                    pod,
                    task,
                    container,
                    is_main,
                } => {
                    if self.options.logs {
                        self.read(uid, pod, task, container, is_main);
                    }
                }
                Step::Ended { uid } => {
                    self.over_of(&uid).send_replace(true);
                }
                // The watch may lag behind: a task may have started, or a failed pod may
                // exist.
                Step::Decided { unseen: true, .. } if !self.is_relisted() => {
                    self.track.reconsider();
                    self.recheck = true;
                }
                Step::Decided {
                    outcome, evidence, ..
                } => {
                    let outcome = self.with_cluster_facts(outcome).await;
                    let is_bad = matches!(outcome.ending, Ending::Failed | Ending::NotStarted);
                    let decided = runs::Decided {
                        by_task: is_bad && !evidence.is_empty(),
                        outcome,
                    };
                    self.stop_rest(&decided).await;
                    self.decided = Some(Decided {
                        outcome: decided.outcome,
                        evidence,
                        quiet_since: Instant::now(),
                        progress: self.liveness.progress(),
                        drained_at: None,
                    });
                }
            }
        }
        Ok(())
    }

    async fn send(&self, event: Event) -> Result<(), ReceiverDropped> {
        self.events
            .send(Ok(event))
            .await
            .map_err(|_| ReceiverDropped)
    }

    fn over_of(&mut self, uid: &str) -> &watch::Sender<bool> {
        self.over
            .entry(uid.to_owned())
            .or_insert_with(|| watch::channel(false).0)
    }

    fn read(&mut self, uid: String, pod: String, task: Task, container: String, is_main: bool) {
        let Ok(pods) = self.cluster.pods().in_namespace(&self.run.namespace) else {
            return;
        };
        let source = (task.clone(), (!is_main).then(|| container.clone()));
        self.open.insert((uid.clone(), container.clone()), source);
        let reader = Reader {
            pods,
            pod,
            task,
            container: container.clone(),
            is_main,
            tail: self.options.tail,
            since: self.options.since,
            over: self.over_of(&uid).subscribe(),
            events: self.events.clone(),
            liveness: self.liveness.clone(),
        };
        self.readers.spawn(async move {
            let last_line = reader.read().await;
            LogEnd {
                uid,
                container,
                last_line,
            }
        });
    }

    /// Stops the Jobs that are still active after the outcome is decided.
    async fn stop_rest(&self, decided: &runs::Decided) {
        let ending = decided.outcome.ending;
        if !self.options.stop || ending == Ending::Cancelled {
            return;
        }
        let now = Timestamp::now();
        let mut jobs = self.track.going_on();
        if ending == Ending::Succeeded {
            // A JobSet stops its service roles by itself.
            jobs.retain(|job| job.jobset().is_none());
        }
        let begin = Instant::now();
        let stopped = loop {
            let stopped = runs::stop_decided(&self.cluster, &self.run, &jobs, decided, now).await;
            match stopped {
                Err(error) if error.is_unreachable() && begin.elapsed() < UNREACHABLE_TIMEOUT => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                stopped => break stopped,
            }
        };
        if let Err(error) = stopped {
            tracing::warn!(%error, "cannot stop a role of the ended run");
        }
    }

    /// Reports the end once the outcome is decided and the logs have been read. Returns whether
    /// it did.
    async fn finish_if_done(&mut self) -> Result<bool, ReceiverDropped> {
        let Some(decided) = &mut self.decided else {
            return Ok(false);
        };
        let now = Instant::now();
        let progress = self.liveness.progress();
        // Readers that wait for queue capacity are not silent.
        if progress != decided.progress || self.events.capacity() == 0 {
            (decided.progress, decided.quiet_since) = (progress, now);
        }
        let waits = self
            .open
            .keys()
            .any(|(uid, _)| decided.evidence.contains(uid));
        if waits && now.duration_since(decided.quiet_since) < LOG_SILENCE_TIMEOUT {
            return Ok(false);
        }
        let drained = *decided.drained_at.get_or_insert(now);
        let quiet = now.duration_since(decided.quiet_since.max(drained));
        let parting = now.duration_since(drained);
        let is_quiet = quiet >= LOG_QUIET_PERIOD;
        if !self.open.is_empty() && !is_quiet && parting < LOG_DRAIN_TIMEOUT {
            return Ok(false);
        }
        let mut outcome = decided.outcome.clone();
        let evidence = decided.evidence.clone();
        // A silent reader has delivered everything.
        for ((uid, _), (task, container)) in std::mem::take(&mut self.open) {
            if !is_quiet || evidence.contains(&uid) {
                self.liveness.record_gap();
                let (from, to, bytes) = (None, None, None);
                self.send(Event::Gap(LogGap {
                    task,
                    container,
                    from,
                    to,
                    bytes,
                    cause: GapCause::TimedOut,
                }))
                .await?;
            }
        }
        // The log may be more specific than the status.
        let failed = evidence
            .iter()
            .next()
            .filter(|_| matches!(outcome.ending, Ending::Failed | Ending::NotStarted));
        if let Some((uid, pod)) = failed.and_then(|uid| Some((uid, self.track.pod(uid)?))) {
            let others = outcome.explanation.map_or(0, |known| known.others);
            let last_line = self.last_lines.get(uid).map(String::as_str);
            outcome = self.track.failed_outcome(pod, others, last_line);
        }
        outcome.gaps = self.liveness.gaps();
        (outcome.began, outcome.finished) = self.track.span();
        self.send(Event::Finished(outcome)).await?;
        Ok(true)
    }
}
