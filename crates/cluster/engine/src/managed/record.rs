//! Records the ownership changes of creates, updates and plain patches.

use std::collections::HashMap;

use longshore_builtin::json::Object;

use super::{
    compare::Changes,
    entry::{Entry, Manager, Operation},
    scope::{ANCIENT, Scope, ownable},
    set::FieldSet,
    text::count_common,
};

/// Maximum number of update managers that are tracked separately.
const MAX_UPDATE_MANAGERS: usize = 10;

/// The entries after a write that changed `before` to `after`. Objects without
/// entries stay untracked, except new ones, which are tracked from the start.
pub(crate) fn record(
    scope: &Scope<'_>,
    entries: Vec<Entry>,
    before: Option<&Object>,
    after: &Object,
    name: &str,
    now: &str,
) -> Vec<Entry> {
    if entries.is_empty() && before.is_some() {
        return entries;
    }
    let nothing = Object::new();
    let before = before.unwrap_or(&nothing);
    let changes = scope.changes(scope.root, before, after);
    let mut kept = Vec::with_capacity(entries.len() + 1);
    for mut entry in entries {
        let lost = if entry.manager.api_version == scope.api_version {
            remove_fields(&mut entry, &changes)
        } else if let Some(version) = scope.version(&entry.manager.api_version) {
            remove_fields(&mut entry, &scope.changes_in(&version, before, after))
        } else {
            // The version of the entry is no longer served.
            Removed::All
        };
        if lost != Removed::All {
            kept.push(entry);
        }
    }
    let own = ownable(changes.changed);
    if !own.is_empty() {
        add_fields(&mut kept, scope.manager(name, Operation::Update), own, now);
    }
    merge_oldest(&mut kept);
    kept
}

#[derive(PartialEq)]
enum Removed {
    Nothing,
    Part,
    All,
}

/// Removes changed and removed fields from an entry.
fn remove_fields(entry: &mut Entry, changes: &Changes) -> Removed {
    let has = |set: &FieldSet| !set.is_empty() && count_common(&entry.fields, set) > 0;
    if !has(&changes.changed) && !has(&changes.removed) {
        return Removed::Nothing;
    }
    let rest = entry
        .set()
        .difference(&changes.changed)
        .difference(&changes.removed);
    if rest.is_empty() {
        return Removed::All;
    }
    entry.fields = rest.to_text();
    Removed::Part
}

/// Adds fields to a manager's entry.
pub(super) fn add_fields(entries: &mut Vec<Entry>, manager: Manager, set: FieldSet, now: &str) {
    let entry = match entries
        .iter_mut()
        .find(|entry| entry.manager.is_same_entry(&manager))
    {
        Some(entry) => {
            if count_common(&entry.fields, &set) < set.len() {
                entry.fields = entry.set().union(set).to_text();
            }
            entry
        }
        None => {
            entries.push(Entry::new(manager, &set));
            let Some(entry) = entries.last_mut() else {
                return;
            };
            entry
        }
    };
    entry.time = Some(now.to_owned());
}

