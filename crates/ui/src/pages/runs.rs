//! The list of runs.

use jiff::Timestamp;
use longshore_launcher::RunSummary;
use maud::{Markup, html};

use super::{Frame, badge, since, took};
use crate::{route::run_path, text};

/// The maximum number of runs in the list.
const MOST_RUNS: usize = 500;

/// The page.
pub(crate) fn page(
    frame: Frame<'_>,
    status: &Markup,
    runs: &[RunSummary],
    now: Timestamp,
) -> Markup {
    let main = html! {
        div.bar {
            h1 { "Runs" }
            input #filter type="search" placeholder="Filter runs" aria-label="Filter runs" autocomplete="off" spellcheck="false";
        }
        div #runs { (table(frame, runs, now)) }
    };
    frame.page("Runs", "runs", "events", status, &main)
}

/// The list, which is updated.
pub(crate) fn table(frame: Frame<'_>, runs: &[RunSummary], now: Timestamp) -> Markup {
    let all_namespaces = frame.namespace.is_none();
    let more = runs.len().saturating_sub(MOST_RUNS);
    html! {
        @if runs.is_empty() {
            p.empty { "No runs." }
        } @else {
            div.scroll {
                table.runs {
                    caption.hidden { "Runs, newest first" }
                    thead {
                        tr {
                            th scope="col" { "Run" }
                            @if all_namespaces { th scope="col" { "Namespace" } }
                            th scope="col" { "State" }
                            th.number scope="col" { "Tasks" }
                            th.number scope="col" { "Exit" }
                            th.number scope="col" { "Age" }
                            th.number scope="col" { "Took" }
                            th scope="col" { "Command" }
                        }
                    }
                    tbody {
                        @for run in runs.iter().take(MOST_RUNS) {
                            (row(frame, run, all_namespaces, now))
                        }
                    }
                }
            }
            @if more > 0 {
                p.muted { (more) " older runs are not shown; " code { "longshore runs" } " lists them." }
            }
        }
    }
}

fn row(frame: Frame<'_>, run: &RunSummary, all_namespaces: bool, now: Timestamp) -> Markup {
    let (namespace, name) = (run.run.namespace.as_str(), run.run.name.as_str());
    let path = format!("/{}/{}", frame.base, run_path(namespace, name));
    let command = text::command(&run.command);
    html! {
        tr data-key={(namespace) "/" (name)} {
            td { a href=(path) { (name) } }
            @if all_namespaces { td { (namespace) } }
            td { (badge(run.state.as_str())) }
            td.number {
                @match &run.schedule {
                    Some(schedule) => { (schedule.cron) }
                    None => { (run.succeeded.0) "/" (run.succeeded.1) }
                }
            }
            td.number { @if let Some(code) = run.exit_code { (code) } @else { "\u{2013}" } }
            td.number { @if let Some(created) = run.created { (since(created, now)) } }
            td.number {
                @match (run.created, run.finished) {
                    (Some(from), Some(to)) => { (took(from, to)) }
                    _ => { "\u{2013}" }
                }
            }
            td.command title=(command) { code { (command) } }
        }
    }
}
