//! Describes the state of tasks in lines for the terminal. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::{Duration, Instant},
};

use longshore::launcher::{bundle::Changes, names::Task, terminal_text::escaped};

use super::versions::Version;
use crate::ui;

/// The number of changed files that a line names.
const NAMED: usize = 3;

/// An event of a task.
#[derive(Debug)]
pub(super) enum News {
    /// The tasks that run when the session begins.
    Found(Vec<Task>),
    /// The task is connected, and has the current version.
    Connected(Task),
    /// The task has executed a version.
    Done {
        task: Task,
        number: u64,
        started: bool,
        /// The changes that an earlier session had not sent, with the first version of a session.
        caught_up: Option<Changes>,
    },
    /// The task has not executed a version.
    Refused {
        task: Task,
        number: u64,
        problem: String,
    },
    /// The task cannot be reached.
    Lost { task: Task, problem: String },
    /// The task's pod was deleted.
    Gone(Task),
    /// A later session has taken over the run.
    Replaced,
}

/// The tasks, and the changes that have not been reported.
#[derive(Debug, Default)]
pub(super) struct Reporter {
    /// The number of the version that each connected task has executed.
    tasks: BTreeMap<Task, u64>,
    /// The tasks that have refused the current version.
    refused: BTreeSet<Task>,
    version: u64,
    noticed: Option<Instant>,
    changed: BTreeSet<PathBuf>,
    bytes: BTreeMap<u64, u64>,
    removed: BTreeSet<PathBuf>,
    is_reported: bool,
    /// True if the session attaches to a run that has tasks.
    attaches: bool,
    /// The tasks that the session attaches to.
    awaited: BTreeSet<Task>,
    /// True if a task restarted its command for this version.
    started: bool,
}

impl Reporter {
    pub(super) fn new() -> Self {
        Self {
            is_reported: true,
            ..Self::default()
        }
    }

    /// A session that attaches to a run. Differences are reported when all its tasks have them.
    pub(super) fn attaching() -> Self {
        Self {
            attaches: true,
            ..Self::new()
        }
    }

    /// The folder has changed, or a restart was requested.
    pub(super) fn version(&mut self, version: &Version) {
        if version.number == self.version {
            return;
        }
        self.begin(version.number, version.noticed);
        if let Some(parcel) = &version.parcel {
            self.add(&parcel.changes);
        }
    }

    fn begin(&mut self, number: u64, noticed: Instant) {
        if self.is_reported {
            self.changed.clear();
            self.removed.clear();
            self.bytes.clear();
            self.noticed = None;
        }
        self.version = number;
        // The time since the first change that was not reported.
        self.noticed.get_or_insert(noticed);
        self.is_reported = false;
        self.started = false;
        self.refused.clear();
    }

    fn add(&mut self, changes: &Changes) {
        self.changed.extend(changes.files.iter().cloned());
        self.removed.extend(changes.removed.iter().cloned());
        self.bytes.insert(self.version, changes.bytes);
    }

    /// Returns the line for an event, if it has one.
    pub(super) fn news(&mut self, news: News, now: Instant) -> Option<Line> {
        match news {
            News::Found(tasks) if self.attaches && tasks.is_empty() => Some(Line::Restarted(
                "no task runs; those that start get the current files".to_owned(),
            )),
            News::Found(tasks) => {
                if self.attaches {
                    self.awaited.extend(tasks);
                    self.begin(self.version, now);
                }
                None
            }
            News::Connected(task) => {
                self.awaited.remove(&task);
                self.tasks.insert(task, self.version);
                self.restarted(now)
            }
            News::Done {
                task,
                number,
                started,
                caught_up,
            } => {
                if let Some(changes) = caught_up.filter(|_| self.awaited.remove(&task)) {
                    self.add(&changes);
                }
                self.tasks.insert(task, number);
                self.started |= started && number == self.version;
                self.restarted(now)
            }
            News::Refused {
                task,
                number,
                problem,
            } => {
                let text = format!("{task}: the change was not applied: {}", escaped(&problem));
                self.awaited.remove(&task);
                self.tasks.insert(task.clone(), number);
                self.refused.insert(task);
                Some(Line::Warning(text))
            }
            News::Lost { task, problem } => {
                self.awaited.remove(&task);
                self.tasks.remove(&task);
                Some(Line::Warning(format!(
                    "{task} does not receive changes: {}; trying again",
                    escaped(&problem)
                )))
            }
            News::Gone(task) => {
                self.awaited.remove(&task);
                self.tasks.remove(&task);
                self.restarted(now)
            }
            // The end of the session reports it.
            News::Replaced => None,
        }
    }

    /// Returns the line about the changes, once all connected tasks have them.
    fn restarted(&mut self, now: Instant) -> Option<Line> {
        let have = self.tasks.values().all(|number| *number >= self.version);
        if self.is_reported || !have || self.tasks.is_empty() || !self.awaited.is_empty() {
            return None;
        }
        self.is_reported = true;
        let took = self
            .noticed
            .map(|noticed| now.saturating_duration_since(noticed));
        let count = match self.tasks.len() {
            1 => String::new(),
            tasks => format!(" {tasks} tasks"),
        };
        let failed = match self.refused.len() {
            0 => String::new(),
            refused => format!(", {refused} refused it"),
        };
        let what = self.what();
        let verb = match self.started {
            true => "restarted",
            false => "applied to",
        };
        Some(match what {
            None if !self.started && self.refused.is_empty() => {
                Line::Restarted("no file has changed, so no command was restarted".to_owned())
            }
            Some(what) => Line::Changed(format!(
                "{what}; {verb}{count} in {}{failed}",
                seconds(took)
            )),
            None => Line::Restarted(format!("{verb}{count} in {}{failed}", seconds(took))),
        })
    }

