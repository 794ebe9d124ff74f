//! What of a followed run is shown: events as text for people, or as JSON.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use longshore::launcher::{
    Event, Run,
    follow::{LogGap, LogLine, Unfinished},
    names::Task,
    runs::RunRole,
    terminal_text,
};
use serde_json::{Value, json};

use crate::{
    follow::{Telling, head},
    hints,
    printer::Batch,
    ui,
};

/// How often a plain line about progress may come, where no terminal draws it.
const PLAIN_LINES: Duration = Duration::from_millis(500);
/// How many unfinished lines are shown above the spinner.
const UNFINISHED_LINES: usize = 8;

/// Turns events into text.
pub(crate) struct Show {
    telling: Telling,
    lines: Lines,
    last_plain: Option<Instant>,
    /// How far the roles have come.
    progress: String,
    /// How many gaps were reported of each task.
    gaps: BTreeMap<String, u32>,
}

impl Show {
    /// With the first event, which names the run.
    pub(crate) fn new(run: &Run, telling: Telling, cluster: &Value, batch: &mut Batch) -> Self {
        if telling == Telling::Json {
            let started = json!({
                "event": "started",
                "run": run.name.as_str(),
                "namespace": run.namespace,
                "roles": run.roles,
                "cluster": cluster,
            });
            batch.output(|out| ui::write_json(&started.to_string(), out));
        }
        Self {
            telling,
            lines: Lines::new(run),
            last_plain: None,
            progress: "starting".to_owned(),
            gaps: BTreeMap::new(),
        }
    }

    /// What the spinner says.
    pub(crate) fn progress(&self) -> &str {
        &self.progress
    }

    /// Adds what an event prints.
    pub(crate) fn event(&mut self, event: &Event, batch: &mut Batch) {
        let is_text = self.telling == Telling::Text;
        if !is_text {
            let text = match event {
                // Most of them are lines, which are not copied.
                Event::Log(_) => serde_json::to_string(event),
                _ => serde_json::to_string(&hints::in_event(event)),
            };
            batch.output(|out| ui::write_json(&text.unwrap_or_default(), out));
        }
        match event {
            Event::Log(line) if is_text => batch.output(|out| self.lines.write(line, out)),
            Event::Gap(gap) => {
                *self.gaps.entry(gap.task.to_string()).or_default() += 1;
                if is_text {
                    batch.output(|out| {
                        out.push_str(&self.lines.gap(gap));
                        out.push('\n');
                    });
                }
            }
            Event::Waiting(why) => {
                batch.note(&format!(
                    "{} {}; {}",
                    head("waits"),
                    why.sentence(),
                    hints::complete(&why.remedy)
                ));
            }
            Event::Retry(retry) => batch.note(&format!(
                "{} {}; attempt {} of {}, it is started again",
                head("retry"),
                retry.explanation.sentence(),
                retry.attempt,
                retry.attempts
            )),
            Event::Progress(progress) => {
                self.progress = progress.to_string();
                let is_due = self
                    .last_plain
                    .is_none_or(|last| last.elapsed() > PLAIN_LINES);
                if !ui::draws_progress() && is_due {
                    self.last_plain = Some(Instant::now());
                    batch.note(&format!("{} {progress}", head("tasks")));
                }
            }
            _ => {}
        }
    }

    /// The gaps of all logs in a sentence, if there are any.
    pub(crate) fn gaps(&self) -> Option<String> {
        let all: u32 = self.gaps.values().sum();
        let of = |(task, count): (&String, &u32)| format!("{task}: {count}");
        let each: Vec<String> = self.gaps.iter().map(of).collect();
        (all > 0).then(|| {
            let gaps = ui::count(all.into(), "gap");
            format!(
                "the logs have {gaps}, where lines may be missing ({})",
                each.join(", ")
            )
        })
    }

    /// Unfinished lines as they are shown above the spinner.
    pub(crate) fn unfinished(&self, unfinished: &[Unfinished]) -> Vec<String> {
        let (columns, rows) = ui::progress_size();
        // One line is the spinner's, and one the cursor's.
        let room = UNFINISHED_LINES.min(rows.saturating_sub(3));
        let mut lines: Vec<String> = unfinished
            .iter()
            .take(room)
            .map(|line| self.lines.unfinished(line, columns.saturating_sub(1)))
            .collect();
        if unfinished.len() > room
            && let Some(last) = lines.last_mut()
        {
            *last = format!("({} more unfinished lines)", unfinished.len() + 1 - room);
        }
        lines
    }
}

