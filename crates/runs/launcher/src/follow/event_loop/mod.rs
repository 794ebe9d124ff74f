//! The event loop of a follower: passes its observations to the state machine ([`Track`]), and
//! executes the resulting steps.

mod ending;
mod existing;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use longshore_client::{Change, Changes, Cluster, kinds};
use longshore_diagnosis::{
    evidence::{JobEvidence, RunPod as _},
    track::{Seen, Step, Track},
};
use longshore_model::facts::PodFacts;
use tokio::{sync::mpsc, time::Instant};

use super::{
    Error, Event, FollowOptions, GapCause, LogGap,
    deleted::{DeletedLogs, Unseen},
    diagnosis::Diagnosis,
    lingering::Lingering,
    liveness::{Liveness, Source},
    logs::{Container, Logs},
    outage::Outage,
    reader::ReaderContext,
    recheck::Recheck,
};
use crate::run::Run;
use ending::Decided;

/// The number of tasks from which the state of a run is not evaluated after each change, because
/// the time for it is proportional to the number of tasks.
const MANY_TASKS: u32 = 64;
/// The minimum time between two evaluations of such a run.
const EVALUATION_INTERVAL: Duration = Duration::from_millis(100);
/// The interval of checks that depend on time.
const TICK: Duration = Duration::from_millis(500);

async fn wait_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// The receiver of the events was dropped.
struct ReceiverDropped;

/// The state of a follower.
pub(super) struct EventLoop {
    cluster: Cluster,
    run: Run,
    /// True to stop the rest of the run when the outcome is decided.
    stops: bool,
    track: Track,
    events: mpsc::Sender<Result<Event, Error>>,
    /// Shared with the log readers.
    liveness: Arc<Liveness>,
    logs: Logs,
    deleted: DeletedLogs,
    diagnosis: Diagnosis,
    outage: Outage,
    recheck: Recheck,
    decided: Option<Decided>,
    lingering: Lingering,
    /// True if the run has many tasks.
    is_large: bool,
    /// The time of the next evaluation, if the state has changed since the last one.
    evaluation: Option<Instant>,
    evaluated_at: Instant,
}

impl EventLoop {
    pub(super) fn new(
        cluster: &Cluster,
        run: &Run,
        options: &FollowOptions,
        events: mpsc::Sender<Result<Event, Error>>,
    ) -> Result<Self, longshore_client::Error> {
        let liveness = Arc::new(Liveness::new(options.unfinished));
        let reader = ReaderContext {
            pods: cluster.pods().in_namespace(&run.namespace)?,
            tail: options.tail,
            since: options.since,
            events: events.clone(),
            liveness: Arc::clone(&liveness),
        };
        Ok(Self {
            cluster: cluster.clone(),
            run: run.clone(),
            stops: options.stop,
            track: Track::new(run.roles.clone(), options.start_timeout, Timestamp::now()),
            events,
            liveness,
            logs: Logs::new(options.logs.then_some(reader)),
            deleted: DeletedLogs::new(cluster, run, options.logs),
            diagnosis: Diagnosis::new(),
            outage: Outage::default(),
            recheck: Recheck::default(),
            decided: None,
            lingering: Lingering::default(),
            is_large: run
                .roles
                .iter()
                .fold(0, |sum: u32, role| sum.saturating_add(role.count))
                > MANY_TASKS,
            evaluation: None,
            evaluated_at: Instant::now(),
        })
    }

    /// The state that the log readers share.
    pub(super) fn liveness(&self) -> Arc<Liveness> {
        Arc::clone(&self.liveness)
    }

    /// Runs until the outcome was reported, the connection is closed, or the receiver of the
    /// events is dropped.
    pub(super) async fn run(mut self, pods: Changes<kinds::Pod>, jobs: Changes<kinds::Job>) {
        let result = self.handle_all(pods, jobs).await;
        if let Ok(Err(error)) = result {
            // The receiver may have been dropped.
            let _ = self.events.send(Err(error)).await;
        }
    }

    async fn handle_all(
        &mut self,
        mut pods: Changes<kinds::Pod>,
        mut jobs: Changes<kinds::Job>,
    ) -> Result<Result<(), Error>, ReceiverDropped> {
        // Existing objects form the initial state.
        let mut existing_jobs = Vec::new();
        while let Some(change) = jobs.try_next() {
            self.see_job(&change).await?;
            existing_jobs.extend(change.item().typed::<JobEvidence>());
        }
        let mut existing = Vec::new();
        while let Some(change) = pods.try_next() {
            existing.push(change);
        }
        existing_jobs.retain(|job| self.run.has(&job.metadata));
        self.see_existing(existing, &existing_jobs).await?;
        self.see(Seen::Synced).await?;
        let mut ticks = tokio::time::interval(TICK);
        loop {
            if self.recheck.take_request() {
                self.list_again().await?;
            }
            if self.finish_if_done(Instant::now()).await? {
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
                () = self.logs.reader_ended() => {}
                evidence = self.diagnosis.answer() => {
                    self.see(Seen::Cluster(Box::new(evidence))).await?;
                }
                () = wait_until(self.evaluation) => self.evaluate().await?,
                _ = ticks.tick() => self.tick(Instant::now()).await?,
                () = self.events.closed() => return Err(ReceiverDropped),
            }
        }
    }

