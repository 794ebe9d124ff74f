//! Records the actions of controllers as Events. Repeated events are counted, and their number is
//! limited.

use std::{borrow::Cow, collections::HashMap, time::Duration};

use longshore_client::{Cluster, Error, Patch};
use longshore_clock::{Busy, Clock};
use longshore_model::time;
use serde_json::json;
use tokio::{sync::mpsc, time::Instant};

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Severity {
    /// An expected action.
    Normal,
    /// A problem that needs attention.
    Warning,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The object of an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Subject {
    /// The API version, such as `v1` or `batch/v1`.
    pub(crate) api_version: Cow<'static, str>,
    /// The kind, such as `Pod` or `Job`.
    pub(crate) kind: Cow<'static, str>,
    /// The object's namespace.
    pub(crate) namespace: String,
    /// The object's name.
    pub(crate) name: String,
    /// The object's UID.
    pub(crate) uid: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PendingEvent {
    component: &'static str,
    subject: Subject,
    severity: Severity,
    reason: String,
    message: String,
}

/// An event in the queue, with pending work for the clock until the event is written.
type Queued = (PendingEvent, Busy);

/// Sends events to a [`Writer`]. Never waits: events are dropped if the server is
/// too slow.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    component: &'static str,
    clock: Clock,
    notes: mpsc::Sender<Queued>,
}

impl Recorder {
    /// Returns a recorder for another component.
    pub(crate) fn named(&self, component: &'static str) -> Self {
        Self {
            component,
            clock: self.clock.clone(),
            notes: self.notes.clone(),
        }
    }

    /// Records an event.
    pub(crate) fn record_event(
        &self,
        subject: Subject,
        severity: Severity,
        reason: &str,
        message: &str,
    ) {
        let (reason, message) = (reason.to_owned(), message.to_owned());
        let note = PendingEvent {
            component: self.component,
            subject,
            severity,
            reason,
            message,
        };
        let busy = self.clock.busy("the writer of events");
        if self.notes.try_send((note, busy)).is_err() {
            tracing::debug!("dropped an event because the queue is full");
        }
    }
}

/// Writes the events of its [`Recorder`]s.
pub(crate) struct Writer {
    cluster: Cluster,
    clock: Clock,
    notes: mpsc::Receiver<Queued>,
    written: HashMap<PendingEvent, Written>,
    budget: Budget,
}

struct Written {
    name: String,
    count: u32,
}

/// The maximum number of events remembered for counting repetitions.
const MAX_REMEMBERED_EVENTS: usize = 4096;

/// Creates a recorder and its writer. The caller must run the writer.
pub(crate) fn channel(cluster: Cluster, clock: Clock) -> (Recorder, Writer) {
    let (sender, notes) = mpsc::channel(1024);
    let writer = Writer {
        cluster,
        clock: clock.clone(),
        notes,
        written: HashMap::new(),
        budget: Budget::default(),
    };
    (
        Recorder {
            component: "",
            clock,
            notes: sender,
        },
        writer,
    )
}

impl Writer {
    /// Writes events until all recorders are dropped.
    pub(crate) async fn run(mut self) {
        while let Some((note, _busy)) = self.notes.recv().await {
            if !self.budget.take(&note.subject.uid, self.clock.instant()) {
                continue;
            }
            if let Err(error) = self.write(note).await
                && !crate::refusal::is_terminating(&error)
            {
                tracing::debug!(%error, "cannot write an event");
            }
        }
    }

    async fn write(&mut self, note: PendingEvent) -> Result<(), Error> {
        let now = self.clock.now();
        // Events about objects without a namespace are in the namespace `default`.
        let namespace = match note.subject.namespace.as_str() {
            "" => "default",
            namespace => namespace,
        };
        let events = self.cluster.events().in_namespace(namespace)?;
        if let Some(written) = self.written.get_mut(&note) {
            written.count = written.count.saturating_add(1);
            let patch = json!({"count": written.count, "lastTimestamp": time::seconds(now)});
            match events.patch(&written.name, &Patch::merge(patch)).await {
                Err(error) if error.is_not_found() => {
                    self.written.remove(&note);
                }
                other => return other.map(|_| ()),
            }
        }
        let subject = &note.subject;
        // Kubernetes components also name events after the object and the time in
        // hexadecimal.
        let name = format!("{}.{:x}", subject.name, self.clock.unique_nanoseconds());
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": subject.api_version, "kind": subject.kind,
                "namespace": subject.namespace, "name": subject.name, "uid": subject.uid,
            },
            "type": note.severity.as_str(),
            "reason": note.reason,
            "message": note.message,
            "count": 1,
            "firstTimestamp": time::seconds(now),
            "lastTimestamp": time::seconds(now),
            "eventTime": null,
            "source": {"component": note.component},
            "reportingComponent": note.component,
            "reportingInstance": "",
        });
        events.create(&event).await?;
        if self.written.len() >= MAX_REMEMBERED_EVENTS {
            self.written.clear();
        }
        self.written.insert(note, Written { name, count: 1 });
        Ok(())
    }
}

/// Limits the events for each object: 25 at once, then one every 5 minutes, as in
/// Kubernetes.
#[derive(Debug, Default)]
struct Budget {
    spent: HashMap<String, (u32, Instant)>,
}

const BURST: u32 = 25;
const REFILL: Duration = Duration::from_secs(300);

impl Budget {
    /// Returns true if one more event may be recorded for the object.
    fn take(&mut self, uid: &str, now: Instant) -> bool {
        if self.spent.len() >= MAX_REMEMBERED_EVENTS {
            self.spent
                .retain(|_, (_, last)| now.duration_since(*last) < REFILL);
        }
        let (spent, last) = self.spent.entry(uid.to_owned()).or_insert((0, now));
        let refills = now.duration_since(*last).as_secs() / REFILL.as_secs();
        if refills > 0 {
            *spent = spent.saturating_sub(u32::try_from(refills).unwrap_or(u32::MAX));
            *last = now;
        }
        if *spent >= BURST {
            return false;
        }
        *spent += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_gets_25_events_and_then_one_every_five_minutes() {
        let now = Instant::now();
        let mut budget = Budget::default();
        assert_eq!((0..40).filter(|_| budget.take("a", now)).count(), 25);
        assert!(budget.take("b", now));
        assert!(!budget.take("a", now + Duration::from_secs(299)));
        let later = now + Duration::from_secs(601);
        assert_eq!((0..9).filter(|_| budget.take("a", later)).count(), 2);
    }
}
