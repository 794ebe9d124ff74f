//! The readers of a run's logs: one per container, which sends its lines as events.

use std::collections::{BTreeMap, BTreeSet};

use longshore_diagnosis::names::Task;
use tokio::{sync::watch, task::JoinSet};

use super::{
    liveness::Source,
    reader::{Reader, ReaderContext},
    turns::{self, Turns},
};

/// A container whose log is read.
pub(super) struct Container {
    /// The pod's UID and name.
    pub(super) uid: String,
    pub(super) pod: String,
    pub(super) task: Task,
    /// The number of the pod's attempt of the task, from 1.
    pub(super) attempt: u32,
    pub(super) name: String,
    /// True for the container of the command.
    pub(super) is_main: bool,
}

/// The result of a reader.
struct LogEnd {
    uid: String,
    container: String,
    last_line: Option<String>,
}

/// The readers, and the results of their reading.
pub(super) struct Logs {
    /// The context of the readers. `None` if logs are not read.
    context: Option<ReaderContext>,
    readers: JoinSet<LogEnd>,
    /// Logs that are being read, by pod and container, with the numbers of their attempts.
    open: BTreeMap<(String, String), (Source, u32)>,
    /// The last line of each log that was read, by pod.
    last_lines: BTreeMap<String, String>,
    /// The attempts of each task's containers, one after the other.
    turns: Turns<(Task, String)>,
    /// Notifies readers that their pod has ended.
    over: BTreeMap<String, watch::Sender<bool>>,
}

impl Logs {
    pub(super) fn new(context: Option<ReaderContext>) -> Self {
        Self {
            context,
            readers: JoinSet::new(),
            open: BTreeMap::new(),
            last_lines: BTreeMap::new(),
            turns: Turns::new(),
            over: BTreeMap::new(),
        }
    }

    /// Starts a reader, if logs are read.
    pub(super) fn read(&mut self, container: Container) {
        let Some(context) = self.context.clone() else {
            return;
        };
        let Container {
            uid,
            pod,
            task,
            attempt,
            name,
            is_main,
        } = container;
        let mut turn = self.turns.next((task.clone(), name.clone()));
        let reader = Reader {
            context,
            pod,
            uid: uid.clone(),
            task,
            attempt,
            container: name.clone(),
            is_main,
            over: self.over_of(&uid).subscribe(),
        };
        self.open
            .insert((uid.clone(), name.clone()), (reader.source(), attempt));
        self.readers.spawn(async move {
            turn.begin(turns::LONGEST).await;
            LogEnd {
                uid,
                container: name,
                last_line: reader.read().await,
            }
        });
    }

    /// Notifies the readers of a pod that it has ended.
    pub(super) fn pod_ended(&mut self, uid: &str) {
        self.over_of(uid).send_replace(true);
    }

    fn over_of(&mut self, uid: &str) -> &watch::Sender<bool> {
        self.over
            .entry(uid.to_owned())
            .or_insert_with(|| watch::channel(false).0)
    }

    /// Waits for the end of a reader. Cancel-safe.
    pub(super) async fn reader_ended(&mut self) {
        match self.readers.join_next().await {
            Some(Ok(end)) => {
                self.open.remove(&(end.uid.clone(), end.container));
                if let Some(line) = end.last_line {
                    self.last_lines.insert(end.uid, line);
                }
            }
            // The reader panicked, so its log counts as silent.
            Some(Err(_)) => {}
            None => std::future::pending().await,
        }
    }

    /// The last line of a pod's log, once it was read to its end.
    pub(super) fn last_line(&self, uid: &str) -> Option<&str> {
        self.last_lines.get(uid).map(String::as_str)
    }

    /// Returns true if a log is being read.
    pub(super) fn is_any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns true if a log of one of these pods is being read.
    pub(super) fn is_any_open_of(&self, pods: &BTreeSet<String>) -> bool {
        self.open.keys().any(|(uid, _)| pods.contains(uid))
    }

    /// Returns true if a log of an ended pod is being read. Such a log has an end, so silence does
    /// not mean that all of it was read.
    pub(super) fn is_any_open_of_ended(&self) -> bool {
        self.open.keys().any(|(uid, _)| self.has_ended(uid))
    }

    /// Returns true if a pod has ended.
    pub(super) fn has_ended(&self, uid: &str) -> bool {
        self.over.get(uid).is_some_and(|over| *over.borrow())
    }

    /// Returns true if logs are read from their beginning, so that unread lines of earlier attempts
    /// are missing.
    pub(super) fn is_whole(&self) -> bool {
        let context = self.context.as_ref();
        context.is_some_and(|context| context.tail.is_none() && context.since.is_none())
    }

    /// Gives up the logs that are still open. Returns the UID of their pod, their source and their
    /// attempt.
    pub(super) fn give_up(&mut self) -> impl Iterator<Item = (String, Source, u32)> + use<> {
        let open = std::mem::take(&mut self.open);
        open.into_iter()
            .map(|((uid, _), (source, attempt))| (uid, source, attempt))
    }
}
