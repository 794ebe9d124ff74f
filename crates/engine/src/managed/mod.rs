//! Who manages which fields of an object (`metadata.managedFields`), and
//! server-side apply, which is built on it. Pure: functions from values to
//! values; the clock is an argument.
//!
//! A field is named by its path; a set of fields is a tree of paths, written as
//! `FieldsV1`. Each write is compared with what was there before: what it
//! changed is its manager's, and no other's. An apply says which fields it
//! wants to have; what it names no more, and nobody else does, goes.

mod apply;
mod check;
mod collect;
mod compare;
mod element;
mod entry;
mod merge;
mod realign;
mod record;
mod scope;
mod set;
mod text;

use serde_json::Value;

pub(crate) use apply::{Applied, Applier, Conflict, Refusal, apply};
pub(crate) use entry::Entry;
pub(crate) use realign::realign_all as realign;
pub(crate) use record::record;
pub(crate) use scope::{Scope, Version};

/// The entries of a stored object, from the text of its `managedFields`.
pub(crate) fn stored(text: &str) -> Vec<Entry> {
    entry::read(text).unwrap_or_default()
}

/// The entries a write starts from: those that were sent along, if they can be
/// read; none, if they were reset by `[]` or `[{}]`; else those that are stored.
pub(crate) fn base(sent: Option<&Value>, stored_text: &str) -> Vec<Entry> {
    let Some(sent) = sent else {
        return stored(stored_text);
    };
    let is_reset = match sent.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => only.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    };
    if is_reset {
        return Vec::new();
    }
    match entry::read_sent(sent) {
        Some(entries) if !entries.is_empty() => entries,
        _ => stored(stored_text),
    }
}

/// The text of the entries, as it stands in an object; empty for none.
pub(crate) fn text(entries: Vec<Entry>) -> String {
    entry::write(entries)
}

/// Whether entries say what is stored, whenever it was said.
pub(crate) fn is_stored(entries: &[Entry], stored_text: &str) -> bool {
    entry::same_but_for_time(entries, &stored(stored_text))
}

/// The name under which a write is recorded: the manager's, else the user
/// agent up to its first slash.
pub(crate) fn manager_name(manager: Option<&str>, user_agent: Option<&str>) -> String {
    /// Bytes of a manager's name, at most.
    const LONGEST: usize = 128;
    if let Some(name) = manager.filter(|name| !name.is_empty()) {
        return name.to_owned();
    }
    let mut name = String::new();
    let agent = user_agent.unwrap_or_default();
    for letter in agent.chars().take_while(|letter| *letter != '/') {
        if name.len() + letter.len_utf8() > LONGEST {
            break;
        }
        if !letter.is_control() {
            name.push(letter);
        }
    }
    name
}
