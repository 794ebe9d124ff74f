//! The last values of the metrics of a run's tasks.

use longshore_launcher::metrics::{RunMetrics, shown};
use maud::{Markup, html};

use crate::view::MOST_METRICS;

/// The maximum number of tasks in the table.
const MOST_ROWS: usize = 500;
/// The maximum number of problems.
const MOST_PROBLEMS: usize = 10;

/// The table.
pub(crate) fn metrics(found: &RunMetrics) -> Markup {
    let names = found.names();
    let kept = names.get(..MOST_METRICS).unwrap_or(&names);
    html! {
        @if found.tasks.is_empty() && !found.unread.is_empty() {
            p.muted { "No metrics could be read." }
        } @else if found.tasks.is_empty() {
            p.muted { "No task has written metrics. " code { "docs/runs.md" } " says how." }
        } @else {
            div.scroll {
                table {
                    caption.hidden { "Last values of the metrics of the tasks" }
                    thead {
                        tr {
                            th scope="col" { "Task" }
                            @for name in kept { th.number scope="col" { (name) } }
                        }
                    }
                    tbody {
                        @for task in found.tasks.iter().take(MOST_ROWS) {
                            tr {
                                th scope="row" { (task.task) }
                                @for name in kept {
                                    td.number { @match task.values.get(name) { Some(value) => { (shown(value)) } None => { "\u{2013}" } } }
                                }
                            }
                        }
                    }
                }
            }
        }
        @if names.len() > kept.len() || found.tasks.len() > MOST_ROWS {
            p.muted { "More metrics or tasks are not shown; " code { "longshore metrics RUN --output json" } " has all." }
        }
        @for problem in found.unread.iter().take(MOST_PROBLEMS) { p.muted { "Not read: " (problem) } }
        @if found.unread.len() > MOST_PROBLEMS {
            p.muted { (found.unread.len() - MOST_PROBLEMS) " more problems are not shown." }
        }
    }
}

#[cfg(test)]
mod tests {
    use longshore_launcher::{
        metrics::{Metrics, TaskMetrics},
        names::Task,
    };

    use super::*;

    #[test]
    fn names_and_problems_are_text() {
        let mut values = Metrics::default();
        values.read_json_lines("{\"a<b>\": 1.5, \"c\": NaN}");
        let task = Task {
            role: "main".to_owned(),
            index: 3,
        };
        let page = metrics(&RunMetrics {
            tasks: vec![TaskMetrics { task, values }],
            unread: vec!["<i>".to_owned(); 12],
        });
        let page = page.into_string();
        for expected in [
            "main/3",
            "a&lt;b&gt;",
            ">1.5<",
            ">NaN<",
            "&lt;i&gt;",
            "2 more problems",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
        let none = metrics(&RunMetrics::default()).into_string();
        assert!(none.contains("No task has written metrics"), "{none}");
    }
}
