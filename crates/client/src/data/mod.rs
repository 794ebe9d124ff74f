//! Objects, lists and watch lines as JSON text: where their parts are, without
//! parsing the rest. Pure: no I/O, no cluster.

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
pub(crate) use web_page::{PAGE, page, unreadable};

#[cfg(test)]
mod tests;
