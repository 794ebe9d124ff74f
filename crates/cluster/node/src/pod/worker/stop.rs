//! Stops containers: the preStop hook, TERM, the grace period, KILL. Sidecars are the last
//! containers of a pod to end.

use std::time::Duration;

use tokio::{sync::mpsc, task::JoinSet, time::Instant};

use super::{Role, SubtaskMessage, Worker, unkillable::EXPECTED_END};

/// A substitute for "never" in timers, because an `Instant` has a maximum and a grace period can be
/// any number in a manifest.
pub(super) const FAR_FUTURE: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);

/// Adds a duration to the current time without overflow.
pub(super) fn later(duration: Duration) -> Instant {
    Instant::now() + duration.min(FAR_FUTURE)
}

/// Grace period for containers when the agent stops.
pub(super) const STOP_GRACE: Duration = Duration::from_secs(1);
/// Minimum time between TERM and KILL if the container had to wait for TERM, as
/// in the kubelet.
const MINIMUM_GRACE: Duration = Duration::from_secs(2);

/// The time until which the pod's containers may end.
#[derive(Debug)]
pub(super) struct Stopping {
    pub(super) kill_at: Instant,
}

/// A container that is being stopped.
#[derive(Debug)]
pub(super) struct ContainerStop {
    kill_at: Instant,
    step: StopStep,
    killed_at: Option<Instant>,
    /// True if the container had to wait for TERM.
    waited: bool,
    /// The task of the preStop hook.
    hook: JoinSet<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopStep {
    /// The preStop hook runs.
    Hook,
    /// Waits until the containers that must end first have ended.
    Turn,
    Terminated,
    Killed,
    /// An event has reported that the container did not end.
    Reported,
}

impl ContainerStop {
    /// Returns the latest time of the next step.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.step {
            StopStep::Reported => None,
            StopStep::Killed => Some(self.killed_at? + EXPECTED_END),
            _ => Some(self.kill_at),
        }
    }

    /// The grace period can only become shorter.
    pub(super) fn shorten(&mut self, kill_at: Instant) {
        self.kill_at = self.kill_at.min(kill_at);
    }
}

impl Worker {
    pub(super) fn grace(&self) -> Duration {
        let spec = self.pod.spec.as_ref();
        let seconds = spec
            .and_then(|spec| spec.termination_grace_period_seconds)
            .unwrap_or(30);
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }

    /// Begins to stop all containers; none of them restarts.
    pub(super) fn begin_stop(&mut self, grace: Duration) {
        let mut running: Vec<usize> = self.running.keys().copied().collect();
        running.sort_unstable();
        for index in running {
            let text = format!("Stopping container {}", self.records[index].name());
            self.stop_container(index, grace, text);
        }
        let kill_at = later(grace);
        self.stopping = Some(Stopping { kill_at });
    }

    /// Begins to stop a container.
    pub(super) fn stop_container(&mut self, index: usize, grace: Duration, message: String) {
        self.note(false, "Killing", message, Some(index));
        self.end_checks(index);
        self.finish_start(index);
        let kill_at = later(grace);
        if let Some(stop) = self.stops.get_mut(&index) {
            stop.shorten(kill_at);
            return;
        }
        let hook = if grace.is_zero() {
            JoinSet::new()
        } else {
            self.run_pre_stop_hook(index)
        };
        let stop = ContainerStop {
            kill_at,
            step: if hook.is_empty() {
                StopStep::Turn
            } else {
                StopStep::Hook
            },
            killed_at: None,
            waited: !hook.is_empty(),
            hook,
        };
        self.stops.insert(index, stop);
    }

    /// Continues to stop a container whose preStop hook has ended.
    pub(super) fn pre_stop_hook_ended(&mut self, index: usize) {
        if let Some(stop) = self.stops.get_mut(&index)
            && stop.step == StopStep::Hook
        {
            stop.step = StopStep::Turn;
        }
    }

    /// Performs the steps that are due.
    pub(super) fn continue_stopping(&mut self) {
        let now = Instant::now();
        let mut indexes: Vec<usize> = self.stops.keys().copied().collect();
        indexes.sort_unstable();
        for index in indexes {
            let is_its_turn = self.is_turn_to_terminate(index);
            let (Some(stop), Some(process)) =
                (self.stops.get_mut(&index), self.running.get(&index))
            else {
                continue;
            };
            let is_late = stop.kill_at <= now;
            if stop.step == StopStep::Hook && is_late {
                stop.step = StopStep::Turn;
            }
            if stop.step == StopStep::Turn {
                if is_its_turn || is_late {
                    process.terminate();
                    stop.step = StopStep::Terminated;
                    if stop.waited {
                        stop.kill_at = stop.kill_at.max(now + MINIMUM_GRACE);
                    }
                } else {
                    stop.waited = true;
                }
            }
            if stop.step == StopStep::Terminated && stop.kill_at <= now {
                process.kill();
                stop.step = StopStep::Killed;
                stop.killed_at = Some(now);
                stop.hook.abort_all();
            }
            let is_overdue = stop.killed_at.is_some_and(|at| at + EXPECTED_END <= now);
            if stop.step == StopStep::Killed && is_overdue {
                stop.step = StopStep::Reported;
                self.report_unkillable(index);
            }
        }
    }

    /// Returns true if no container runs that must end before this one. Sidecars end after the main
    /// containers and the sidecars that started later.
    fn is_turn_to_terminate(&self, index: usize) -> bool {
        let pod_stops = self.stopping.is_some();
        if self.records[index].role != Role::Sidecar || !pod_stops {
            return true;
        }
        !self.running.keys().any(|other| {
            let ends_first = matches!(self.records[*other].role, Role::Main | Role::Sidecar);
            ends_first && *other > index
        })
    }

    pub(super) fn stop_sidecars(&mut self) {
        if !self.running.is_empty() {
            self.begin_stop(self.grace());
            self.continue_stopping();
        }
    }

    /// Stops all containers and waits until they are reaped.
    pub(super) async fn end_all(
        &mut self,
        reports: &mut mpsc::Receiver<SubtaskMessage>,
        grace: Duration,
    ) {
        self.probes.clear();
        if !grace.is_zero() {
            self.running
                .values()
                .for_each(|process| process.terminate());
            let all = async {
                while !self.running.is_empty() {
                    match reports.recv().await {
                        Some(SubtaskMessage::Ended(end)) => drop(self.running.remove(&end.index)),
                        Some(_) => {}
                        None => break,
                    }
                }
            };
            let _ = tokio::time::timeout(grace, all).await;
        }
        self.running.values().for_each(|process| process.kill());
        while !self.running.is_empty() {
            match reports.recv().await {
                Some(SubtaskMessage::Ended(end)) => drop(self.running.remove(&end.index)),
                Some(_) => {}
                None => break,
            }
        }
    }
}
