//! State that log readers share with the follower: their progress, outages of the cluster, and
//! unfinished lines.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use longshore_diagnosis::names::Task;
use tokio::{sync::Semaphore, time::Instant};

use super::Unfinished;

/// The number of readers that may query the first lines of a log file at the same time.
const PROBES: usize = 8;
/// The number of bytes of an unfinished line to keep.
const UNFINISHED_BYTES: usize = 4096;

/// A container's log: its task and, unless it is the command's container, the container's name.
pub(super) type Source = (Task, Option<String>);

/// State that the readers of a run's logs share.
#[derive(Debug)]
pub(super) struct Liveness {
    progress: AtomicU64,
    gaps: AtomicU32,
    /// The time since which the cluster has not answered.
    away: Mutex<Option<Instant>>,
    /// The unfinished lines. `None` if they are not requested.
    unfinished: Option<Mutex<BTreeMap<Source, String>>>,
    pub(super) probes: Semaphore,
}

impl Liveness {
    /// Creates the state. `unfinished`: true to keep unfinished lines.
    pub(super) fn new(unfinished: bool) -> Self {
        Self {
            progress: AtomicU64::new(0),
            gaps: AtomicU32::new(0),
            away: Mutex::new(None),
            unfinished: unfinished.then(Mutex::default),
            probes: Semaphore::new(PROBES),
        }
    }

    /// Records that a line was delivered, or that waiting for one is worthwhile.
    pub(super) fn record_progress(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    /// A counter that increases while readers make progress.
    pub(super) fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }

    /// Records that a gap was reported.
    pub(super) fn record_gap(&self) {
        self.gaps.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of reported gaps.
    pub(super) fn gaps(&self) -> u32 {
        self.gaps.load(Ordering::Relaxed)
    }

    /// Records that the cluster answered a request, or did not.
    pub(super) fn record_answer(&self, answered: bool) {
        let mut away = lock(&self.away);
        match answered {
            true => *away = None,
            false => {
                away.get_or_insert_with(Instant::now);
            }
        }
    }

    /// The duration of the current outage, or zero.
    pub(super) fn away(&self) -> Duration {
        lock(&self.away).map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Stores the end of an unfinished line, or removes it if it is empty.
    pub(super) fn set_unfinished(&self, source: &Source, text: &[u8]) {
        let Some(unfinished) = &self.unfinished else {
            return;
        };
        let mut unfinished = lock(unfinished);
        let text = last_state(text);
        if text.is_empty() {
            unfinished.remove(source);
        } else {
            let text = String::from_utf8_lossy(text);
            unfinished.insert(source.clone(), text.into_owned());
        }
    }

    /// The unfinished lines, by role and index.
    pub(super) fn unfinished(&self) -> Vec<Unfinished> {
        let Some(unfinished) = &self.unfinished else {
            return Vec::new();
        };
        let lines = lock(unfinished);
        let line = |((task, container), text): (&Source, &String)| Unfinished {
            task: task.clone(),
            container: container.clone(),
            text: text.clone(),
        };
        lines.iter().map(line).collect()
    }
}

/// Ignores poisoning, because each change is a single step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The text since the last carriage return that is followed by text, truncated.
fn last_state(text: &[u8]) -> &[u8] {
    let end = text.len() - text.iter().rev().take_while(|byte| **byte == b'\r').count();
    let begin = text[..end].iter().rposition(|byte| *byte == b'\r');
    let state = &text[begin.map_or(0, |at| at + 1)..end];
    &state[..state.len().min(UNFINISHED_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_state_of_a_line() {
        for (text, state) in [
            ("", ""),
            ("loading", "loading"),
            (" 1%\r 2%", " 2%"),
            ("\r 1%\r 2%\r", " 2%"),
            ("\r\r", ""),
        ] {
            assert_eq!(last_state(text.as_bytes()), state.as_bytes());
        }
        assert_eq!(last_state(&[b'x'; 10_000]).len(), UNFINISHED_BYTES);
    }

    #[test]
    fn unfinished_lines_are_kept_only_if_requested() {
        let task = Task {
            role: "main".into(),
            index: 0,
        };
        let source = (task, None);
        let (none, kept) = (Liveness::new(false), Liveness::new(true));
        for liveness in [&none, &kept] {
            liveness.set_unfinished(&source, b"10%");
        }
        assert!(none.unfinished().is_empty());
        assert_eq!(kept.unfinished()[0].text, "10%");
        kept.set_unfinished(&source, b"");
        assert!(kept.unfinished().is_empty());
    }
}
