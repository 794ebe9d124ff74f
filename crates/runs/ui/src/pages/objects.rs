//! The objects behind a run.

use longshore_launcher::runs::objects::{KINDS, RunObject, RunObjects};
use longshore_model::yaml;
use maud::{Markup, html};
use serde_json::Value;

use crate::route::encoded;

/// The maximum number of objects of a kind.
const MOST_OBJECTS: usize = 500;

/// The list. `path` is the path of the run's page.
pub(crate) fn objects(path: &str, found: &RunObjects) -> Markup {
    let of_kind = |kind: &str| {
        let objects = found.objects.iter();
        objects.filter(|object| object.kind == kind).collect()
    };
    html! {
        @for kind in KINDS {
            @let objects: Vec<&RunObject> = of_kind(kind);
            @if !objects.is_empty() {
                h2 { (kind) " " span.muted { (objects.len()) } }
                @for object in objects.iter().take(MOST_OBJECTS) {
                    details.object data-object={(path) "/object?kind=" (encoded(kind)) "&name=" (encoded(&object.metadata.name))} {
                        summary { (object.metadata.name) }
                        pre tabindex="0" aria-label={"YAML of " (object.metadata.name)} { "Loading\u{2026}" }
                    }
                }
                @if objects.len() > MOST_OBJECTS {
                    p.muted { (objects.len() - MOST_OBJECTS) " more are not shown." }
                }
            }
        }
        @if found.objects.is_empty() { p.muted { "No objects." } }
        @for unseen in &found.unseen { p.muted { "Not seen: " (unseen) } }
    }
}

/// An object as YAML, without the contents of Secrets.
pub(crate) fn object(value: Value) -> String {
    yaml::write(&crate::redact::redacted(value))
}