/// Puts the task in front of each line of a merged log.
pub(crate) struct Lines {
    width: usize,
    roles: Vec<String>,
    paint: ui::Paint,
    /// The prefix that was used last: most lines have it again.
    last: std::cell::RefCell<Option<(Task, Option<String>, String)>>,
}

impl Lines {
    pub(crate) fn new(run: &Run) -> Self {
        let width = |role: &RunRole| {
            Task {
                role: role.name.clone(),
                index: role.count.saturating_sub(1),
            }
            .to_string()
            .len()
        };
        Self {
            width: run.roles.iter().map(width).max().unwrap_or(0),
            roles: run.roles.iter().map(|role| role.name.clone()).collect(),
            paint: ui::Paint::stdout(),
            last: std::cell::RefCell::default(),
        }
    }

    /// `worker/0 | text`, in the last state that a terminal would show of it.
    pub(crate) fn show(&self, line: &LogLine) -> String {
        let mut text = String::new();
        self.write(line, &mut text);
        text.pop();
        text
    }

    /// The same with a newline.
    pub(crate) fn write(&self, line: &LogLine, out: &mut String) {
        let mut last = self.last.borrow_mut();
        let known = last
            .as_ref()
            .filter(|(task, container, _)| (task, container) == (&line.task, &line.container));
        if known.is_none() {
            let prefix = self.prefix(&line.task, line.container.as_deref());
            *last = Some((line.task.clone(), line.container.clone(), prefix));
        }
        out.extend(last.iter().map(|(_, _, prefix)| prefix.as_str()));
        out.push_str(&terminal_text::shown(&line.line));
        out.push('\n');
    }

    /// `worker/0 | longshore: lines ... may be missing`.
    pub(crate) fn gap(&self, gap: &LogGap) -> String {
        let prefix = self.prefix(&gap.task, gap.container.as_deref());
        format!(
            "{prefix}{}",
            self.paint.yellow(&format!("longshore: {gap}"))
        )
    }

    fn unfinished(&self, line: &Unfinished, columns: usize) -> String {
        let front = self.front(&line.task, line.container.as_deref());
        terminal_text::current(&format!("{front} | {}", last_state(&line.text)), columns)
    }

    fn front(&self, task: &Task, container: Option<&str>) -> String {
        let front = format!("{:<width$}", task.to_string(), width = self.width);
        match container {
            Some(container) => format!("{front} ({container})"),
            None => front,
        }
    }

    fn prefix(&self, task: &Task, container: Option<&str>) -> String {
        let voice = self
            .roles
            .iter()
            .position(|role| *role == task.role)
            .unwrap_or(0);
        let voice = voice * 7 + usize::try_from(task.index).unwrap_or(0);
        let front = self.front(task, container);
        format!("{} | ", self.paint.voice(voice, &front))
    }
}

/// A line without what would move the cursor to its beginning, where the prefix is.
fn last_state(text: &str) -> String {
    terminal_text::current(text, usize::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore::launcher::RunName;

    use super::*;

    fn lines() -> Lines {
        let role = |name: &str, count| RunRole {
            name: name.into(),
            count,
            service: false,
        };
        let run = Run {
            name: RunName::existing("demo-ab2cd").unwrap(),
            namespace: "default".into(),
            roles: vec![role("ps", 1), role("worker", 11)],
            schedule: None,
        };
        let mut lines = Lines::new(&run);
        lines.paint = ui::Paint::none();
        lines
    }

    fn task(role: &str, index: u32) -> Task {
        Task {
            role: role.into(),
            index,
        }
    }

    #[test]
    fn no_line_overwrites_its_prefix() {
        let lines = lines();
        let show = |role: &str, container: Option<&str>, text: &str| {
            lines.show(&LogLine {
                task: task(role, 0),
                container: container.map(str::to_owned),
                time: None,
                line: text.into(),
            })
        };
        assert_eq!(show("ps", None, " 1%\r100%"), "ps/0      | 100%");
        assert_eq!(show("worker", None, "\x1b[2J\x1b[1Ax"), "worker/0  | x");
        assert_eq!(show("worker", Some("init"), "x"), "worker/0  (init) | x");
        assert_eq!(
            show("worker", None, "\x1b[31mx"),
            "worker/0  | \x1b[31mx\x1b[0m"
        );
    }

    #[test]
    fn an_unfinished_line_fits_the_terminal() {
        let line = Unfinished {
            task: task("worker", 10),
            container: None,
            text: "\x1b[32m 42%|\u{2588}\u{2588}\u{2588}\u{2588}\u{2588}\x08".into(),
        };
        let shown = lines().unfinished(&line, 18);
        assert_eq!(shown, "worker/10 |  42%|\u{2588}");
    }
}
