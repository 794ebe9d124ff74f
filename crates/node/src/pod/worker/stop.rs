//! Stops a pod's containers: TERM, the grace period, KILL; sidecars last.

use std::time::Duration;

use tokio::{sync::mpsc, time::Instant};

use super::{Role, SubtaskMessage, Worker};

/// Substitute for "never" in timers: an `Instant` has a maximum, and a grace
/// period can be any number in a manifest.
const FAR_FUTURE: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);

/// Adds a duration to the current time without overflow.
pub(super) fn later(duration: Duration) -> Instant {
    Instant::now() + duration.min(FAR_FUTURE)
}

/// Grace period for containers when the agent stops.
pub(super) const STOP_GRACE: Duration = Duration::from_secs(1);

/// Why and until when containers are being stopped.
#[derive(Debug)]
pub(super) struct Stopping {
    pub(super) kill_at: Instant,
    pub(super) killed: bool,
    pub(super) sidecars_terminated: bool,
}

impl Worker {
    pub(super) fn grace(&self) -> Duration {
        let spec = self.pod.spec.as_ref();
        let seconds = spec
            .and_then(|spec| spec.termination_grace_period_seconds)
            .unwrap_or(30);
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }

    pub(super) fn begin_stop(&mut self, grace: Duration) {
        let mut running: Vec<usize> = self.running.keys().copied().collect();
        running.sort_unstable();
        for index in running {
            let text = format!("Stopping container {}", self.records[index].name());
            self.note(false, "Killing", text, Some(index));
            if self.records[index].role != Role::Sidecar {
                self.running[&index].terminate();
            }
        }
        let kill_at = later(grace);
        self.stopping = Some(Stopping {
            kill_at,
            killed: false,
            sidecars_terminated: false,
        });
    }

    pub(super) fn continue_stopping(&mut self) {
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        let records = &self.records;
        let only_sidecars = self
            .running
            .keys()
            .all(|index| records[*index].role == Role::Sidecar);
        if only_sidecars && !stopping.sidecars_terminated {
            stopping.sidecars_terminated = true;
            self.running
                .values()
                .for_each(|process| process.terminate());
        }
        if !stopping.killed && stopping.kill_at <= Instant::now() {
            stopping.killed = true;
            self.running.values().for_each(|process| process.kill());
        }
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
