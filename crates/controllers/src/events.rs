//! Tells what controllers do in Events: counted when repeated, never so many
//! that they get in the way.

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;
use longshore_client::{Cluster, Error, Patch};
use longshore_model::time;
use serde_json::json;
use tokio::{sync::mpsc, time::Instant};

/// Whether an event tells of a trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Severity {
    /// All is well.
    Normal,
    /// Something needs attention.
    Warning,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The object an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Subject {
    /// `v1`, `batch/v1`.
    pub(crate) api_version: &'static str,
    /// `Pod`, `Job`.
    pub(crate) kind: &'static str,
    /// Namespace.
    pub(crate) namespace: String,
    /// Name.
    pub(crate) name: String,
    /// Uid.
    pub(crate) uid: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Note {
    component: &'static str,
    subject: Subject,
    severity: Severity,
    reason: String,
    message: String,
}

/// Hands events to a [`Writer`]. Never waits: events are dropped when the
/// server is too slow to take them.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    component: &'static str,
    notes: mpsc::Sender<Note>,
}

impl Recorder {
    /// The same, under the name of another component.
    pub(crate) fn named(&self, component: &'static str) -> Self {
        Self {
            component,
            notes: self.notes.clone(),
        }
    }

    /// Tells an event.
    pub(crate) fn tell(&self, subject: Subject, severity: Severity, reason: &str, message: &str) {
        let (reason, message) = (reason.to_owned(), message.to_owned());
        let note = Note {
            component: self.component,
            subject,
            severity,
            reason,
            message,
        };
        if self.notes.try_send(note).is_err() {
            tracing::debug!("an event was dropped: too many are waiting");
        }
    }
}

/// Writes the events of its [`Recorder`]s.
pub(crate) struct Writer {
    cluster: Cluster,
    notes: mpsc::Receiver<Note>,
    written: HashMap<Note, Written>,
    budget: Budget,
}

struct Written {
    name: String,
    count: u32,
}

/// Most notes remembered in order to be counted.
const REMEMBERED: usize = 4096;

/// A recorder and its writer; the writer is to be run.
pub(crate) fn channel(cluster: Cluster) -> (Recorder, Writer) {
    let (sender, notes) = mpsc::channel(1024);
    let writer = Writer {
        cluster,
        notes,
        written: HashMap::new(),
        budget: Budget::default(),
    };
    (
        Recorder {
            component: "",
            notes: sender,
        },
        writer,
    )
}

impl Writer {
    /// Writes until all recorders are gone.
    pub(crate) async fn run(mut self) {
        while let Some(note) = self.notes.recv().await {
            if !self.budget.take(&note.subject.uid, Instant::now()) {
                continue;
            }
            if let Err(error) = self.write(note).await
                && !crate::refusal::is_terminating(&error)
            {
                tracing::debug!(%error, "an event could not be written");
            }
        }
    }

    async fn write(&mut self, note: Note) -> Result<(), Error> {
        let now = Timestamp::now();
        let events = self
            .cluster
            .events()
            .in_namespace(&note.subject.namespace)?;
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
        // As real components name events: the object and the time, in hex.
        let name = format!("{}.{:x}", subject.name, now.as_nanosecond());
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": subject.namespace},
            "involvedObject": {
                "apiVersion": subject.api_version, "kind": subject.kind,
                "namespace": subject.namespace, "name": subject.name, "uid": subject.uid,
            },
            "type": note.severity.word(),
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
        if self.written.len() >= REMEMBERED {
            self.written.clear();
        }
        self.written.insert(note, Written { name, count: 1 });
        Ok(())
    }
}

/// How many events an object may have: 25 at once, then one in 5 minutes, as
/// Kubernetes' own components hold it.
#[derive(Debug, Default)]
struct Budget {
    spent: HashMap<String, (u32, Instant)>,
}

const BURST: u32 = 25;
const REFILL: Duration = Duration::from_secs(300);

impl Budget {
    /// Whether one more event may be told of the object.
    fn take(&mut self, uid: &str, now: Instant) -> bool {
        if self.spent.len() >= REMEMBERED {
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
    fn an_object_may_tell_25_events_and_then_one_in_five_minutes() {
        let now = Instant::now();
        let mut budget = Budget::default();
        assert_eq!((0..40).filter(|_| budget.take("a", now)).count(), 25);
        assert!(budget.take("b", now));
        assert!(!budget.take("a", now + Duration::from_secs(299)));
        let later = now + Duration::from_secs(601);
        assert_eq!((0..9).filter(|_| budget.take("a", later)).count(), 2);
    }
}
