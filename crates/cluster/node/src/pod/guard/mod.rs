//! Handles a panic of a pod's task. The panic is logged and the pod fails, so that no container
//! runs unobserved. Other pods are not affected.

use std::{
    any::Any,
    net::Ipv4Addr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use futures::FutureExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use longshore_client::{DeleteOptions, Patch};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    Shared,
    record::{self, Policy},
    resize::Resize,
    status::{self, Phase},
    worker::{self, Message},
};
use crate::{events::Note, host_ports::Rejection};

const REASON: &str = "NodeAgentError";
/// Interval of checks whether killed containers have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Delay before a failed request is retried.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Runs a pod until it is removed or the agent stops.
pub(crate) async fn run(
    shared: Arc<Shared>,
    pod: Pod,
    rejection: Option<Rejection>,
    mut messages: mpsc::UnboundedReceiver<Message>,
) {
    let work = worker::run(shared.clone(), pod.clone(), rejection, &mut messages);
    if let Some(panic) = catch_panic(work).await {
        fail_after_panic(&shared, &pod, panic, &mut messages).await;
    }
}

/// Returns the panic message if the work panicked.
async fn catch_panic(work: impl Future<Output = ()>) -> Option<String> {
    let panic = AssertUnwindSafe(work).catch_unwind().await.err()?;
    Some(panic_text(&*panic))
}

/// Fails a pod whose task panicked, and completes its deletion.
async fn fail_after_panic(
    shared: &Shared,
    pod: &Pod,
    text: String,
    messages: &mut mpsc::UnboundedReceiver<Message>,
) {
    let broken = PanickedPod::new(shared, pod);
    tracing::error!(
        pod = broken.name,
        namespace = broken.namespace,
        panic = text,
        "the task of a pod panicked; killing its containers and failing the pod"
    );
    let message = format!("the node agent failed and ended the pod's containers: {text}");
    let note = Note {
        warning: true,
        reason: REASON,
        message: message.clone(),
        container: None,
    };
    shared.events.note(pod, note);
    broken.end_containers().await;
    shared.host_ports.close(&broken.uid).await;
    broken.release();
    let mut deleting = broken.fail(&message).await;
    shared.tear_down(&broken.uid);
    loop {
        if deleting {
            broken.delete().await;
        }
        match messages.recv().await {
            Some(Message::Updated(pod)) => deleting = pod.metadata.deletion_timestamp.is_some(),
            Some(Message::Removed) => {
                shared.remove_files(&broken.uid);
                return;
            }
            None => return,
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// A pod without a task.
struct PanickedPod<'a> {
    shared: &'a Shared,
    uid: String,
    namespace: String,
    name: String,
}

impl<'a> PanickedPod<'a> {
    fn new(shared: &'a Shared, pod: &Pod) -> Self {
        let metadata = &pod.metadata;
        Self {
            shared,
            uid: metadata.uid.clone().unwrap_or_default(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }

    /// Kills all processes and waits until they have ended.
    async fn end_containers(&self) {
        let processes = self.shared.running_containers.processes(&self.uid);
        loop {
            // The tasks that wait for the processes reap them.
            let alive = processes.iter().filter_map(std::sync::Weak::upgrade);
            if alive.map(|process| process.kill()).count() == 0 {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Releases address, names and devices.
    fn release(&self) {
        let address = self.shared.running_containers.address(&self.uid).ok();
        self.shared.running_containers.removed(&self.uid);
        self.shared.hosts.remove(&self.uid);
        self.shared.devices.release(&self.uid);
        self.shared.admitted_ports.release(&self.uid);
        self.shared.allocations.release(&self.uid);
        if let Some(address) = address {
            self.shared.addresses.release(address);
        }
    }

    /// Sets the pod's phase to failed. Returns true if the pod is being deleted.
    async fn fail(&self, message: &str) -> bool {
        loop {
            match self.try_fail(message).await {
                Ok(deleting) => return deleting,
                Err(error) => {
                    tracing::warn!(pod = self.name, %error, "cannot write a pod's failure");
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
            }
        }
    }

    async fn try_fail(&self, message: &str) -> Result<bool, longshore_client::Error> {
        let pods = self.shared.cluster.pods().in_namespace(&self.namespace)?;
        let Some(found) = pods.find(&self.name).await? else {
            return Ok(false);
        };
        if found.uid() != self.uid {
            return Ok(false);
        }
        let pod: Pod = found.object()?;
        let shared = self.shared;
        let render =
            AssertUnwindSafe(|| failed_status(&pod, message, shared.address, shared.clock.now()));
        // The code that panicked may panic again.
        let status = catch_unwind(render)
            .unwrap_or_else(|_| json!({"phase": "Failed", "reason": REASON, "message": message}));
        let patch = json!({"metadata": {"uid": self.uid}, "status": status});
        let patch = Patch::strategic(patch);
        match pods.patch_status(&self.name, &patch).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
            _ => Ok(pod.metadata.deletion_timestamp.is_some()),
        }
    }

    async fn delete(&self) {
        let options = DeleteOptions {
            grace_seconds: Some(0),
            uid: Some(self.uid.clone()),
            ..Default::default()
        };
        loop {
            let deleted = match self.shared.cluster.pods().in_namespace(&self.namespace) {
                Ok(pods) => pods.delete(&self.name, &options).await,
                Err(error) => Err(error),
            };
            match deleted {
                Err(error) if !error.is_not_found() && !error.is_conflict() => {
                    tracing::warn!(pod = self.name, %error, "cannot delete a pod");
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                _ => return,
            }
        }
    }
}

/// Returns the status of a pod whose containers were killed.
fn failed_status(pod: &Pod, message: &str, host_address: Ipv4Addr, now: Timestamp) -> Value {
    let status = pod.status.as_ref();
    let conditions: Vec<Value> = status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .filter_map(|condition| serde_json::to_value(condition).ok())
        .collect();
    status::render(&status::Inputs {
        pod,
        // Records of running containers are marked as terminated.
        records: &record::records(pod, None, now),
        phase: Phase::Failed,
        policy: Policy::of(pod),
        address: status.and_then(|status| status.pod_ip.as_deref()?.parse().ok()),
        host_address,
        started: status
            .and_then(|status| status.start_time.as_ref())
            .map(|time| time.0),
        reason: Some((REASON, message.to_owned())),
        resize: &Resize::default(),
        pod_resources: None,
        is_rejected: false,
        before: &conditions,
        now,
    })
}

#[cfg(test)]
mod tests;
