//! Probes of a running container, and the effects of their results.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::{Pod, Probe};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{Role, Shared, SubtaskMessage, Worker};
use crate::{
    events::Note,
    probes::{Action, Kind, Outcome, Schedule, perform, resolve_action},
    streams::Container,
};

/// Number of attempts if a probe cannot be performed, as in the kubelet.
const ATTEMPTS: usize = 3;

/// The tasks that probe a container. Dropping them stops the probes.
#[derive(Debug, Default)]
pub(super) struct Probes {
    /// The startup probe and the liveness probe.
    checks: JoinSet<()>,
    readiness: JoinSet<()>,
}

/// A result of a probe that reached its threshold.
#[derive(Debug)]
pub(super) struct Probed {
    index: usize,
    run: u64,
    kind: Kind,
    success: bool,
}

impl Worker {
    /// Starts the probes of a container that has started to run.
    pub(super) fn start_probes(&mut self, index: usize) {
        if matches!(self.records[index].role, Role::Init | Role::Ephemeral) {
            return;
        }
        self.running_since.insert(index, Instant::now());
        if self.records[index].container.startup_probe.is_some() {
            self.start_probe(index, Kind::Startup);
        } else {
            self.start_later_probes(index);
        }
    }

    /// Starts the probes that wait for the startup probe.
    fn start_later_probes(&mut self, index: usize) {
        self.start_probe(index, Kind::Liveness);
        self.start_probe(index, Kind::Readiness);
    }

    fn start_probe(&mut self, index: usize, kind: Kind) {
        let container = &self.records[index].container;
        let Some(probe) = probe_of(container, kind) else {
            return;
        };
        let (Some(address), Some(since), Some(run)) = (
            self.address,
            self.running_since.get(&index),
            self.runs.get(&index),
        ) else {
            return;
        };
        let running = &self.shared.running_containers;
        let Ok(target) = running.container(&self.uid, &container.name) else {
            return;
        };
        let prober = Prober {
            shared: self.shared.clone(),
            target,
            action: resolve_action(probe, container, address),
            schedule: Schedule::new(kind, probe, *since),
            kind,
            index,
            run: *run,
            // Events need only the metadata.
            pod: Pod {
                metadata: self.pod.metadata.clone(),
                ..Pod::default()
            },
            container: (self.records[index].list(), container.name.clone()),
            inner: self.inner.clone(),
        };
        let probes = self.probes.entry(index).or_default();
        let tasks = match kind {
            Kind::Readiness => &mut probes.readiness,
            Kind::Startup | Kind::Liveness => &mut probes.checks,
        };
        tasks.spawn(async move {
            let probing = AssertUnwindSafe(prober.run());
            if probing.catch_unwind().await.is_err() {
                tracing::error!("a probe panicked; the container is not probed any more");
            }
        });
    }

    /// Ends the probes that could stop the container, because it is already being stopped. The
    /// readiness probe continues, as in the kubelet.
    pub(super) fn end_checks(&mut self, index: usize) {
        if let Some(probes) = self.probes.get_mut(&index) {
            probes.checks.abort_all();
        }
    }

    pub(super) fn probed(&mut self, probed: &Probed) {
        let Probed {
            index,
            run,
            kind,
            success,
        } = *probed;
        if self.runs.get(&index) != Some(&run) || !self.records[index].is_running() {
            return;
        }
        match kind {
            Kind::Readiness => self.records[index].set_readiness(success),
            Kind::Startup if success => {
                self.records[index].pass_startup();
                self.start_later_probes(index);
            }
            Kind::Startup | Kind::Liveness if success => {}
            Kind::Startup | Kind::Liveness => self.stop_after_probe(index, kind),
        }
    }

    /// Stops a container whose startup or liveness probe failed.
    fn stop_after_probe(&mut self, index: usize, kind: Kind) {
        if self.stopping.is_some() || self.stops.contains_key(&index) {
            return;
        }
        let record = &mut self.records[index];
        let restarts = record.restart_after_stop(self.policy);
        let name = record.name();
        let purpose = kind.to_string().to_lowercase();
        let message = match (record.role, restarts) {
            (Role::Sidecar, _) => format!("Init container {name} failed {purpose} probe"),
            (_, true) => format!("Container {name} failed {purpose} probe, will be restarted"),
            (_, false) => format!("Container {name} failed {purpose} probe"),
        };
        let own = probe_of(&record.container, kind)
            .and_then(|probe| probe.termination_grace_period_seconds);
        let grace = own.map_or_else(
            || self.grace(),
            |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
        );
        self.stop_container(index, grace, message);
    }
}

fn probe_of(container: &k8s_openapi::api::core::v1::Container, kind: Kind) -> Option<&Probe> {
    match kind {
        Kind::Startup => container.startup_probe.as_ref(),
        Kind::Liveness => container.liveness_probe.as_ref(),
        Kind::Readiness => container.readiness_probe.as_ref(),
    }
}

/// The task of one probe of one run of a container.
struct Prober {
    shared: Arc<Shared>,
    target: Arc<Container>,
    action: Action,
    schedule: Schedule,
    kind: Kind,
    index: usize,
    run: u64,
    pod: Pod,
    container: (&'static str, String),
    inner: mpsc::Sender<SubtaskMessage>,
}

impl Prober {
    async fn run(mut self) {
        let mut due = self.schedule.first(Instant::now());
        let mut reported = None;
        loop {
            sleep_until(due).await;
            if let Some(success) = self.attempt().await
                && let Some(success) = self.schedule.record(success)
            {
                if reported != Some(success) {
                    reported = Some(success);
                    let probed = Probed {
                        index: self.index,
                        run: self.run,
                        kind: self.kind,
                        success,
                    };
                    let sent = self.inner.send(SubtaskMessage::Probed(probed)).await;
                    if sent.is_err() {
                        return;
                    }
                }
                if self.schedule.ends_with(success) {
                    return;
                }
            }
            due = self.schedule.next(Instant::now());
        }
    }

    /// Performs the probe. Returns `None` if the probe cannot be performed.
    async fn attempt(&self) -> Option<bool> {
        let kind = self.kind;
        let (timeout, spawner) = (self.schedule.timeout, &self.shared.spawner);
        let mut result = perform(&self.action, timeout, spawner, &self.target).await;
        for _ in 1..ATTEMPTS {
            if result.is_ok() {
                break;
            }
            result = perform(&self.action, timeout, spawner, &self.target).await;
        }
        match result {
            Ok(Outcome::Success) => Some(true),
            Ok(Outcome::Warning(text)) => {
                self.note("ProbeWarning", format!("{kind} probe warning: {text}"));
                Some(true)
            }
            Ok(Outcome::Failure(text)) => {
                self.note("Unhealthy", format!("{kind} probe failed: {text}"));
                Some(false)
            }
            Err(error) => {
                let (state, text) = (error.state, error.message);
                let text = format!("{kind} probe errored and resulted in {state} state: {text}");
                self.note("Unhealthy", text);
                None
            }
        }
    }

    fn note(&self, reason: &'static str, message: String) {
        let note = Note {
            warning: true,
            reason,
            message,
            container: Some(self.container.clone()),
        };
        self.shared.events.note(&self.pod, note);
    }
}