/// Merges the oldest updates of each version into one entry while the list is too long.
fn merge_oldest(entries: &mut Vec<Entry>) {
    let mut updates: Vec<Entry> = Vec::new();
    let count = entries
        .iter()
        .filter(|entry| entry.manager.operation == Operation::Update)
        .count();
    if count <= MAX_UPDATE_MANAGERS {
        return;
    }
    let mut rest = Vec::new();
    for entry in entries.drain(..) {
        match entry.manager.operation {
            Operation::Update => updates.push(entry),
            Operation::Apply => rest.push(entry),
        }
    }
    let key = |entry: &Entry| {
        let name = entry.manager.name.clone();
        (name != ANCIENT, entry.time.clone(), name)
    };
    updates.sort_by_cached_key(key);
    let mut count = updates.len();
    // The first entry of each version, and the field sets merged into it.
    let mut oldest: Vec<(Entry, Vec<FieldSet>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for entry in updates {
        if count <= MAX_UPDATE_MANAGERS {
            rest.push(entry);
            continue;
        }
        match places.get(&entry.manager.api_version) {
            Some(place) => {
                let (bucket, sets) = &mut oldest[*place];
                sets.push(entry.set());
                bucket.time = entry.time;
                count -= 1;
            }
            None => {
                places.insert(entry.manager.api_version.clone(), oldest.len());
                oldest.push((entry, Vec::new()));
            }
        }
    }
    rest.extend(oldest.into_iter().map(|(mut entry, mut sets)| {
        if !sets.is_empty() {
            sets.push(entry.set());
            entry.manager.name = ANCIENT.into();
            entry.manager.subresource.clear();
            entry.fields = union_of(sets).to_text();
        }
        entry
    }));
    *entries = rest;
}

/// The union of many sets, merged pairwise so that no set is traversed once for
/// each other set.
fn union_of(mut sets: Vec<FieldSet>) -> FieldSet {
    while sets.len() > 1 {
        let mut rest = sets.into_iter();
        let mut unions = Vec::with_capacity(rest.len().div_ceil(2));
        while let Some(first) = rest.next() {
            unions.push(match rest.next() {
                Some(second) => first.union(second),
                None => first,
            });
        }
        sets = unions;
    }
    sets.pop().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::Gvk;
    use longshore_schema::{OwnedType, registry};
    use serde_json::{Value, json};

    use super::*;

    const T1: &str = "2026-01-01T00:00:01Z";
    const T2: &str = "2026-01-01T00:00:02Z";

    fn scope() -> Scope<'static> {
        let root = registry().root(&Gvk::from_api_version("v1", "ConfigMap"));
        Scope {
            root: OwnedType::Builtin(root.unwrap()),
            api_version: "v1",
            subresource: "",
            has_status: false,
            has_fixed_spec: false,
            status_metadata: &[],
            versions: &|_| None,
        }
    }

    fn config(data: Value) -> Object {
        let value = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "uid": "u"}, "data": data});
        value.as_object().unwrap().clone()
    }

    fn after(entries: &[Entry], from: Value, to: Value, name: &str) -> Vec<Entry> {
        record(
            &scope(),
            entries.to_vec(),
            Some(&config(from)),
            &config(to),
            name,
            T2,
        )
    }

    fn shown(entries: &[Entry]) -> Vec<(&str, &str, &str)> {
        entries
            .iter()
            .map(|e| {
                let time = e.time.as_deref().unwrap_or_default();
                (&*e.manager.name, &*e.fields, time)
            })
            .collect()
    }

    fn created() -> Vec<Entry> {
        let object = config(json!({"x": "1", "y": "1"}));
        record(&scope(), Vec::new(), None, &object, "me", T1)
    }

    #[test]
    fn rule_18_the_creator_owns_what_it_sent() {
        let all = r#"{"f:data":{".":{},"f:x":{},"f:y":{}}}"#;
        assert_eq!(shown(&created()), [("me", all, T1)]);
    }

    #[test]
    fn rule_18_changing_a_field_takes_ownership() {
        let entries = after(
            &created(),
            json!({"x": "1", "y": "1"}),
            json!({"x": "2", "y": "1"}),
            "you",
        );
        assert_eq!(
            shown(&entries),
            [
                ("me", r#"{"f:data":{".":{},"f:y":{}}}"#, T1),
                ("you", r#"{"f:data":{"f:x":{}}}"#, T2),
            ]
        );
        let entries = after(
            &entries,
            json!({"x": "2", "y": "1"}),
            json!({"y": "1"}),
            "me",
        );
        assert_eq!(
            shown(&entries),
            [("me", r#"{"f:data":{".":{},"f:y":{}}}"#, T1)]
        );
    }

    #[test]
    fn rule_18_a_write_without_changes_records_nothing() {
        let data = json!({"x": "1", "y": "1"});
        assert_eq!(after(&created(), data.clone(), data, "you"), created());
    }

    #[test]
    fn rule_18_untracked_objects_stay_untracked() {
        assert!(after(&[], json!({}), json!({"x": "1"}), "you").is_empty());
    }

    #[test]
    fn entries_of_removed_versions_are_dropped() {
        let mut entries = created();
        entries[0].manager.api_version = "v0".into();
        let entries = after(
            &entries,
            json!({"x": "1", "y": "1"}),
            json!({"x": "2", "y": "1"}),
            "you",
        );
        assert_eq!(shown(&entries), [("you", r#"{"f:data":{"f:x":{}}}"#, T2)]);
    }

    #[test]
    fn rule_18_the_oldest_managers_are_merged() {
        let mut entries = Vec::new();
        let mut data = json!({"base": "1"});
        entries.extend(created());
        for number in 0..12 {
            let before = data.clone();
            data[format!("k{number:02}")] = "1".into();
            let name = format!("m{number:02}");
            entries = after(&entries, before, data.clone(), &name);
            assert!(entries.len() <= MAX_UPDATE_MANAGERS);
        }
        let names: Vec<_> = entries.iter().map(|e| e.manager.name.as_str()).collect();
        assert!(
            names.contains(&ANCIENT) && names.contains(&"m11"),
            "{names:?}"
        );
        assert!(!names.contains(&"me") && !names.contains(&"m00"));
        let ancient = entries.iter().find(|e| e.manager.name == ANCIENT).unwrap();
        assert!(ancient.set().has(&["f:data", "f:k00"]));
        assert!(ancient.set().has(&["f:data", "f:x"]));
    }
}
