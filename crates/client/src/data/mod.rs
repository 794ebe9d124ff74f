//! Locates the parts of objects, lists and watch events in their JSON text, without parsing
//! the rest. All functions are pure.

mod index;
mod json;
mod list;
mod managed_fields;
mod snapshot;
mod watch_line;
mod web_page;

pub(crate) use list::{cursor_ahead, list};
pub(crate) use snapshot::Snapshot;
pub(crate) use watch_line::watch_line;
pub(crate) use web_page::{WEB_PAGE, describe_web_page, unreadable};

#[cfg(test)]
mod tests;
