//! The page of a run.

use jiff::Timestamp;
use longshore_launcher::{RunState, RunSummary};
use maud::{Markup, html};

use super::{
    Frame, badge, grid,
    runs::{table, tags},
    since, timeline, took,
};
use crate::{route::run_path, text, view::RoleView};

/// The tabs with their titles; the last only of sweeps.
const TABS: [(&str, &str); 7] = [
    ("logs", "Logs"),
    ("timeline", "Timeline"),
    ("usage", "Usage"),
    ("metrics", "Metrics"),
    ("outputs", "Outputs"),
    ("objects", "Objects"),
    ("sweep", "Combinations"),
];

/// The page.
pub(crate) fn page(
    frame: Frame<'_>,
    status: &Markup,
    run: &RunSummary,
    roles: &[RoleView],
    now: Timestamp,
) -> Markup {
    let path = run_path(&run.run.namespace, run.run.name.as_str());
    let here = format!("/{}/{path}", frame.base);
    let is_sweep = run.sweep.is_some();
    let tabs = TABS.iter().filter(|(id, _)| *id != "sweep" || is_sweep);
    let main = html! {
        div #run data-path=(here) {
            section #head aria-label="Run" { (head(run, now)) }
            section #why aria-live="polite" aria-label="Explanation" {}
            section #tasks aria-label="Tasks" { (grid(roles)) }
            div.tabs role="tablist" aria-label="Details" {
                @for (id, title) in tabs {
                    @let selected = *id == "logs";
                    button type="button" role="tab" id={"tab-" (id)} aria-controls={"panel-" (id)} aria-selected=(selected) tabindex=(if selected { "0" } else { "-1" }) { (title) }
                }
            }
            section.panel #panel-logs role="tabpanel" aria-labelledby="tab-logs" { (logs()) }
            section.panel #panel-timeline role="tabpanel" aria-labelledby="tab-timeline" hidden {
                div #timeline { (timeline(roles, run, now)) }
            }
            section.panel #panel-usage role="tabpanel" aria-labelledby="tab-usage" hidden {
                div #usage { p.muted { "Loading\u{2026}" } }
            }
            section.panel #panel-metrics role="tabpanel" aria-labelledby="tab-metrics" hidden data-load="metrics" { p.muted { "Loading\u{2026}" } }
            section.panel #panel-outputs role="tabpanel" aria-labelledby="tab-outputs" hidden data-load="outputs" { p.muted { "Loading\u{2026}" } }
            section.panel #panel-objects role="tabpanel" aria-labelledby="tab-objects" hidden data-load="objects" { p.muted { "Loading\u{2026}" } }
            @if is_sweep {
                section.panel #panel-sweep role="tabpanel" aria-labelledby="tab-sweep" hidden {
                    div #sweep { p.muted { "Loading\u{2026}" } }
                }
            }
        }
    };
    let events = format!("{path}/events");
    frame.page(run.run.name.as_str(), "run", &events, status, &main)
}

/// The page of a schedule, with its runs.
pub(crate) fn schedule_page(
    frame: Frame<'_>,
    status: &Markup,
    schedule: &RunSummary,
    runs: &[RunSummary],
    now: Timestamp,
) -> Markup {
    let path = run_path(&schedule.run.namespace, schedule.run.name.as_str());
    let main = html! {
        div #schedule data-path={"/" (frame.base) "/" (path)} {
            section #head aria-label="Schedule" { (head(schedule, now)) }
            h2 { "Runs" }
            div #runs { (table(frame, runs, now)) }
        }
    };
    let events = format!("{path}/events");
    frame.page(
        schedule.run.name.as_str(),
        "schedule",
        &events,
        status,
        &main,
    )
}

/// The name, state, note and command of a run, which are updated.
pub(crate) fn head(run: &RunSummary, now: Timestamp) -> Markup {
    let is_over = run.state.is_over();
    // While it runs, its failed combinations can be run again with the command only.
    let can_retry = run.sweep.is_some() && is_over && run.succeeded.0 < run.succeeded.1;
    let can_cancel = !is_over && run.state != RunState::Paused;
    let is_active = match &run.schedule {
        Some(schedule) => schedule.active > 0,
        None => !is_over,
    };
    html! {
        div.title data-state=(run.state.as_str()) {
            h1 { (run.run.name.as_str()) }
            (badge(run.state.as_str()))
            dl.facts {
                @if let Some(created) = run.created {
                    div { dt { "Age" } dd { (since(created, now)) } }
                    @if let Some(finished) = run.finished {
                        div { dt { "Took" } dd { (took(created, finished)) } }
                    }
                }
                @if run.restarts > 0 { div { dt { "Restarts" } dd { (run.restarts) } } }
                @if let Some(code) = run.exit_code { div { dt { "Exit code" } dd { (code) } } }
                div { dt { "Namespace" } dd { (run.run.namespace) } }
                @if let Some(owner) = &run.owner { div { dt { "Owner" } dd { (owner) } } }
                @if let Some(schedule) = &run.schedule {
                    div { dt { "Schedule" } dd { (schedule.cron) } }
                }
                @for (key, value) in &run.labels {
                    div { dt { (key) } dd { (value) } }
                }
                @if !run.tags.is_empty() { div { dt { "Tags" } dd { (tags(&run.tags)) } } }
            }
            div.actions {
                @if can_retry { button type="button" data-action="retry" { "Retry" } }
                @if can_cancel { button type="button" data-action="cancel" data-schedule=(run.schedule.is_some()) { "Cancel" } }
                button.danger type="button" data-action="remove" data-active=(is_active) data-schedule=(run.schedule.is_some()) { "Remove" }
            }
        }
        @if let Some(note) = &run.note { p.note { (note) } }
        @if !run.command.is_empty() {
            pre.command { code { (text::command(&run.command)) } }
        }
    }
}

/// The page of a run, as long as the runs have not been listed.
pub(crate) fn unknown(frame: Frame<'_>, status: &Markup, name: &str) -> Markup {
    let main = html! {
        h1 { (name) }
        p { "The cluster has not listed its runs yet. Reload this page when it responds." }
    };
    frame.page(name, "none", "events", status, &main)
}

/// The page of a run that does not exist.
pub(crate) fn gone(frame: Frame<'_>, status: &Markup, name: &str) -> Markup {
    let main = html! {
        h1 { "No such run" }
        p { "The run " code { (name) } " does not exist, or was removed. " a href={"/" (frame.base) "/"} { "All runs" } }
    };
    frame.page("No such run", "none", "events", status, &main)
}

fn logs() -> Markup {
    html! {
        div.bar.tools role="toolbar" aria-label="Logs" {
            input #search type="search" placeholder="Search" aria-label="Search the logs" autocomplete="off" spellcheck="false";
            label { input #only type="checkbox"; " only matches" }
            label { input #regex type="checkbox"; " regex" }
            button type="button" #previous title="Previous match (N)" aria-label="Previous match" { "\u{2191}" }
            button type="button" #next title="Next match (n)" aria-label="Next match" { "\u{2193}" }
            span #matches.muted role="status" {}
            span.space {}
            label.select {
                span.hidden { "Task" }
                select #task aria-label="Show the lines of" { option value="" { "all tasks" } }
            }
            label { input #times type="checkbox"; " times" }
            label { input #follow type="checkbox" checked; " follow" }
        }
        p.notice #dropped hidden {}
        div.lines #lines tabindex="0" role="log" aria-live="off" aria-label="Lines of the logs" {
            div #rows {}
            div #sizer {}
        }
        div.bar.foot {
            span #count.muted {}
            span #log-state.muted role="status" {}
        }
    }
}
