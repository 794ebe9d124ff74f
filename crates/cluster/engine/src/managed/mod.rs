//! Managed fields (`metadata.managedFields`) and server-side apply. The module
//! consists of pure functions; the time is an argument.
//!
//! A path identifies a field. A set of fields is a tree of paths, encoded as
//! `FieldsV1`. Each write is compared with the previous state: its manager
//! becomes the only owner of the fields it changes. An apply declares all
//! fields that its manager owns; fields that it no longer declares are removed
//! unless another manager owns them.

mod apply;
mod check;
mod collect;
mod compare;
mod configuration;
mod element;
mod entry;
mod merge;
mod reconcile;
mod record;
mod scope;
mod set;
mod text;

use serde_json::Value;

pub(crate) use apply::{Applied, Applier, ApplyError, Conflict, apply};
pub(crate) use configuration::merged;
pub(crate) use entry::Entry;
pub(crate) use reconcile::reconcile_entries;
pub(crate) use record::record;
pub(crate) use scope::{Scope, Version};

/// Decodes the entries of a stored object from the text of `managedFields`.
pub(crate) fn stored(text: &str) -> Vec<Entry> {
    entry::read(text).unwrap_or_default()
}

/// The entries from which a write starts: the entries in the request if they are valid; none if the
/// request resets them with `[]` or `[{}]`; otherwise the stored entries.
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

/// Encodes entries for an object; empty if the list is empty.
pub(crate) fn text(entries: Vec<Entry>) -> String {
    entry::write(entries)
}

/// Returns true if entries equal the stored entries except for their times.
pub(crate) fn is_stored(entries: &[Entry], stored_text: &str) -> bool {
    entry::equal_except_time(entries, &stored(stored_text))
}

/// The manager name of a write: the explicit name, or the user agent up to its first slash if the
/// name is not set.
pub(crate) fn manager_name(manager: Option<&str>, user_agent: Option<&str>) -> String {
    /// Maximum length of a manager name in bytes.
    const MAX_LENGTH: usize = 128;
    if let Some(name) = manager.filter(|name| !name.is_empty()) {
        return name.to_owned();
    }
    let mut name = String::new();
    let agent = user_agent.unwrap_or_default();
    for letter in agent.chars().take_while(|letter| *letter != '/') {
        if name.len() + letter.len_utf8() > MAX_LENGTH {
            break;
        }
        if !letter.is_control() {
            name.push(letter);
        }
    }
    name
}
