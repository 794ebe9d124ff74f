//! The list of runs.

use std::collections::BTreeMap;

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
            input #filter type="search" placeholder="Filter: words, state:failed, tag:lr=0.1" aria-label="Filter runs" aria-describedby="filter-help" autocomplete="off" spellcheck="false";
            span #filter-count.muted role="status" {}
            details.hint {
                summary { "Filter terms" }
                p #filter-help.muted { "Words that a row contains; " code { "state:failed" } ", " code { "tag:KEY" } ", " code { "tag:KEY=VALUE" } ", " code { "name:dig*" } ", " code { "note:TEXT" } ". All terms must match; " code { "!" } " before a term excludes." }
            }
        }
        div #runs { (table(frame, runs, now)) }
    };
    frame.page("Runs", "runs", "events", status, &main)
}

/// The list, which is updated.
pub(crate) fn table(frame: Frame<'_>, runs: &[RunSummary], now: Timestamp) -> Markup {
    let all_namespaces = frame.namespace.is_none();
    let more = runs.len().saturating_sub(MOST_RUNS);
    let shown = || runs.iter().take(MOST_RUNS);
    let columns = Columns {
        namespace: all_namespaces,
        restarts: shown().any(|run| run.restarts > 0),
        owner: has_several_owners(runs),
        tags: shown().any(|run| !run.tags.is_empty() || run.note.is_some()),
    };
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
                            @if columns.owner { th scope="col" { "Owner" } }
                            th scope="col" { "State" }
                            th.number scope="col" { "Tasks" }
                            th.number scope="col" { "Exit" }
                            @if columns.restarts { th.number scope="col" { "Restarts" } }
                            th.number scope="col" { "Age" }
                            th.number scope="col" { "Took" }
                            @if columns.tags { th scope="col" { "Tags and note" } }
                            th scope="col" { "Command" }
                        }
                    }
                    tbody {
                        @for run in shown() { (row(frame, run, &columns, now)) }
                    }
                }
            }
            @if more > 0 {
                p.muted { (more) " older runs are not shown; " code { "longshore runs" } " lists them." }
            }
        }
    }
}

/// The columns that only some lists have.
struct Columns {
    namespace: bool,
    owner: bool,
    restarts: bool,
    tags: bool,
}

/// Returns true if several users own the runs.
fn has_several_owners(runs: &[RunSummary]) -> bool {
    let mut owners = runs.iter().filter_map(|run| run.owner.as_ref());
    let first = owners.next();
    owners.any(|owner| Some(owner) != first)
}

/// Tags as `key=value`, or as their key if they have no value.
pub(super) fn tags(tags: &BTreeMap<String, String>) -> Markup {
    html! {
        @for (key, value) in tags {
            span.tag { (key) @if !value.is_empty() { "=" (value) } } " "
        }
    }
}

/// The tags for the filter: a list of keys and values in JSON.
fn tags_data(run: &RunSummary) -> String {
    serde_json::to_string(&run.tags).unwrap_or_default()
}

fn row(frame: Frame<'_>, run: &RunSummary, columns: &Columns, now: Timestamp) -> Markup {
    let (namespace, name) = (run.run.namespace.as_str(), run.run.name.as_str());
    let path = format!("/{}/{}", frame.base, run_path(namespace, name));
    let command = text::command(&run.command);
    html! {
        tr data-key={(namespace) "/" (name)} data-name=(name) data-state=(run.state.as_str()) data-tags=(tags_data(run)) data-note=(run.note.as_deref().unwrap_or_default()) {
            td { a href=(path) { (name) } }
            @if columns.namespace { td { (namespace) } }
            @if columns.owner { td { @if let Some(owner) = &run.owner { (owner) } } }
            td { (badge(run.state.as_str())) }
            td.number {
                @match &run.schedule {
                    Some(schedule) => { (schedule.cron) }
                    None => { (run.succeeded.0) "/" (run.succeeded.1) }
                }
            }
            td.number { @if let Some(code) = run.exit_code { (code) } @else { "\u{2013}" } }
            @if columns.restarts { td.number { (run.restarts) } }
            td.number { @if let Some(created) = run.created { (since(created, now)) } }
            td.number {
                @match (run.created, run.finished) {
                    (Some(from), Some(to)) => { (took(from, to)) }
                    _ => { "\u{2013}" }
                }
            }
            @if columns.tags {
                td.tags {
                    (tags(&run.tags))
                    @if let Some(note) = &run.note { span.note title=(note) { (note) } }
                }
            }
            td.command title=(command) { code { (command) } }
        }
    }
}
