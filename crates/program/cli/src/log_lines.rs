//! Lines of a run's merged logs, each prefixed with its task.

use longshore::launcher::{
    Run,
    follow::{LogGap, LogLine, Unfinished},
    names::Task,
    runs::RunRole,
    terminal_text,
};

use crate::ui;

/// Prefixes each line of a merged log with its task.
pub(crate) struct Lines {
    /// Text before the task: the name of the run and a slash, among lines of several runs.
    run: String,
    width: usize,
    roles: Vec<String>,
    paint: ui::Paint,
    /// The last prefix, which most lines reuse.
    last: std::cell::RefCell<Option<(Task, Option<String>, String)>>,
}

impl Lines {
    pub(crate) fn new(run: &Run) -> Self {
        Self::with_front(String::new(), run)
    }

    /// Like [`Lines::new`], for lines alongside other runs' lines: `digits-x7k2p/worker/0 | text`.
    pub(crate) fn named(name: &str, run: &Run) -> Self {
        Self::with_front(format!("{name}/"), run)
    }

    fn with_front(front: String, run: &Run) -> Self {
        let width = |role: &RunRole| {
            Task {
                role: role.name.clone(),
                index: role.count.saturating_sub(1),
            }
            .to_string()
            .len()
        };
        Self {
            run: front,
            width: run.roles.iter().map(width).max().unwrap_or(0),
            roles: run.roles.iter().map(|role| role.name.clone()).collect(),
            paint: ui::Paint::stdout(),
            last: std::cell::RefCell::default(),
        }
    }

    /// `worker/0 | text`, in the final state that a terminal would show.
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

    /// An unfinished line, truncated to the terminal width.
    pub(crate) fn unfinished(&self, line: &Unfinished, columns: usize) -> String {
        let front = self.front(&line.task, line.container.as_deref());
        terminal_text::current(&format!("{front} | {}", last_state(&line.text)), columns)
    }

    fn front(&self, task: &Task, container: Option<&str>) -> String {
        let front = format!(
            "{}{:<width$}",
            self.run,
            task.to_string(),
            width = self.width
        );
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

/// A line without sequences that would move the cursor back to the prefix.
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