    /// `train.py (3 files, 12 KiB)`.
    fn what(&self) -> Option<String> {
        let gone: BTreeSet<&PathBuf> = self.removed.difference(&self.changed).collect();
        let changed = self.changed.iter().take(NAMED);
        let mut names: Vec<String> = changed
            .map(|path| escaped(&path.to_string_lossy()).into_owned())
            .collect();
        let room = NAMED.saturating_sub(names.len());
        let removed = gone.iter().take(room);
        names.extend(removed.map(|path| format!("{} removed", escaped(&path.to_string_lossy()))));
        if names.is_empty() {
            return None;
        }
        let all = (self.changed.len() + gone.len()) as u64;
        let more = match all.saturating_sub(names.len() as u64) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let bytes = self
            .bytes
            .values()
            .fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        let files = ui::count(all, "file");
        Some(format!(
            "{}{more} ({files}, {})",
            names.join(", "),
            ui::size(bytes)
        ))
    }
}

fn seconds(took: Option<Duration>) -> String {
    format!("{:.2} s", took.unwrap_or_default().as_secs_f64())
}

/// A line for the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// The changes, after which the commands were restarted.
    Changed(String),
    /// The commands were restarted without a change.
    Restarted(String),
    /// A problem.
    Warning(String),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn task(index: u32) -> Task {
        Task {
            role: "worker".to_owned(),
            index,
        }
    }

    fn changes(changed: &[&str], removed: &[&str], bytes: u64) -> Changes {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        Changes {
            changed: paths(changed),
            removed: paths(removed),
            files: paths(changed),
            bytes,
        }
    }

    fn changed(reporter: &mut Reporter, number: u64, at: Instant, changes: &Changes) {
        reporter.begin(number, at);
        reporter.add(changes);
    }

    fn done(reporter: &mut Reporter, index: u32, number: u64, now: Instant) -> Option<Line> {
        let news = News::Done {
            task: task(index),
            number,
            started: true,
            caught_up: None,
        };
        reporter.news(news, now)
    }

    #[test]
    fn a_change_is_reported_when_all_tasks_have_it() {
        let at = Instant::now();
        let later = at + Duration::from_millis(180);
        let mut reporter = Reporter::new();
        assert_eq!(done(&mut reporter, 0, 0, at), None);
        assert_eq!(done(&mut reporter, 1, 0, at), None);
        changed(&mut reporter, 1, at, &changes(&["train.py"], &[], 12 << 10));
        assert_eq!(done(&mut reporter, 0, 1, later), None);
        // A further change before the second task has the first: both are reported.
        changed(
            &mut reporter,
            2,
            later,
            &changes(&["a.py", "b.py"], &["old.py"], 1 << 10),
        );
        assert_eq!(done(&mut reporter, 0, 2, later), None);
        let line = done(&mut reporter, 1, 2, later).unwrap();
        let text = "a.py, b.py, train.py and 1 more (4 files, 13 KiB); restarted 2 tasks in 0.18 s";
        assert_eq!(line, Line::Changed(text.to_owned()));
        // Only once.
        assert_eq!(done(&mut reporter, 1, 2, later), None);
    }

    #[test]
    fn what_an_earlier_session_has_not_sent_is_reported_once_all_tasks_have_it() {
        let at = Instant::now();
        let begin = |tasks: &[u32]| {
            let mut reporter = Reporter::attaching();
            let found = tasks.iter().map(|index| task(*index)).collect();
            (reporter.news(News::Found(found), at), reporter)
        };
        let caught_up = |index, changes: Changes| News::Done {
            task: task(index),
            number: 0,
            started: !changes.is_empty(),
            caught_up: Some(changes),
        };
        let (line, mut reporter) = begin(&[0, 1]);
        assert_eq!(line, None);
        let changed = changes(&["a.py"], &["b.py"], 10);
        assert_eq!(reporter.news(caught_up(0, changed.clone()), at), None);
        let line = reporter.news(caught_up(1, changed), at).unwrap();
        let text = "a.py, b.py removed (2 files, 10 B); restarted 2 tasks in 0.00 s";
        assert_eq!(line, Line::Changed(text.to_owned()));
        // A pod that is created later gets all changes since it was packed, which are not reported
        // again.
        let since_packed = changes(&["c.py"], &[], 10);
        assert_eq!(reporter.news(caught_up(2, since_packed), at), None);

        let (_, mut reporter) = begin(&[0, 1]);
        assert_eq!(reporter.news(caught_up(0, Changes::default()), at), None);
        let line = reporter.news(News::Gone(task(1)), at).unwrap();
        let text = "no file has changed, so no command was restarted";
        assert_eq!(line, Line::Restarted(text.to_owned()));

        let (line, _) = begin(&[]);
        assert!(line.is_some());
        // The session that has started the run has no earlier session.
        let mut reporter = Reporter::new();
        assert_eq!(reporter.news(News::Found(Vec::new()), at), None);
    }

    #[test]
    fn a_lost_task_does_not_delay_the_report() {
        let at = Instant::now();
        let mut reporter = Reporter::new();
        done(&mut reporter, 0, 0, at);
        done(&mut reporter, 1, 0, at);
        changed(&mut reporter, 1, at, &changes(&[], &["a.py"], 0));
        assert_eq!(done(&mut reporter, 0, 1, at), None);
        let line = reporter.news(News::Gone(task(1)), at).unwrap();
        let text = "a.py removed (1 file, 0 B); restarted in 0.00 s";
        assert_eq!(line, Line::Changed(text.to_owned()));
    }
}
