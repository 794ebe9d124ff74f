//! The stages of all tasks on a common time axis.

use jiff::Timestamp;
use longshore_launcher::RunSummary;
use maud::{Markup, html};

use super::took;
use crate::{
    text,
    view::{Bar, RoleView, TaskAttempt, TaskView, bars},
};

/// The maximum number of rows.
const MOST_ROWS: usize = 500;

/// The timeline, which is updated.
pub(crate) fn timeline(roles: &[RoleView], run: &RunSummary, now: Timestamp) -> Markup {
    let begin = run.created.unwrap_or(now);
    let attempts = || {
        let tasks = roles.iter().flat_map(|role| &role.tasks);
        tasks.flat_map(|task| &task.attempts)
    };
    let last = attempts().filter_map(|attempt| attempt.finished).max();
    let end = match run.state.is_over() {
        true => run.finished.max(last).unwrap_or(now),
        false => now,
    };
    let tasks = roles
        .iter()
        .flat_map(|role| role.tasks.iter().map(move |task| (role, task)));
    let rows: Vec<_> = tasks
        .filter(|(_, task)| !task.attempts.is_empty())
        .collect();
    html! {
        @if rows.is_empty() {
            p.muted { "No task has a pod." }
        } @else {
            div.legend {
                @for stage in ["pending", "pulling", "running", "succeeded", "failed"] {
                    span { span.swatch.{"b-" (stage)} aria-hidden="true" {} " " (stage) }
                }
                span.space {}
                span.muted { (took(begin, end)) " since " (text::time(begin)) }
            }
            table.timeline {
                caption.hidden { "Stages of the tasks" }
                tbody {
                    @for (role, task) in rows.iter().take(MOST_ROWS) {
                        (row(role, task, begin, end))
                    }
                }
            }
            @if rows.len() > MOST_ROWS {
                p.muted { (rows.len() - MOST_ROWS) " more tasks are not shown." }
            }
        }
    }
}

fn row(role: &RoleView, task: &TaskView, begin: Timestamp, end: Timestamp) -> Markup {
    let bars = |attempt: &TaskAttempt| bars(attempt, begin, end);
    let all: Vec<Vec<Bar>> = task.attempts.iter().map(bars).collect();
    let name = format!("{}/{}", role.name, task.index);
    html! {
        tr data-key=(name) {
            th scope="row" { (name) }
            td.chart {
                svg viewBox="0 0 10000 10" preserveAspectRatio="none" role="img" aria-label=(in_words(&all)) {
                    @for (bars, attempt) in all.iter().zip(&task.attempts) {
                        @for bar in bars {
                            rect.{"b-" (bar.stage.as_str()) " e-" (attempt.state.as_str())} x=(bar.at) y="1" width=(bar.length.max(15)) height="8" {
                                title { (name) " " (bar.stage.as_str()) " " (text::span(bar.milliseconds)) }
                            }
                        }
                    }
                }
            }
            td.number { (in_words(&all)) }
        }
    }
}

/// The stages of the last attempt.
fn in_words(attempts: &[Vec<Bar>]) -> String {
    let last = attempts.last().map(Vec::as_slice).unwrap_or_default();
    let stages = last.iter();
    let stages =
        stages.map(|bar| format!("{} {}", bar.stage.as_str(), text::span(bar.milliseconds)));
    let text = stages.collect::<Vec<_>>().join(", ");
    match attempts.len() {
        0 | 1 => text,
        count => format!("{text} (attempt {count})"),
    }
}
