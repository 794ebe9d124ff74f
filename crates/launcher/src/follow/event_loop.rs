//! The event loop of a follower: passes what it observes to the state machine
//! ([`Track`]), and executes the steps that result.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use longshore_client::{Change, Changes, Cluster, kinds};
use longshore_diagnosis::{
    evidence::{JobEvidence, RunPod as _},
    outcome::{Ending, Outcome},
    track::{Seen, Step, Track},
};
use longshore_model::facts::PodFacts;
use tokio::{sync::mpsc, time::Instant};

use super::{
    Error, Event, FollowOptions, GapCause, LogGap,
    deleted::{self, DeletedLogs, Unseen},
    diagnosis::{self, Diagnosis},
    drain::{Drain, Drained, Reading},
    lingering::Lingering,
    liveness::{Liveness, Source},
    logs::{Container, Logs},
    outage::Outage,
    reader::ReaderContext,
    recheck::{self, Recheck},
    stop::{stop_jobs, stop_rest},
};
use crate::{run::Run, runs, task_logs::TaskLog};

/// The number of tasks of a run whose state is not evaluated after each change: it takes time in
/// proportion to the number of tasks.
const MANY_TASKS: u32 = 64;
/// The minimum time between two evaluations of such a run.
const EVALUATION_INTERVAL: Duration = Duration::from_millis(100);
/// The interval of checks that depend on time.
const TICK: Duration = Duration::from_millis(500);

/// What orders the attempts of a task: the time of creation has whole seconds.
fn begin(change: &Change<kinds::Pod>) -> (Option<Timestamp>, u32) {
    let pod = change.item().typed::<PodFacts>().ok();
    let order = |pod: PodFacts| (pod.metadata.creation_timestamp, pod.attempts_before());
    pod.map_or((None, 0), order)
}

fn uids<'a>(pods: &[&'a PodFacts]) -> impl Iterator<Item = &'a str> {
    pods.iter().map(|pod| pod.metadata.uid.as_str())
}

async fn wait_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// The receiver of the events was dropped.
struct ReceiverDropped;

/// The decided outcome, while the logs are read to their end.
struct Decided {
    decided: runs::Decided,
    /// The pods whose logs belong to the outcome.
    evidence: BTreeSet<String>,
    drain: Drain,
}

/// The state of a follower.
pub(super) struct EventLoop {
    cluster: Cluster,
    run: Run,
    /// Whether to stop the rest of the run when the outcome is decided.
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
    /// Whether the run has many tasks.
    is_large: bool,
    /// When to evaluate the state, if it has changed since the last time.
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
            // The receiver may be dropped.
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

