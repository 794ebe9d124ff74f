//! Processes that do not end although they were killed. Their pod remains until they have ended.

use std::time::Duration;

use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

use super::{Message, Worker};
use crate::{
    events::Note,
    pod::processes::{self, ProcessId},
    pod_threads,
};

/// The time after which an event reports why a killed container has not ended.
pub(super) const EXPECTED_END: Duration = Duration::from_secs(5);
/// Interval of checks whether the processes of an earlier agent have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

const REASON: &str = "FailedKillPod";

impl Worker {
    /// Records the first processes of the running containers.
    pub(super) fn record_processes(&self) {
        let running = self.running.values();
        let all: Vec<_> = running.filter_map(|one| ProcessId::of(one.id())).collect();
        if let Err(error) = processes::record(&self.shared.pod_folder(&self.uid), &all) {
            tracing::warn!(pod = self.name, %error, "cannot record the processes of a pod");
        }
    }

    /// Reports why a killed container has not ended.
    pub(super) fn report_unkillable(&self, index: usize) {
        let (Some(process), record) = (self.running.get(&index), &self.records[index]) else {
            return;
        };
        let (root, name) = (process.id(), record.name().to_owned());
        let container = Some((record.list(), name.clone()));
        let (shared, pod) = (self.shared.clone(), self.pod.clone());
        tokio::spawn(async move {
            let waiting = pod_threads::run(move || processes::waiting_in_kernel(root)).await;
            let cause = match waiting.ok().flatten() {
                Some(processes) => format!(
                    "its processes {processes} wait in the kernel, probably for a file system that \
                     does not answer; make it answer, or unmount it with force"
                ),
                None => "its processes have not ended yet".to_owned(),
            };
            let message = format!(
                "container {name} was killed {} s ago, but {cause}; the pod stays until they end",
                EXPECTED_END.as_secs()
            );
            tracing::warn!(pod = pod.metadata.name, "{message}");
            let note = Note {
                warning: true,
                reason: REASON,
                message,
                container,
            };
            shared.events.note(&pod, note);
        });
    }

    /// Waits for the processes of an earlier agent, which were killed with the agent. Returns true
    /// if the pod was removed in the meantime, or `None` if no more messages arrive.
    pub(super) async fn wait_for_earlier_processes(
        &mut self,
        messages: &mut mpsc::UnboundedReceiver<Message>,
    ) -> Option<bool> {
        let folder = self.shared.pod_folder(&self.uid);
        let begin = Instant::now();
        let mut is_reported = false;
        loop {
            let alive = processes::recorded(&folder);
            let Some(first) = alive.first() else {
                return Some(false);
            };
            if !is_reported && begin.elapsed() >= EXPECTED_END {
                is_reported = true;
                let text = format!(
                    "process {first} of a container was killed with the last node agent, but has \
                     not ended: it probably waits for a file system that does not answer; make it \
                     answer, or unmount it with force; the pod stays until it ends"
                );
                tracing::warn!(pod = self.name, "{text}");
                self.note(true, REASON, text, None);
            }
            tokio::select! {
                () = sleep(POLL_INTERVAL) => {}
                message = messages.recv() => match message {
                    Some(Message::Updated(pod)) => self.pod = *pod,
                    Some(Message::Removed) => return Some(true),
                    None => return None,
                },
            }
        }
    }
}
