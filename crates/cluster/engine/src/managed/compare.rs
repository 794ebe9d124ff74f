//! Compares two states of an object. Only the parts that differ are examined
//! closely.

use longshore_schema::{OwnedType, Ownership, Shape, is_zero};
use serde_json::{Map, Value};

use super::{collect, element, set::FieldSet};

/// The fields in which two states differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Fields that are new or have another value.
    pub(crate) changed: FieldSet,
    /// Fields that were removed.
    pub(crate) removed: FieldSet,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }

    fn push(&mut self, element: element::Element, inner: Self) {
        match (inner.changed.is_empty(), inner.removed.is_empty()) {
            (false, false) => {
                self.changed.push(element.clone(), inner.changed);
                self.removed.push(element, inner.removed);
            }
            (false, true) => self.changed.push(element, inner.changed),
            (true, _) => self.removed.push(element, inner.removed),
        }
    }

    fn modified() -> Self {
        Self {
            changed: FieldSet::leaf(),
            removed: FieldSet::default(),
        }
    }
}

/// The implied value of a field that is always present.
fn always(at: OwnedType<'_>, name: &str) -> Option<&'static Value> {
    let (_, zero) = at.always().iter().find(|(field, _)| *field == name)?;
    Some(zero)
}

/// Compares two states of an object.
pub(crate) fn objects(
    at: OwnedType<'_>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Changes {
    let mut changes = Changes::default();
    for (name, new) in after {
        let below = at.field(name).unwrap_or(OwnedType::Any);
        let inner = match before.get(name) {
            Some(old) => values(below, old, new),
            None if let Some(zero) = always(at, name) => values(below, zero, new),
            None if is_left_out(below, new) => continue,
            None => Changes {
                changed: whole(below, new),
                removed: FieldSet::default(),
            },
        };
        if !inner.is_empty() {
            changes.push(element::field(name), inner);
        }
    }
    for (name, old) in before {
        if after.contains_key(name) {
            continue;
        }
        let below = at.field(name).unwrap_or(OwnedType::Any);
        let inner = if let Some(zero) = always(at, name) {
            values(below, old, zero)
        } else if is_left_out(below, old) {
            continue;
        } else {
            Changes {
                changed: FieldSet::default(),
                removed: whole(below, old),
            }
        };
        if !inner.is_empty() {
            changes.push(element::field(name), inner);
        }
    }
    changes.changed.sort();
    changes.removed.sort();
    changes
}

fn values(at: OwnedType<'_>, old: &Value, new: &Value) -> Changes {
    match (old, new) {
        (Value::Object(before), Value::Object(after)) if at.ownership(new) == Ownership::Fields => {
            return objects(at, before, after);
        }
        // A missing value is equivalent to an empty one.
        (Value::Null, Value::Object(after)) if at.ownership(new) == Ownership::Fields => {
            return objects(at, &Map::new(), after);
        }
        (Value::Object(before), Value::Null) if at.ownership(old) == Ownership::Fields => {
            return objects(at, before, &Map::new());
        }
        (Value::Array(before), Value::Array(after)) if before == after => {
            return Changes::default();
        }
        (Value::Array(_) | Value::Null, Value::Array(_)) | (Value::Array(_), Value::Null) => {
            let side = |value: &Value| value.as_array().map_or(0, Vec::len);
            if side(old) + side(new) == 0 {
                return Changes::default();
            }
            let ownership = at.ownership(if new.is_null() { old } else { new });
            if let Ownership::Values | Ownership::Items = ownership
                && let Some(changes) = lists(at, ownership, old, new)
            {
                return changes;
            }
        }
        _ => {}
    }
    if old == new || (old.is_null() && is_zero(new)) || (new.is_null() && is_zero(old)) {
        Changes::default()
    } else {
        Changes::modified()
    }
}

/// Compares lists item by item; `None` if the items cannot be distinguished.
fn lists(at: OwnedType<'_>, ownership: Ownership, old: &Value, new: &Value) -> Option<Changes> {
    let sorted = |value| {
        let list = Value::as_array(value).map_or(&[][..], Vec::as_slice);
        let mut items = collect::elements(at, ownership, list).ok()?;
        items.sort_by(|(a, _), (b, _)| a.cmp(b));
        Some(items)
    };
    let (before, after) = (sorted(old)?, sorted(new)?);
    let mut before = before.chunk_by(|(a, _), (b, _)| a == b).peekable();
    let mut after = after.chunk_by(|(a, _), (b, _)| a == b).peekable();
    let mut changes = Changes::default();
    loop {
        let element = match (before.peek(), after.peek()) {
            (None, None) => break,
            (Some(old), None) => old[0].0.clone(),
            (None, Some(new)) => new[0].0.clone(),
            (Some(old), Some(new)) => old[0].0.as_ref().min(new[0].0.as_ref()).into(),
        };
        let old = before.next_if(|duplicates| duplicates[0].0 == element);
        let new = after.next_if(|duplicates| duplicates[0].0 == element);
        let inner = items(at.items(), old.unwrap_or_default(), new.unwrap_or_default());
        if !inner.is_empty() {
            changes.push(element, inner);
        }
    }
    Some(changes)
}

/// Compares the items at one path element. There may be none, one, or several
/// with the same keys.
fn items(
    at: OwnedType<'_>,
    old: &[(element::Element, &Value)],
    new: &[(element::Element, &Value)],
) -> Changes {
    match (old, new) {
        ([(_, old)], [(_, new)]) => values(at, old, new),
        ([], [(_, new)]) => Changes {
            changed: whole(at, new),
            removed: FieldSet::default(),
        },
        ([(_, old)], []) => Changes {
            changed: FieldSet::default(),
            removed: whole(at, old),
        },
        ([], []) => Changes::default(),
        ([(_, old)], _) => Changes {
            changed: FieldSet::leaf(),
            removed: whole(at, old).difference(&FieldSet::leaf()),
        },
        (_, [(_, new)]) => Changes {
            changed: whole(at, new),
            removed: FieldSet::default(),
        },
        ([], _) => Changes::modified(),
        (_, []) => Changes {
            changed: FieldSet::default(),
            removed: FieldSet::leaf(),
        },
        (old, new) => {
            let same = old.len() == new.len() && old.iter().zip(new).all(|(a, b)| a.1 == b.1);
            if same {
                Changes::default()
            } else {
                Changes::modified()
            }
        }
    }
}

/// All fields of a value that was added or removed as a whole.
fn whole(at: OwnedType<'_>, value: &Value) -> FieldSet {
    let mut set = match (at.ownership(value), value) {
        (Ownership::Fields, Value::Object(fields)) => {
            let mut set = FieldSet::default();
            for (name, value) in fields {
                let below = at.field(name).unwrap_or(OwnedType::Any);
                if always(at, name).is_some() || !is_left_out(below, value) {
                    set.push(element::field(name), whole(below, value));
                }
            }
            for (name, zero) in at.always() {
                if !fields.contains_key(*name) {
                    let below = at.field(name).unwrap_or(OwnedType::Any);
                    set.push(element::field(name), whole(below, zero));
                }
            }
            set.sort();
            set
        }
        (ownership @ (Ownership::Values | Ownership::Items), Value::Array(list)) => {
            new_items(at, ownership, list)
        }
        _ => FieldSet::default(),
    };
    set.owned = true;
    set
}

/// The fields of a new list; empty if its items cannot be distinguished.
fn new_items(at: OwnedType<'_>, ownership: Ownership, list: &[Value]) -> FieldSet {
    let mut set = FieldSet::default();
    let Ok(mut items) = collect::elements(at, ownership, list) else {
        return set;
    };
    items.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut items = items.into_iter().peekable();
    while let Some((element, value)) = items.next() {
        let mut inner = None;
        while items.next_if(|(twin, _)| *twin == element).is_some() {
            inner = Some(FieldSet::leaf());
        }
        let inner = inner.unwrap_or_else(|| whole(at.items(), value));
        set.push(element, inner);
    }
    set
}

/// Returns true if the built-in Go types omit the value when they are encoded.
fn is_left_out(at: OwnedType<'_>, value: &Value) -> bool {
    let OwnedType::Builtin(_) = at else {
        return false;
    };
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty() && at.shape() == Shape::Map,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::Gvk;
    use longshore_schema::registry;
    use serde_json::json;

    use super::*;

    fn changes(kind: &str, before: Value, after: Value) -> (String, String) {
        let root = registry().root(&Gvk::from_api_version("v1", kind));
        let root = root.map_or(OwnedType::Any, OwnedType::Builtin);
        let changes = objects(
            root,
            before.as_object().unwrap(),
            after.as_object().unwrap(),
        );
        (changes.changed.to_text(), changes.removed.to_text())
    }

    fn pod(containers: Value) -> Value {
        json!({"spec": {"containers": containers}})
    }

    #[test]
    fn rule_18_new_objects_are_recorded_as_by_kubernetes() {
        let pod = json!({
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i", "env": [], "ports": []}],
                "securityContext": {}, "restartPolicy": "Always",
                "volumes": [{"name": "v", "emptyDir": {}}]},
            "status": {},
        });
        let expected = json!({
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {
                "f:containers": {"k:{\"name\":\"c\"}":
                    {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}},
                "f:restartPolicy": {}, "f:securityContext": {},
                "f:volumes": {".": {}, "k:{\"name\":\"v\"}":
                    {".": {}, "f:emptyDir": {}, "f:name": {}}}},
        });
        let (changed, removed) = changes("Pod", json!({}), pod);
        assert_eq!(serde_json::from_str::<Value>(&changed).unwrap(), expected);
        assert_eq!(removed, "{}");
    }

    #[test]
    fn rule_18_only_changes_are_recorded() {
        let before = pod(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]));
        let after = pod(json!([{"name": "c", "image": "1"}, {"name": "b", "image": "2"}]));
        let expected = json!({"f:spec": {"f:containers": {
            "k:{\"name\":\"b\"}": {"f:image": {}},
            "k:{\"name\":\"c\"}": {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}}}});
        let (changed, removed) = changes("Pod", before.clone(), after);
        assert_eq!(serde_json::from_str::<Value>(&changed).unwrap(), expected);
        assert_eq!(
            removed,
            r#"{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{}}}}}"#
        );
        assert_eq!(
            changes("Pod", before.clone(), before),
            ("{}".into(), "{}".into())
        );
    }

    #[test]
    fn reordering_a_keyed_list_is_not_a_change() {
        let a = pod(json!([{"name": "a"}, {"name": "b"}]));
        let b = pod(json!([{"name": "b"}, {"name": "a"}]));
        assert_eq!(changes("Pod", a, b), ("{}".into(), "{}".into()));
        let a = json!({"spec": {"tolerations": [{"key": "a"}, {"key": "b"}]}});
        let b = json!({"spec": {"tolerations": [{"key": "b"}, {"key": "a"}]}});
        assert_eq!(changes("Pod", a, b).0, r#"{"f:spec":{"f:tolerations":{}}}"#);
    }

    #[test]
    fn fields_that_are_always_present_are_not_new() {
        let none = ("{}".to_owned(), "{}".to_owned());
        let after = json!({"spec": {}, "status": {"loadBalancer": {}}});
        assert_eq!(changes("Service", json!({}), after), none);
        let condition = |probe: Value| {
            json!({"status": {"conditions": [
                {"type": "Ready", "status": "True", "lastProbeTime": probe, "lastTransitionTime": "x"}]}})
        };
        let mut without = condition(json!(null));
        without["status"]["conditions"][0]
            .as_object_mut()
            .unwrap()
            .remove("lastProbeTime");
        assert_eq!(changes("Pod", without, condition(json!(null))), none);
    }

    #[test]
    fn items_with_equal_keys_are_compared_as_a_group() {
        let one = pod(json!([{"name": "a", "image": "1"}]));
        let two = pod(json!([{"name": "a", "image": "1"}, {"name": "a", "image": "2"}]));
        let (changed, removed) = changes("Pod", one.clone(), two.clone());
        assert_eq!(
            changed,
            r#"{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{}}}}"#
        );
        assert!(removed.contains("f:image"));
        assert!(changes("Pod", two.clone(), one).0.contains("f:image"));
        assert_eq!(changes("Pod", two.clone(), two), ("{}".into(), "{}".into()));
    }

    #[test]
    fn values_of_unexpected_types_are_compared_verbatim() {
        let (changed, _) = changes("Thing", json!({"a": {"b": 1}}), json!({"a": [1]}));
        assert_eq!(changed, r#"{"f:a":{}}"#);
        let (changed, removed) = changes("Thing", json!({"a": null}), json!({"b": null}));
        assert_eq!((&*changed, &*removed), (r#"{"f:b":{}}"#, r#"{"f:a":{}}"#));
    }
}