    /// Passes on the pods that exist at the start, and reads the logs of those that were deleted
    /// before, in the order of their creation.
    async fn see_existing(
        &mut self,
        mut pods: Vec<Change<kinds::Pod>>,
        jobs: &[JobEvidence],
    ) -> Result<(), ReceiverDropped> {
        let facts = pods.iter().filter_map(|pod| pod.item().typed().ok());
        let facts: Vec<PodFacts> = facts
            .filter(|pod: &PodFacts| self.run.has(&pod.metadata))
            .collect();
        let found = self.deleted.find(&facts, jobs).await;
        if self.logs.is_whole() {
            let cut = found.logs.iter().filter(|log| log.is_cut);
            let cut = cut.map(|log| (log.task.clone(), log.attempt, GapCause::Rotated));
            let missing = found.missing.iter().filter_map(|missing| {
                let cause = deleted::gap(missing)?;
                Some((missing.task.clone(), missing.attempt.unwrap_or(1), cause))
            });
            for (task, attempt, cause) in cut.chain(missing) {
                self.report_gap((task, None), attempt, cause).await?;
            }
        }
        pods.sort_by_cached_key(begin);
        let mut deleted: Vec<TaskLog> = found.logs;
        deleted.retain(|log| log.is_deleted);
        deleted.sort_by_key(|log| (log.created, log.attempt));
        let mut deleted = deleted.into_iter().peekable();
        for change in &pods {
            let (created, before) = begin(change);
            let is_earlier = |log: &TaskLog| (log.created, log.attempt) <= (created, before);
            while let Some(log) = deleted.next_if(is_earlier) {
                self.deleted.read(log, &mut self.logs);
            }
            self.see_pod(change).await?;
        }
        for log in deleted {
            self.deleted.read(log, &mut self.logs);
        }
        Ok(())
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

    /// Ends pods whose command has ended a while ago, beside a container that goes on.
    async fn end_lingering(&mut self, now: Instant) {
        let pods = self.track.lingering();
        self.lingering.see(uids(&pods), now);
        let due = self.lingering.take_due(runs::LINGER, now);
        let is_due = |pod: &&PodFacts| due.contains(&pod.metadata.uid);
        for pod in pods.into_iter().filter(is_due) {
            if let Err(error) = runs::end_pod(&self.cluster, pod).await {
                let name = &pod.metadata.name;
                tracing::debug!(%error, name, "cannot end a pod whose command has ended");
                self.lingering.is_refused = true;
                if self.decided.is_none() && pod.has_failed() {
                    // Its Job counts a deleted pod as failed, too, and restarts the task.
                    runs::delete_pod(&self.cluster, pod).await;
                }
            }
        }
        if self.lingering.is_refused
            && let Some(decided) = &self.decided
        {
            self.stop_lingering(&decided.decided.outcome).await;
        }
    }

    /// Stops the Jobs of pods that linger: without the permission to end the pods, nothing else
    /// does.
    async fn stop_lingering(&self, outcome: &Outcome) {
        let pods = self.track.lingering().into_iter();
        let jobs: BTreeMap<&str, &JobEvidence> = pods
            .filter_map(|pod| self.track.job_of(pod))
            .filter(|job| !job.is_over() && !job.spec.suspend)
            .map(|job| (job.metadata.name.as_str(), job))
            .collect();
        let jobs: Vec<&JobEvidence> = jobs.into_values().collect();
        let decided = runs::Decided {
            outcome: outcome.clone(),
            by_task: false,
        };
        stop_jobs(&self.cluster, &self.run, &jobs, &decided, Timestamp::now()).await;
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
                // Its last state may be the first in which it has started.
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
    /// later, after all changes until then.
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
                // The watches may lag behind.
                Step::Decided { unseen: true, .. } if !self.recheck.is_listed() => {
                    self.track.reconsider();
                    self.recheck.request();
                }
                Step::Decided {
                    outcome, evidence, ..
                } => self.decide(outcome, evidence).await,
            }
        }
        Ok(())
    }

    async fn decide(&mut self, outcome: Outcome, evidence: BTreeSet<String>) {
        // Before the rest of the run is stopped, which deletes pods.
        let outcome = self.with_cluster_evidence(outcome).await;
        let is_bad = matches!(outcome.ending, Ending::Failed | Ending::NotStarted);
        let mut decided = runs::Decided {
            by_task: is_bad && !evidence.is_empty(),
            outcome,
        };
        if self.stops {
            (decided.outcome.began, decided.outcome.finished) = self.track.span();
            let pods = self.track.lingering();
            self.lingering.see(uids(&pods), Instant::now());
            let (active, lingers) = (self.track.going_on(), !pods.is_empty());
            // The pods and logs of commands that have ended stay when their Job is stopped.
            for pod in pods {
                let job = self.track.job_of(pod).map(|job| &job.metadata.name);
                if active
                    .iter()
                    .any(|active| Some(&active.metadata.name) == job)
                {
                    let ended = runs::end_pod(&self.cluster, pod).await;
                    self.lingering.is_refused |= ended.is_err();
                }
            }
            let (cluster, run) = (&self.cluster, &self.run);
            let now = Timestamp::now();
            let recorded = stop_rest(cluster, run, active, lingers, &decided, now).await;
            if let Some(recorded) = recorded {
                decided.outcome = recorded;
            }
            if self.lingering.is_refused {
                self.stop_lingering(&decided.outcome).await;
            }
        }
        self.decided = Some(Decided {
            decided,
            evidence,
            drain: Drain::new(self.liveness.progress(), Instant::now()),
        });
    }

    /// Decides the outcome again with evidence from the cluster.
    async fn with_cluster_evidence(&mut self, outcome: Outcome) -> Outcome {
        let Some(kind) = outcome.explanation.as_ref().map(|known| known.kind) else {
            return outcome;
        };
        let Some(evidence) = diagnosis::cluster_evidence(&self.cluster, &self.run, kind).await
        else {
            return outcome;
        };
        let decided = self.track.redecide(evidence, Timestamp::now());
        decided
            .filter(|decided| decided.ending == outcome.ending)
            .unwrap_or(outcome)
    }

    /// Lists all objects again. If the cluster does not answer, the next tick retries.
    async fn list_again(&mut self) -> Result<(), ReceiverDropped> {
        let Some(listed) = recheck::list(&self.cluster, &self.run).await else {
            return Ok(());
        };
        let there: BTreeSet<&str> = listed.pods.iter().map(|pod| pod.uid()).collect();
        for uid in self.track.pods_but(&there) {
            self.see(Seen::PodGone(uid)).await?;
        }
        for job in listed.jobs {
            self.see_job(&Change::Upsert(job)).await?;
        }
        for pod in listed.pods {
            self.see_pod(&Change::Upsert(pod)).await?;
        }
        // Only now: before this point, the state mixes old and new objects.
        self.recheck.processed();
        let seen = self.see(Seen::Tick).await;
        self.recheck.expire();
        seen
    }

    /// Reports the end once the outcome is decided and the logs have been read. Returns whether
    /// it did.
    async fn finish_if_done(&mut self, now: Instant) -> Result<bool, ReceiverDropped> {
        let Some(decided) = &mut self.decided else {
            return Ok(false);
        };
        let reading = Reading {
            progress: self.liveness.progress(),
            is_blocked: self.events.capacity() == 0,
            evidence: self.logs.is_any_open_of(&decided.evidence)
                || self.logs.is_any_open_of_ended(),
            any: self.logs.is_any_open(),
        };
        let drained = decided.drain.check(reading, now);
        let (outcome, evidence) = (decided.decided.outcome.clone(), decided.evidence.clone());
        let Drained::Done { is_quiet } = drained else {
            return Ok(false);
        };
        if self.stops && self.lingering.is_any() {
            return Ok(false);
        }
        // A silent reader of a pod that goes on has delivered everything.
        for (uid, source, attempt) in self.logs.give_up() {
            if !is_quiet || evidence.contains(&uid) || self.logs.has_ended(&uid) {
                let cause = GapCause::TimedOut;
                self.report_gap(source, attempt, cause).await?;
            }
        }
        let mut outcome = self.with_last_line(outcome, &evidence);
        outcome.gaps = self.liveness.gaps();
        (outcome.began, outcome.finished) = self.track.span();
        self.send(Event::Finished(outcome)).await?;
        Ok(true)
    }

    /// Explains a failure by the last line of the log, which may be more specific than the
    /// status.
    fn with_last_line(&self, outcome: Outcome, evidence: &BTreeSet<String>) -> Outcome {
        if !matches!(outcome.ending, Ending::Failed | Ending::NotStarted) {
            return outcome;
        }
        let name = outcome
            .explanation
            .as_ref()
            .and_then(|why| why.pod.as_ref());
        let mut pods = evidence.iter().filter_map(|uid| {
            let pod = self.track.pod(uid)?;
            (Some(&pod.metadata.name) == name && pod.has_failed()).then_some((uid, pod))
        });
        let Some((uid, pod)) = pods.next() else {
            return outcome;
        };
        let others = outcome.explanation.as_ref().map_or(0, |known| known.others);
        let explained = self
            .track
            .failed_outcome(pod, others, self.logs.last_line(uid));
        // How the run ended is decided, and perhaps recorded.
        Outcome {
            ending: outcome.ending,
            exit_code: outcome.exit_code,
            ..explained
        }
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
