//! Entries of `metadata.managedFields`: managers and the fields that they own.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::set::FieldSet;

/// The way in which a manager acquired its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// The identity of an entry. The version is not part of the identity of applied fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) operation: Operation,
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

impl Manager {
    /// Returns true if both identify the same entry.
    pub(super) fn is_same_entry(&self, other: &Self) -> bool {
        self.name == other.name
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }
}

/// Formats the manager as conflict messages do.
impl std::fmt::Display for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.name)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        match self.operation {
            Operation::Apply => Ok(()),
            Operation::Update => write!(f, " using {}", self.api_version),
        }
    }
}

/// A single entry. The field set is decoded on demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) manager: Manager,
    /// The time of the manager's last write, as RFC 3339 in seconds.
    pub(crate) time: Option<String>,
    /// `FieldsV1`.
    pub(crate) fields: String,
}

impl Entry {
    pub(super) fn new(manager: Manager, set: &FieldSet) -> Self {
        Self {
            manager,
            time: None,
            fields: set.to_text(),
        }
    }

    /// The field set; empty if the text is invalid.
    pub(super) fn set(&self) -> FieldSet {
        FieldSet::from_text(&self.fields).unwrap_or_default()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EncodedEntry<'a> {
    #[serde(default)]
    manager: String,
    operation: String,
    api_version: String,
    #[serde(default)]
    time: Option<String>,
    fields_type: String,
    #[serde(borrow, default)]
    fields_v1: Option<&'a RawValue>,
    #[serde(default)]
    subresource: String,
}

/// Decodes the entries of a stored object; `None` if an entry is invalid.
pub(super) fn read(text: &str) -> Option<Vec<Entry>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let texts: Vec<EncodedEntry<'_>> = serde_json::from_str(text).ok()?;
    texts
        .into_iter()
        .map(|text| {
            let operation = match text.operation.as_str() {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return None,
            };
            if text.api_version.is_empty() || text.fields_type != "FieldsV1" {
                return None;
            }
            Some(Entry {
                manager: Manager {
                    name: text.manager,
                    operation,
                    api_version: text.api_version,
                    subresource: text.subresource,
                },
                time: text.time,
                fields: text.fields_v1.map_or("{}", RawValue::get).to_owned(),
            })
        })
        .collect()
}

/// Decodes and normalizes the entries that a client sent. As in Kubernetes, the
/// last entry of a manager wins.
pub(super) fn read_sent(sent: &Value) -> Option<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut places: HashMap<Manager, usize> = HashMap::new();
    for mut entry in read(&sent.to_string())? {
        let set = FieldSet::from_text(&entry.fields).ok()?;
        entry.fields = set.normalized().to_text();
        match places.get(&entry.manager) {
            Some(place) => entries[*place] = entry,
            None => {
                places.insert(entry.manager.clone(), entries.len());
                entries.push(entry);
            }
        }
    }
    Some(entries)
}

/// Encodes the entries, sorted by operation, time and name.
pub(super) fn write(mut entries: Vec<Entry>) -> String {
    if entries.is_empty() {
        return String::new();
    }
    // RFC 3339 times in whole seconds of UTC sort as text.
    entries.sort_by(|a, b| {
        let key = |entry: &Entry| (entry.manager.operation, entry.time.clone());
        let (a_manager, b_manager) = (&a.manager, &b.manager);
        key(a)
            .cmp(&key(b))
            .then_with(|| a_manager.name.cmp(&b_manager.name))
            .then_with(|| a_manager.api_version.cmp(&b_manager.api_version))
            .then_with(|| a_manager.subresource.cmp(&b_manager.subresource))
    });
    let size: usize = entries.iter().map(|entry| entry.fields.len() + 200).sum();
    let mut text = String::with_capacity(size);
    for entry in &entries {
        text.push(if text.is_empty() { '[' } else { ',' });
        write_one(entry, &mut text);
    }
    text.push(']');
    text
}

