//! Facts about fields that k8s-openapi's schemas leave out: how strategic merge
//! and server-side apply treat lists and objects. Read from `facts/lists.txt`,
//! which `facts/generate.py` takes from the types of a release of Kubernetes.
//!
//! A line `@package` opens a package. A line `Type.field word…` describes a
//! field, `Type word…` about every object of the type. Words: `patch=` the
//! strategies of strategic merge, `key=` its merge key, `list=` the list type
//! of server-side apply (`atomic`, `set` or `map`), `keys=` the keys of a map
//! list, `map=atomic` an object that is applied as a whole, `default=` what a key
//! of a map list is when it is left out.

use std::collections::HashMap;

static LISTS: &str = include_str!("facts/lists.txt");

/// How a strategic merge patch treats a list or an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Strategy {
    /// Lists are replaced, objects merged field by field.
    #[default]
    Replace,
    /// A list is merged: by the merge key, or as a set of plain values.
    Merge,
    /// An object: fields that `$retainKeys` does not name are dropped.
    RetainKeys,
    /// A list merged by its key, in whose items `$retainKeys` counts.
    MergeRetainKeys,
    /// An object that is replaced as a whole.
    ReplaceObject,
}

/// The strategic-merge rule of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PatchRule {
    /// The field that identifies a list's items.
    pub merge_key: Option<&'static str>,
    /// How patches change the field.
    pub strategy: Strategy,
}

/// How server-side apply owns a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListType {
    /// As a whole.
    Atomic,
    /// Value by value.
    Set,
    /// Item by item, identified by [`TypeRef::list_map_keys`](crate::TypeRef::list_map_keys).
    Map,
}

/// What the table says of a field or a type.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fact {
    pub(crate) patch: PatchRule,
    pub(crate) list: Option<ListType>,
    pub(crate) keys: &'static [&'static str],
    pub(crate) atomic: bool,
    pub(crate) default: Option<&'static str>,
}

/// The table by full name of type, then field; the type itself is field `""`.
pub(crate) type Facts = HashMap<String, HashMap<&'static str, Fact>>;

/// Reads the table.
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
        // Of lists `replace` is the rule anyway; it is only said of objects.
        Some(("patch", "replace")) => fact.patch.strategy = Strategy::ReplaceObject,
        Some(("patch", "retainKeys")) => fact.patch.strategy = Strategy::RetainKeys,
        Some(("patch", _)) => fact.patch.strategy = Strategy::MergeRetainKeys,
        Some(("key", key)) => fact.patch.merge_key = Some(key),
        Some(("list", "map")) => fact.list = Some(ListType::Map),
        Some(("list", "set")) => fact.list = Some(ListType::Set),
        Some(("list", _)) => fact.list = Some(ListType::Atomic),
        // The table is read once; its few key lists live as long as it does.
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
    fn every_word_is_known() {
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
    fn every_fact_is_about_a_field_that_exists() {
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
