//! What becomes of a pod whose task panics: it concerns no other pod, is logged,
//! and ends the pod, so that no container goes on unobserved.

use std::{
    any::Any,
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
    status::{self, Phase},
    worker::{self, Message},
};
use crate::{events::Note, node, remover::remove_folder};

const REASON: &str = "NodeAgentError";
/// How often it is looked whether killed containers are gone.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long to wait before a request that failed is repeated.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Runs a pod until it is removed or the agent stops.
pub(crate) async fn run(
    shared: Arc<Shared>,
    pod: Pod,
    mut messages: mpsc::UnboundedReceiver<Message>,
) {
    let work = worker::run(shared.clone(), pod.clone(), &mut messages);
    if let Some(panic) = panic_of(work).await {
        ended_by_panic(&shared, &pod, panic, &mut messages).await;
    }
}

/// What the panic said that ended the work, if one did.
async fn panic_of(work: impl Future<Output = ()>) -> Option<String> {
    let panic = AssertUnwindSafe(work).catch_unwind().await.err()?;
    Some(panic_text(&*panic))
}

/// Ends a pod whose task panicked, and takes part in its deletion.
async fn ended_by_panic(
    shared: &Shared,
    pod: &Pod,
    text: String,
    messages: &mut mpsc::UnboundedReceiver<Message>,
) {
    let broken = Broken::new(shared, pod);
    tracing::error!(
        pod = broken.name,
        namespace = broken.namespace,
        panic = text,
        "the task of a pod panicked: its containers are killed and it fails"
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
                shared.logs.remove_pod(&broken.uid);
                remove_folder(&shared.pod_folder(&broken.uid));
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

/// A pod that no task looks after any more.
struct Broken<'a> {
    shared: &'a Shared,
    uid: String,
    namespace: String,
    name: String,
}

impl<'a> Broken<'a> {
    fn new(shared: &'a Shared, pod: &Pod) -> Self {
        let metadata = &pod.metadata;
        Self {
            shared,
            uid: metadata.uid.clone().unwrap_or_default(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }

    /// Kills all processes and waits until they are gone.
    async fn end_containers(&self) {
        let processes = self.shared.live.processes(&self.uid);
        loop {
            // Those who wait for a process reap it.
            let alive = processes.iter().filter_map(std::sync::Weak::upgrade);
            if alive.map(|process| process.kill()).count() == 0 {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Gives address, names and devices back.
    fn release(&self) {
        let address = self.shared.live.address(&self.uid).ok();
        self.shared.live.removed(&self.uid);
        self.shared.hosts.remove(&self.uid);
        self.shared.devices.release(&self.uid);
        if let Some(address) = address {
            self.shared.addresses.release(address);
        }
    }

    /// Writes that the pod has failed; whether it is being deleted.
    async fn fail(&self, message: &str) -> bool {
        loop {
            match self.try_fail(message).await {
                Ok(deleting) => return deleting,
                Err(error) => {
                    tracing::warn!(pod = self.name, %error, "a pod's failure was not written");
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
        let pod: Pod = found.typed()?;
        let render = AssertUnwindSafe(|| failed_status(&pod, message, Timestamp::now()));
        // What failed once may fail again.
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
                    tracing::warn!(pod = self.name, %error, "a pod was not deleted");
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                _ => return,
            }
        }
    }
}

/// The status of a pod whose containers were killed, whatever ran last.
fn failed_status(pod: &Pod, message: &str, now: Timestamp) -> Value {
    let status = pod.status.as_ref();
    let conditions: Vec<Value> = status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .filter_map(|condition| serde_json::to_value(condition).ok())
        .collect();
    status::render(&status::Inputs {
        pod,
        // What ran does not run any more.
        records: &record::records(pod, None, now),
        phase: Phase::Failed,
        policy: Policy::of(pod),
        address: status.and_then(|status| status.pod_ip.as_deref()?.parse().ok()),
        host_address: node::ADDRESS,
        started: status
            .and_then(|status| status.start_time.as_ref())
            .map(|time| time.0),
        reason: Some((REASON, message.to_owned())),
        before: &conditions,
        now,
    })
}

#[cfg(test)]
mod tests;