fn write_one(entry: &Entry, text: &mut String) {
    let mut member = |name: &str, value: &str, sep: &str| {
        text.push_str(sep);
        text.push_str(name);
        text.push_str(&Value::from(value).to_string());
    };
    member("\"manager\":", &entry.manager.name, "{");
    member("\"operation\":", entry.manager.operation.as_str(), ",");
    member("\"apiVersion\":", &entry.manager.api_version, ",");
    if let Some(time) = &entry.time {
        member("\"time\":", time, ",");
    }
    member("\"fieldsType\":", "FieldsV1", ",");
    text.push_str(",\"fieldsV1\":");
    text.push_str(&entry.fields);
    if !entry.manager.subresource.is_empty() {
        text.push_str(",\"subresource\":");
        text.push_str(&Value::from(entry.manager.subresource.as_str()).to_string());
    }
    text.push('}');
}

/// Returns true if two lists of entries are equal except for their times.
pub(super) fn equal_except_time(a: &[Entry], b: &[Entry]) -> bool {
    let mut theirs: HashMap<&Manager, Vec<&Entry>> = HashMap::new();
    for entry in b {
        theirs.entry(&entry.manager).or_default().push(entry);
    }
    let same = |a: &Entry, b: &Entry| a.fields == b.fields || a.set() == b.set();
    a.len() == b.len()
        && a.iter().all(|a| {
            let known = theirs.get(&a.manager).into_iter().flatten();
            known.into_iter().any(|b| same(a, b))
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    pub(in crate::managed) fn entry(name: &str, operation: Operation, time: &str) -> Entry {
        Entry {
            manager: Manager {
                name: name.into(),
                operation,
                api_version: "v1".into(),
                subresource: String::new(),
            },
            time: Some(time.into()),
            fields: r#"{"f:a":{}}"#.into(),
        }
    }

    #[test]
    fn rule_18_entries_are_sorted_by_operation_time_and_name() {
        let entries = vec![
            entry("z", Operation::Update, "2026-01-01T00:00:01Z"),
            entry("a", Operation::Update, "2026-01-01T00:00:02Z"),
            entry("b", Operation::Update, "2026-01-01T00:00:01Z"),
            entry("q", Operation::Apply, "2026-01-01T00:00:09Z"),
        ];
        let text = write(entries);
        let names: Vec<_> = read(&text).unwrap();
        let names: Vec<_> = names.iter().map(|e| e.manager.name.as_str()).collect();
        assert_eq!(names, ["q", "b", "z", "a"]);
        let first = r#"[{"manager":"q","operation":"Apply","apiVersion":"v1","time":"2026-01-01T00:00:09Z","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}}},"#;
        assert!(text.starts_with(first), "{text}");
        assert_eq!(write(Vec::new()), "");
    }

    #[test]
    fn invalid_entries_are_rejected() {
        let good = json!({"manager": "a", "operation": "Update", "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}});
        assert_eq!(read_sent(&json!([good])).unwrap().len(), 1);
        for (field, value) in [
            ("operation", json!("Jump")),
            ("apiVersion", json!("")),
            ("fieldsType", json!("FieldsV2")),
            ("fieldsV1", json!({"a": {}})),
            ("fieldsV1", json!([])),
        ] {
            let mut bad = good.clone();
            bad[field] = value;
            assert_eq!(read_sent(&json!([bad])), None, "{field}");
        }
        assert_eq!(read_sent(&json!([{}])), None);
        assert_eq!(read(""), Some(Vec::new()));
    }

    #[test]
    fn rule_18_managers_are_formatted_as_in_conflict_messages() {
        let mut manager = entry("a", Operation::Update, "").manager;
        assert_eq!(manager.to_string(), "\"a\" using v1");
        manager.subresource = "status".into();
        assert_eq!(
            manager.to_string(),
            "\"a\" with subresource \"status\" using v1"
        );
        manager.operation = Operation::Apply;
        assert_eq!(manager.to_string(), "\"a\" with subresource \"status\"");
    }
}
