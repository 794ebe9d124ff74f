//! The objects of a cluster by kind and namespace.

use jiff::Timestamp;
use longshore_client::Table;
use maud::{Markup, html};
use serde_json::Value;

use super::Frame;
use crate::{route::encoded, text};

/// The maximum number of objects in the list.
pub(crate) const MOST_OBJECTS: u32 = 500;
/// The maximum number of namespaces that are offered.
const MOST_NAMESPACES: usize = 50;
/// The maximum number of events.
const MOST_EVENTS: usize = 100;

/// The selection that a list shows.
#[derive(Debug)]
pub(crate) struct Selected<'a> {
    /// The kind, as `jobs.batch`.
    pub(crate) kind: &'a str,
    /// The namespace, if only one.
    pub(crate) namespace: Option<&'a str>,
    pub(crate) is_namespaced: bool,
    /// The kinds of the cluster, as `jobs.batch`.
    pub(crate) kinds: &'a [String],
    /// The namespaces of the cluster.
    pub(crate) namespaces: &'a [String],
}

/// An event about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventView {
    pub(crate) last_seen: Option<Timestamp>,
    pub(crate) count: u64,
    pub(crate) kind: String,
    pub(crate) reason: String,
    pub(crate) source: String,
    pub(crate) message: String,
}

fn list_path(base: &str, kind: &str, namespace: Option<&str>) -> String {
    let namespace = namespace.map(|namespace| format!("&namespace={}", encoded(namespace)));
    format!(
        "/{base}/objects?kind={}{}",
        encoded(kind),
        namespace.unwrap_or_default()
    )
}

/// The list of the objects of a kind. `table` is an error if they cannot be listed.
pub(crate) fn browse(
    frame: Frame<'_>,
    status: &Markup,
    selected: &Selected<'_>,
    table: &Result<Table, String>,
) -> Markup {
    let (base, kind) = (frame.base, selected.kind);
    let main = html! {
        h1 { "Objects" }
        div.browse {
            nav.kinds aria-label="Kinds" {
                @for own in selected.kinds {
                    a href=(list_path(base, own, selected.namespace)) aria-current=[(own == kind).then_some("page")] { (own) }
                }
            }
            div.found {
                div.bar {
                    h2 { (kind) }
                    input #filter type="search" placeholder="Filter objects" aria-label="Filter objects" autocomplete="off" spellcheck="false";
                }
                @if selected.is_namespaced {
                    nav.namespaces aria-label="Namespaces" {
                        a href=(list_path(base, kind, None)) aria-current=[selected.namespace.is_none().then_some("page")] { "all namespaces" }
                        @for own in selected.namespaces.iter().take(MOST_NAMESPACES) {
                            a href=(list_path(base, kind, Some(own))) aria-current=[(selected.namespace == Some(own)).then_some("page")] { (own) }
                        }
                        @if selected.namespaces.len() > MOST_NAMESPACES {
                            span.muted { "and " (selected.namespaces.len() - MOST_NAMESPACES) " more" }
                        }
                    }
                }
                @match table {
                    Ok(table) => (objects(base, selected, table)),
                    Err(error) => p.notice { (error) },
                }
            }
        }
    };
    frame.page("Objects", "objects", "events", status, &main)
}

fn objects(base: &str, selected: &Selected<'_>, table: &Table) -> Markup {
    let columns = || table.columns.iter().enumerate();
    let shown: Vec<usize> = columns()
        .filter(|(_, column)| column.priority == 0)
        .map(|(place, _)| place)
        .collect();
    let all_namespaces = selected.is_namespaced && selected.namespace.is_none();
    html! {
        @if table.rows.is_empty() { p.empty { "No objects." } }
        @else {
            div.scroll {
                table.objects {
                    caption.hidden { "Objects of the kind " (selected.kind) }
                    thead {
                        tr {
                            @if all_namespaces { th scope="col" { "Namespace" } }
                            @for place in &shown { th scope="col" { (table.columns[*place].name) } }
                        }
                    }
                    tbody {
                        @for row in &table.rows {
                            tr {
                                @if all_namespaces { td { (row.namespace) } }
                                @for (own, place) in shown.iter().enumerate() {
                                    @let value = cell(row.cells.get(*place));
                                    td {
                                        @if own == 0 { a href=(object_path(base, selected.kind, &row.namespace, &row.name)) { (value) } }
                                        @else { (value) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            @if table.rows.len() >= MOST_OBJECTS as usize {
                p.muted { "Only the first " (MOST_OBJECTS) " objects are shown; " code { "longshore get " (selected.kind) } " lists all." }
            }
            p.muted { "As of " (text::time(Timestamp::now())) ". Reload the page to see changes." }
        }
    }
}

fn object_path(base: &str, kind: &str, namespace: &str, name: &str) -> String {
    format!(
        "/{base}/object?kind={}&namespace={}&name={}",
        encoded(kind),
        encoded(namespace),
        encoded(name)
    )
}

/// A value of a table as text.
fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

/// The page of an object. `yaml` has no contents of Secrets.
pub(crate) fn browsed(
    frame: Frame<'_>,
    status: &Markup,
    (kind, namespace, name): (&str, &str, &str),
    yaml: &str,
    events: &Result<Vec<EventView>, String>,
) -> Markup {
    let namespace = (!namespace.is_empty()).then_some(namespace);
    let main = html! {
        div.title { h1 { (name) } }
        p.muted {
            a href=(list_path(frame.base, kind, namespace)) { (kind) }
            @if let Some(namespace) = namespace { " in the namespace " (namespace) }
        }
        pre.yaml tabindex="0" aria-label={"YAML of " (name)} { (yaml) }
        h2 { "Events" }
        @match events {
            Ok(events) => (event_table(events)),
            Err(error) => p.notice { (error) },
        }
    };
    frame.page(name, "object", "events", status, &main)
}

fn event_table(events: &[EventView]) -> Markup {
    let more = events.len().saturating_sub(MOST_EVENTS);
    html! {
        @if events.is_empty() { p.muted { "No events." } }
        @else {
            div.scroll {
                table.events {
                    caption.hidden { "Events about the object, newest first" }
                    thead {
                        tr {
                            @for title in ["Last seen", "Times", "Type", "Reason", "From", "Message"] { th scope="col" { (title) } }
                        }
                    }
                    tbody {
                        @for event in events.iter().rev().take(MOST_EVENTS) {
                            tr {
                                td { @if let Some(time) = event.last_seen { (text::time(time)) } }
                                td.number { (event.count) }
                                td { (event.kind) }
                                td { (event.reason) }
                                td { (event.source) }
                                td.message { (event.message) }
                            }
                        }
                    }
                }
            }
            @if more > 0 { p.muted { (more) " older events are not shown." } }
        }
    }
}

/// Page that reports why an object or its page cannot be shown.
pub(crate) fn unavailable(frame: Frame<'_>, status: &Markup, message: &str) -> Markup {
    let main = html! { h1 { "Objects" } p.notice { (message) } };
    frame.page("Objects", "none", "events", status, &main)
}
