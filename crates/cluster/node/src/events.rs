//! Events about pods, written in the background.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    panic::AssertUnwindSafe,
};

use futures::FutureExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use longshore_client::{Cluster, Patch};
use longshore_clock::Clock;
use longshore_model::time;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Maximum number of unwritten events; further events are dropped, since they
/// are only informational.
const QUEUE_LENGTH: usize = 4096;
/// Maximum number of events that are remembered to count repetitions.
const MAX_REMEMBERED: usize = 4096;

/// The content of an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Note {
    pub(crate) warning: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// The container of the event: the field of the pod's spec that contains it, and its name.
    pub(crate) container: Option<(&'static str, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Subject {
    kind: &'static str,
    namespace: String,
    name: String,
    uid: String,
}

impl Subject {
    /// Returns the namespace of the event. Events about objects without a namespace are in
    /// `default`.
    fn event_namespace(&self) -> &str {
        match self.namespace.as_str() {
            "" => "default",
            namespace => namespace,
        }
    }
}

/// Queues events. Clones share the queue.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    queue: mpsc::Sender<(Subject, Note, Timestamp)>,
    node: String,
    clock: Clock,
}

impl Events {
    /// Creates a queue and the task that writes its events until all clones are
    /// dropped.
    pub(crate) fn new(
        cluster: Cluster,
        node: String,
        clock: Clock,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (sender, mut queue) = mpsc::channel(QUEUE_LENGTH);
        let events = Self {
            queue: sender,
            node: node.clone(),
            clock,
        };
        let work = async move {
            let mut writer = Writer {
                cluster,
                node,
                seen: HashMap::new(),
            };
            while let Some((subject, note, at)) = queue.recv().await {
                let writing = AssertUnwindSafe(writer.write(subject, note, at));
                if writing.catch_unwind().await.is_err() {
                    tracing::error!("writing an event panicked; the event is lost");
                }
            }
        };
        (events, work)
    }

    /// Queues an event about a pod.
    pub(crate) fn note(&self, pod: &Pod, note: Note) {
        let metadata = &pod.metadata;
        let subject = Subject {
            kind: "Pod",
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
        };
        self.send(subject, note);
    }

    /// Queues an event about the node. As in the kubelet, the UID is the node's name.
    pub(crate) fn note_node(&self, note: Note) {
        let subject = Subject {
            kind: "Node",
            namespace: String::new(),
            name: self.node.clone(),
            uid: self.node.clone(),
        };
        self.send(subject, note);
    }

    fn send(&self, subject: Subject, note: Note) {
        let event = (subject, note, self.clock.now());
        if self.queue.try_send(event).is_err() {
            tracing::debug!("the event queue is full; dropping an event");
        }
    }
}

struct Writer {
    cluster: Cluster,
    node: String,
    /// The names and counts of the events that were written.
    seen: HashMap<(Subject, Note), (String, u32)>,
}

impl Writer {
    async fn write(&mut self, subject: Subject, note: Note, at: Timestamp) {
        let Ok(view) = self
            .cluster
            .events()
            .in_namespace(subject.event_namespace())
        else {
            return;
        };
        let key = (subject, note);
        if let Some((name, count)) = self.seen.get_mut(&key) {
            *count = count.saturating_add(1);
            let patch = json!({"count": *count, "lastTimestamp": time::seconds(at)});
            if view.patch(name, &Patch::merge(patch)).await.is_ok() {
                return;
            }
            // The event has expired: create a new one.
        }
        let (subject, note) = &key;
        let name = event_name(subject, note, at);
        let event = render(&self.node, subject, note, &name, at);
        if let Err(error) = view.create(&event).await {
            tracing::debug!(reason = note.reason, %error, "cannot write an event");
            return;
        }
        if self.seen.len() >= MAX_REMEMBERED {
            self.seen.clear();
        }
        self.seen.insert(key, (name, 1));
    }
}

/// Returns a name in Kubernetes' format: the object's name and a number.
fn event_name(subject: &Subject, note: &Note, at: Timestamp) -> String {
    let mut hasher = DefaultHasher::new();
    (subject, note, at.as_nanosecond()).hash(&mut hasher);
    // At most 253 characters, with no '-' or '.' before the dot.
    let stem: String = subject.name.chars().take(236).collect();
    format!(
        "{}.{:016x}",
        stem.trim_end_matches(['-', '.']),
        hasher.finish()
    )
}

fn render(node: &str, subject: &Subject, note: &Note, name: &str, at: Timestamp) -> Value {
    let mut object = json!({
        "apiVersion": "v1",
        "kind": subject.kind,
        "name": subject.name,
        "uid": subject.uid,
    });
    if !subject.namespace.is_empty() {
        object["namespace"] = subject.namespace.as_str().into();
    }
    if let Some((list, container)) = &note.container {
        object["fieldPath"] = format!("spec.{list}{{{container}}}").into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": subject.event_namespace()},
        "involvedObject": object,
        "reason": note.reason,
        "message": note.message,
        "type": if note.warning { "Warning" } else { "Normal" },
        "source": {"component": "longshore-node", "host": node},
        "reportingComponent": "longshore-node",
        "reportingInstance": node,
        "firstTimestamp": time::seconds(at),
        "lastTimestamp": time::seconds(at),
        "count": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_names_its_container() {
        let subject = Subject {
            kind: "Pod",
            namespace: "n".to_owned(),
            name: "p-".repeat(130),
            uid: "u".to_owned(),
        };
        let note = Note {
            warning: true,
            reason: "Failed",
            message: "no".to_owned(),
            container: Some(("initContainers", "c".to_owned())),
        };
        let name = event_name(&subject, &note, Timestamp::UNIX_EPOCH);
        assert!(
            longshore_model::name::dns_subdomain("name", &name).is_ok(),
            "{name}"
        );
        let event = render("here", &subject, &note, &name, Timestamp::UNIX_EPOCH);
        assert_eq!(
            event["involvedObject"]["fieldPath"],
            "spec.initContainers{c}"
        );
        assert_eq!(event["type"], "Warning");
    }
}
