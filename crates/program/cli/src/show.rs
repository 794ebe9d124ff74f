//! Prints the events of a followed run as text or JSON.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use longshore::launcher::{Event, Run, follow::Unfinished};
use serde_json::{Value, json};

use crate::{hints, last_event, log_lines::Lines, output::EventFormat, printer::Batch, ui};

/// The first event, which names the run.
pub(crate) fn started(run: &Run, cluster: &Value) -> Value {
    json!({
        "event": "started",
        "run": run.name.as_str(),
        "namespace": run.namespace,
        "roles": run.roles,
        "cluster": cluster,
    })
}

/// Prints the name of a run that is not followed, or its first event.
pub(crate) fn left_alone(run: &Run, format: EventFormat, cluster: &Value) {
    match format {
        EventFormat::Text => ui::line(run.name.as_str()),
        EventFormat::Json => {
            last_event::started();
            ui::json(&started(run, cluster).to_string());
        }
    }
}

/// The first word of a line about the run, on standard error.
pub(crate) fn head(word: &str) -> String {
    ui::Paint::stderr().bold(&format!("{word:<7}"))
}

/// The minimum interval between progress lines without a terminal.
const PLAIN_LINES: Duration = Duration::from_millis(500);
/// The maximum number of unfinished lines above the spinner.
const UNFINISHED_LINES: usize = 8;

/// Turns events into text.
pub(crate) struct Show {
    format: EventFormat,
    lines: Lines,
    last_plain: Option<Instant>,
    /// The progress of the roles.
    progress: String,
    /// The number of gaps reported for each task.
    gaps: BTreeMap<String, u32>,
}

impl Show {
    /// Prints the first event, which names the run.
    pub(crate) fn new(run: &Run, format: EventFormat, cluster: &Value, batch: &mut Batch) -> Self {
        if format == EventFormat::Json {
            last_event::started();
            batch.output(|out| ui::write_json(&started(run, cluster).to_string(), out));
        }
        Self {
            format,
            lines: Lines::new(run),
            last_plain: None,
            progress: "starting".to_owned(),
            gaps: BTreeMap::new(),
        }
    }

    /// The text of the spinner.
    pub(crate) fn progress(&self) -> &str {
        &self.progress
    }

    /// Adds the output of an event to the batch.
    pub(crate) fn event(&mut self, event: &Event, batch: &mut Batch) {
        let is_text = self.format == EventFormat::Text;
        if !is_text {
            let text = match event {
                // Most events are log lines, which are not copied.
                Event::Log(_) => serde_json::to_string(event),
                _ => serde_json::to_string(&hints::in_event(event)),
            };
            if matches!(event, Event::Finished(_)) {
                last_event::finished();
            }
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
                    head("waiting"),
                    why.sentence(),
                    hints::complete(&why.remedy)
                ));
            }
            Event::Retry(retry) => batch.note(&format!(
                "{} {}; {}",
                head("retry"),
                retry.explanation.sentence(),
                retry.consequence()
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

    /// A sentence about the gaps of all logs, if there are any.
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

    /// The unfinished lines to show above the spinner.
    pub(crate) fn unfinished(&self, unfinished: &[Unfinished]) -> Vec<String> {
        let (columns, rows) = ui::progress_size();
        // Leave one line for the spinner and one for the cursor.
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

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn the_help_names_all_events() {
        let help = EventFormat::Json
            .to_possible_value()
            .and_then(|value| Some(value.get_help()?.to_string()));
        let help = help.unwrap_or_default();
        let words: Vec<&str> = help.split([' ', ',']).collect();
        for kind in Event::KINDS.iter().chain(&["started", "detached"]) {
            assert!(words.contains(kind), "{kind}: {help}");
        }
    }
}
