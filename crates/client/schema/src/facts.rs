//! Properties of fields that the schemas of k8s-openapi lack: how strategic
//! merge and server-side apply treat lists and objects. They are read from
//! `facts/lists.txt`, which `facts/generate.py` extracts from the types of a
//! Kubernetes release.
//!
//! A line `@package` starts a package. A line `Type.field word…` describes a
//! field, `Type word…` all objects of the type. Words: `patch=` is the patch
//! strategy of strategic merge, `key=` its merge key, `list=` the list type of
//! server-side apply (`atomic`, `set` or `map`), `keys=` the keys of a map
//! list, `map=atomic` an object that is applied as a whole, `default=` the
//! value of an omitted key of a map list.

use std::collections::HashMap;

static LISTS: &str = include_str!("facts/lists.txt");

/// The treatment of a list or an object by a strategic merge patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Strategy {
    /// Replaces lists and merges objects field by field.
    #[default]
    Replace,
    /// Merges a list by its merge key, or as a set of scalars.
    Merge,
    /// Drops the fields of an object that `$retainKeys` does not list.
    RetainKeys,
    /// Merges a list by its key; its items support `$retainKeys`.
    MergeRetainKeys,
    /// Replaces an object as a whole.
    ReplaceObject,
}

/// The strategic merge rule of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PatchRule {
    /// The field that identifies the items of a list.
    pub merge_key: Option<&'static str>,
    /// The patch strategy.
    pub strategy: Strategy,
}

/// The tracking of a list's ownership by server-side apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListType {
    /// As a whole.
    Atomic,
    /// By value.
    Set,
    /// By item, identified by
    /// [`TypeRef::list_map_keys`](crate::TypeRef::list_map_keys).
    Map,
}

/// The properties of a field or a type in the table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fact {
    pub(crate) patch: PatchRule,
    pub(crate) list: Option<ListType>,
    pub(crate) keys: &'static [&'static str],
    pub(crate) atomic: bool,
    pub(crate) default: Option<&'static str>,
}

/// The table by full type name and field; the field `""` is the type itself.
pub(crate) type Facts = HashMap<String, HashMap<&'static str, Fact>>;

/// Parses the table.
pub(crate) fn read() -> Facts {
    let mut facts = Facts::new();
    let mut package = "";
    for line in LISTS.lines() {
        if let Some(name) = line.strip_prefix('@') {
            package = name;
            continue;
        }
        let mut words = line.split(' ');
        let Some(subject) = words.next().filter(|subject| !subject.is_empty()) else {
            continue;
        };
        let (type_name, field) = subject.split_once('.').unwrap_or((subject, ""));
        facts
            .entry(format!("{package}.{type_name}"))
            .or_default()
            .insert(field, words.fold(Fact::default(), with_word));
    }
    facts
}

fn with_word(mut fact: Fact, word: &'static str) -> Fact {
    match word.split_once('=') {
        Some(("patch", "merge")) => fact.patch.strategy = Strategy::Merge,
        // Lists are replaced by default; the word is only used for objects.
        Some(("patch", "replace")) => fact.patch.strategy = Strategy::ReplaceObject,
        Some(("patch", "retainKeys")) => fact.patch.strategy = Strategy::RetainKeys,
        Some(("patch", _)) => fact.patch.strategy = Strategy::MergeRetainKeys,
        Some(("key", key)) => fact.patch.merge_key = Some(key),
        Some(("list", "map")) => fact.list = Some(ListType::Map),
        Some(("list", "set")) => fact.list = Some(ListType::Set),
        Some(("list", _)) => fact.list = Some(ListType::Atomic),
        // The table is read once and its key lists live as long as the program.
        Some(("keys", keys)) => fact.keys = keys.split(',').collect::<Vec<_>>().leak(),
        Some(("map", _)) => fact.atomic = true,
        Some(("default", value)) => fact.default = Some(value),
        _ => debug_assert!(false, "facts/lists.txt: unknown word {word}"),
    }
    fact
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_table_is_known() {
        for line in LISTS.lines().filter(|line| !line.starts_with('@')) {
            for word in line.split(' ').skip(1) {
                let is_known = match word.split_once('=') {
                    Some(("patch", value)) => {
                        ["merge", "merge,retainKeys", "retainKeys", "replace"].contains(&value)
                    }
                    Some(("list", value)) => ["atomic", "set", "map"].contains(&value),
                    Some(("key" | "keys" | "default", value)) => !value.is_empty(),
                    Some(("map", value)) => value == "atomic",
                    _ => false,
                };
                assert!(is_known, "{line}");
            }
        }
    }

    #[test]
    fn every_fact_describes_an_existing_field() {
        for (type_name, facts) in read() {
            let Some(of_type) = crate::registry().named(&type_name) else {
                continue;
            };
            for field in facts.keys().filter(|field| !field.is_empty()) {
                assert!(of_type.field(field).is_some(), "{type_name}.{field}");
            }
        }
    }
}
