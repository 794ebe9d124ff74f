//! HTML of pages, and of the parts that are updated while a page is open. Pure: all texts are
//! escaped by the macros of `maud`.

mod browse;
mod frame;
mod grid;
mod metrics;
mod objects;
mod outputs;
mod run;
mod runs;
mod sweep;
mod timeline;
mod usage;
mod why;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use maud::{Markup, html};

pub(crate) use browse::{EventView, MOST_OBJECTS, Selected, browse, browsed, unavailable};
pub(crate) use frame::{Frame, opened, refused};
pub(crate) use metrics::metrics;
pub(crate) use objects::{object, objects};
pub(crate) use outputs::{outputs, problem};
pub(crate) use run::{gone, head, page as run_page, schedule_page, unknown};
pub(crate) use runs::{page as runs_page, table as runs_table};
pub(crate) use sweep::sweep;
pub(crate) use timeline::timeline;
pub(crate) use usage::usage;
pub(crate) use why::why;

pub(crate) use grid::grid;

use crate::text;

/// A part of a page that is replaced when it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PagePart {
    /// The ID of its element.
    pub(crate) id: &'static str,
    /// The new content of the element.
    pub(crate) html: String,
}

/// The state of the connection to the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reachability {
    /// The first request has not been answered yet.
    Connecting,
    /// The cluster responds.
    Reachable,
    /// The cluster has not responded since this time, for this reason.
    Away(String, Timestamp),
}

/// The state of the connection to the cluster, in the header of each page.
pub(crate) fn reachability(state: &Reachability) -> Markup {
    match state {
        Reachability::Connecting => html! { span.dot {} " connecting" },
        Reachability::Reachable => html! { span.dot.ok {} " connected" },
        Reachability::Away(error, since) => html! {
            span.dot.bad {} " no response since " (text::time(*since)) ": " (error)
        },
    }
}

/// A text with commands in backticks.
fn with_code(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    html! {
        @if parts.len().is_multiple_of(2) { (text) }
        @else {
            @for (place, part) in parts.iter().enumerate() {
                @if place.is_multiple_of(2) { (part) } @else { code { (part) } }
            }
        }
    }
}

/// A badge with a state.
fn badge(state: &str) -> Markup {
    html! { span.badge.{"s-" (state)} { (state) } }
}

/// The time since a moment, which the page keeps up to date.
fn since(from: Timestamp, now: Timestamp) -> Markup {
    html! {
        time datetime=(from.to_string()) data-since=(from.as_millisecond()) title=(text::time(from)) {
            (text::span(text::between(from, now)))
        }
    }
}

/// The time between two moments.
fn took(from: Timestamp, to: Timestamp) -> String {
    text::span(text::between(from, to))
}