    async fn tick(&mut self, now: Instant) -> Result<(), ReceiverDropped> {
        if self.diagnosis.is_due(now) && self.track.needs_cause(Timestamp::now()) {
            self.diagnosis.start(&self.cluster, &self.run, now);
        }
        if let Some(outage) = self.outage.report(self.liveness.away()) {
            self.send(Event::Waiting(outage)).await?;
        }
        if self.stops {
            self.end_lingering(now).await;
        }
        self.see(Seen::Tick).await
    }

    async fn see_pod(&mut self, change: &Change<kinds::Pod>) -> Result<(), ReceiverDropped> {
        let seen = match change {
            Change::Upsert(item) => match item.typed::<PodFacts>() {
                Ok(pod) if !self.run.has(&pod.metadata) => return Ok(()),
                Ok(pod) => Seen::Pod(Box::new(pod)),
                Err(error) => {
                    tracing::warn!(%error, "a pod cannot be read");
                    return Ok(());
                }
            },
            Change::Gone(item) => {
                // The pod's last state may be the first in which it has started.
                if let Ok(pod) = item.typed::<PodFacts>()
                    && self.run.has(&pod.metadata)
                    && pod.has_started()
                {
                    let seen = Seen::Pod(Box::new(pod));
                    let steps = self.track.record(seen, Timestamp::now());
                    self.execute(steps).await?;
                }
                Seen::PodGone(item.uid().to_owned())
            }
        };
        self.see_change(seen).await
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
        self.deleted.see_job(&job.metadata);
        let seen = match change {
            Change::Upsert(_) => Seen::Job(Box::new(job)),
            Change::Gone(_) => Seen::JobGone(job.role().unwrap_or_default().to_owned()),
        };
        self.see_change(seen).await
    }

    /// Passes a change of an object to the state machine. The state of a large run is evaluated
    /// later, with all changes until then.
    async fn see_change(&mut self, seen: Seen) -> Result<(), ReceiverDropped> {
        if !self.is_large {
            return self.see(seen).await;
        }
        let steps = self.track.record(seen, Timestamp::now());
        self.evaluation = Some(self.evaluated_at + EVALUATION_INTERVAL);
        self.execute(steps).await
    }

    /// Passes an observation to the state machine, and executes the steps.
    async fn see(&mut self, seen: Seen) -> Result<(), ReceiverDropped> {
        let steps = self.track.record(seen, Timestamp::now());
        self.execute(steps).await?;
        self.evaluate().await
    }

    async fn evaluate(&mut self) -> Result<(), ReceiverDropped> {
        let steps = self.track.evaluate(Timestamp::now());
        (self.evaluation, self.evaluated_at) = (None, Instant::now());
        self.execute(steps).await
    }

    async fn execute(&mut self, steps: Vec<Step>) -> Result<(), ReceiverDropped> {
        for step in steps {
            match step {
                Step::Progress(progress) => self.send(Event::Progress(progress)).await?,
                Step::Waiting(why) => self.send(Event::Waiting(why)).await?,
                Step::Retry(retry) => self.send(Event::Retry(retry)).await?,
                Step::Read {
                    uid,
                    pod,
                    task,
                    attempt,
                    container,
                    is_main,
                } => self.logs.read(Container {
                    uid,
                    pod,
                    task,
                    attempt,
                    name: container,
                    is_main,
                }),
                Step::Unread { task, attempt } => {
                    match self.deleted.attempt(&task, attempt).await {
                        Unseen::Log(log) => self.deleted.read(log, &mut self.logs),
                        Unseen::Gone if self.logs.is_whole() => {
                            let cause = GapCause::PodDeleted;
                            self.report_gap((task, None), attempt, cause).await?;
                        }
                        Unseen::Gone | Unseen::Nothing => {}
                    }
                }
                Step::Ended { uid } => self.logs.pod_ended(&uid),
                // Each watch may lag behind.
                Step::Decided { .. } if !self.recheck.is_listed() => {
                    self.track.reconsider();
                    self.recheck.request();
                }
                Step::Decided { outcome, evidence } => self.decide(outcome, evidence).await,
            }
        }
        Ok(())
    }

    /// Reports that a log, or the rest of it, was not read.
    async fn report_gap(
        &self,
        (task, container): Source,
        attempt: u32,
        cause: GapCause,
    ) -> Result<(), ReceiverDropped> {
        self.liveness.record_gap();
        self.send(Event::Gap(LogGap {
            task,
            container,
            attempt,
            from: None,
            to: None,
            bytes: None,
            cause,
        }))
        .await
    }

    async fn send(&self, event: Event) -> Result<(), ReceiverDropped> {
        self.events
            .send(Ok(event))
            .await
            .map_err(|_| ReceiverDropped)
    }
}
