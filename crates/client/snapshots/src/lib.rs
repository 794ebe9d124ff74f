//! Locates the parts of objects, lists and watch events in their JSON text, without parsing
//! the rest. All functions are pure.
//!
//! ```
//! use longshore_snapshots::Snapshot;
//!
//! let text = br#"{"metadata":{"name":"web"},"status":{"phase":"Running"}}"#;
//! let pod = Snapshot::parse(&text[..].into(), "the pod")?;
//! assert_eq!(pod.name(), "web");
//! let phase = pod.part(&["status", "phase"]);
//! assert_eq!(phase.ok().flatten(), Some(&br#""Running""#[..]));
//! # Ok::<(), longshore_snapshots::Unreadable>(())
//! ```

mod index;
mod json;
mod list;
mod managed_fields;
mod snapshot;
mod unreadable;
mod watch_line;
mod web_page;

pub use json::SyntaxError;
pub use list::{ListBody, cursor_ahead, list};
pub use snapshot::Snapshot;
pub use unreadable::Unreadable;
pub use watch_line::watch_line;
pub use web_page::{WEB_PAGE, describe_web_page, unreadable};

#[cfg(test)]
mod tests;
