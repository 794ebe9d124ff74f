//! Merges an applied configuration into the live object, and removes fields
//! that no manager owns any more.

use longshore_schema::{OwnedType, Ownership};
use serde_json::{Map, Value};

use super::{
    collect,
    element::{self, Element},
    set::FieldSet,
};

type Object = Map<String, Value>;

/// Returns the live object merged with the configuration.
pub(super) fn merge(at: OwnedType<'_>, live: &Object, config: &Object) -> Object {
    let mut merged = live.clone();
    for (name, value) in config {
        let below = at.field(name).unwrap_or(OwnedType::Any);
        let value = match live.get(name) {
            Some(live) => merge_value(below, live, value),
            None => value.clone(),
        };
        merged.insert(name.clone(), value);
    }
    merged
}

fn merge_value(at: OwnedType<'_>, live: &Value, config: &Value) -> Value {
    match (live, config) {
        (Value::Object(live), Value::Object(fields))
            if at.ownership(config) == Ownership::Fields =>
        {
            return Value::Object(merge(at, live, fields));
        }
        (Value::Array(live), Value::Array(items)) => {
            let ownership = at.ownership(config);
            if let Ownership::Items | Ownership::Values = ownership
                && let (Ok(live), Ok(items)) = (
                    collect::elements(at, ownership, live),
                    collect::elements(at, ownership, items),
                )
            {
                return Value::Array(merge_lists(at.items(), &live, &items));
            }
        }
        // For values that are owned by part, null does not change the ownership.
        (Value::Object(_) | Value::Array(_), Value::Null)
            if at.ownership(live) != Ownership::Whole =>
        {
            return live.clone();
        }
        _ => {}
    }
    config.clone()
}

/// Merges lists item by item. Items of both lists take the order of the
/// configuration. Items of only the live list keep their predecessor; new items
/// precede their successor in the configuration.
fn merge_lists(
    at: OwnedType<'_>,
    live: &[(Element, &Value)],
    config: &[(Element, &Value)],
) -> Vec<Value> {
    let wanted = Index::new(config);
    let found = Index::new(live);
    let mut merged = Vec::with_capacity(live.len().max(config.len()));
    let mut taken = vec![false; config.len()];
    let mut shared = config
        .iter()
        .filter(|(element, _)| found.get(element).is_some())
        .map(|(element, _)| element)
        .peekable();
    let mut rest = live.iter().peekable();
    let mut next = 0;
    loop {
        if let Some((element, value)) = rest.peek() {
            match wanted.get(element) {
                None => {
                    merged.push((*value).clone());
                    rest.next();
                    continue;
                }
                Some(place) => {
                    let is_next = shared.peek().is_some_and(|expected| *expected == element);
                    if taken[place] || (next < config.len() && place != next && !is_next) {
                        // The item takes its position from the configuration.
                        rest.next();
                        continue;
                    }
                }
            }
        }
        let Some((element, value)) = config.get(next) else {
            break;
        };
        merged.push(match found.get(element).map(|place| live[place].1) {
            Some(live) if !found.is_duplicate(element) => merge_value(at, live, value),
            _ => (*value).clone(),
        });
        taken[next] = true;
        shared.next_if(|expected| *expected == element);
        next += 1;
    }
    merged
}

/// Finds the positions of elements in a list.
struct Index<'a>(Vec<(&'a Element, usize)>);

impl<'a> Index<'a> {
    fn new(list: &'a [(Element, &Value)]) -> Self {
        let mut places: Vec<_> = list
            .iter()
            .enumerate()
            .map(|(place, (element, _))| (element, place))
            .collect();
        places.sort_unstable();
        Self(places)
    }

    fn get(&self, element: &Element) -> Option<usize> {
        let at = self.0.partition_point(|(e, _)| *e < element);
        self.0
            .get(at)
            .filter(|(e, _)| *e == element)
            .map(|(_, place)| *place)
    }

    fn is_duplicate(&self, element: &Element) -> bool {
        let at = self.0.partition_point(|(e, _)| *e < element);
        self.0.get(at + 1).is_some_and(|(e, _)| *e == element)
    }
}

/// Returns the object without the fields of a set.
pub(super) fn remove(at: OwnedType<'_>, object: &Object, set: &FieldSet) -> Object {
    let mut kept = Object::new();
    for (name, value) in object {
        let below = at.field(name).unwrap_or(OwnedType::Any);
        if let Some(value) = remaining(below, value, set.get(&element::field(name))) {
            kept.insert(name.clone(), value);
        }
    }
    kept
}

/// The remaining part of a value; `None` if no part remains.
fn remaining(at: OwnedType<'_>, value: &Value, set: Option<&FieldSet>) -> Option<Value> {
    let Some(set) = set else {
        return Some(value.clone());
    };
    if set.owned {
        return None;
    }
    match (at.ownership(value), value) {
        (Ownership::Fields, Value::Object(fields)) => {
            let kept = remove(at, fields, set);
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        (ownership @ (Ownership::Items | Ownership::Values), Value::Array(list)) => {
            let items = collect::elements(at, ownership, list).ok()?;
            let kept: Vec<_> = items
                .iter()
                .filter_map(|(element, value)| remaining(at.items(), value, set.get(element)))
                .collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        // A part of an atomic value cannot be removed separately.
        (_, Value::Object(_) | Value::Array(_)) => None,
        _ => Some(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::Gvk;
    use longshore_schema::registry;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn pod() -> OwnedType<'static> {
        OwnedType::Builtin(
            registry()
                .root(&Gvk::from_api_version("v1", "Pod"))
                .unwrap(),
        )
    }

    fn merged(live: Value, config: Value) -> Value {
        merge(
            pod(),
            live.as_object().unwrap(),
            config.as_object().unwrap(),
        )
        .into()
    }

    fn names(order: &str) -> Value {
        let list: Vec<_> = order
            .chars()
            .map(|c| json!({"name": c.to_string()}))
            .collect();
        json!({"spec": {"containers": list}})
    }

    fn order(pod: &Value) -> String {
        let list = pod["spec"]["containers"].as_array().unwrap();
        list.iter().map(|c| c["name"].as_str().unwrap()).collect()
    }

    #[test]
    fn rule_18_fields_merge_and_atomic_values_are_replaced() {
        let live = json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["x"]},
            "spec": {"containers": [{"name": "a", "image": "1", "command": ["x", "y"]}],
                "tolerations": [{"key": "a"}], "nodeSelector": {"a": "1"}}});
        let config = json!({"metadata": {"labels": {"b": "2"}, "finalizers": ["y", "x"]},
            "spec": {"containers": [{"name": "b"}, {"name": "a", "command": ["z"]}],
                "tolerations": [{"key": "b"}], "nodeSelector": {"b": "1"}}});
        let expected = json!({"metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["y", "x"]},
            "spec": {"containers": [{"name": "b"}, {"name": "a", "image": "1", "command": ["z"]}],
                "tolerations": [{"key": "b"}], "nodeSelector": {"b": "1"}}});
        assert_eq!(merged(live, config), expected);
    }

    #[test]
    fn items_take_the_order_of_the_configuration() {
        for (live, config, expected) in [
            ("", "ab", "ab"),
            ("ab", "", "ab"),
            ("ab", "ba", "ba"),
            ("abc", "ca", "bca"),
            ("abc", "dc", "abdc"),
            ("abc", "xaybz", "xaybcz"),
            ("xay", "a", "xay"),
        ] {
            let result = merged(names(live), names(config));
            assert_eq!(order(&result), expected, "{live} and {config}");
        }
    }

    #[test]
    fn null_replaces_only_scalars() {
        let live = json!({"spec": {"nodeName": "a", "containers": [{"name": "a"}]}});
        let result = merged(
            live,
            json!({"spec": {"nodeName": null, "containers": null}}),
        );
        assert_eq!(
            result,
            json!({"spec": {"nodeName": null, "containers": [{"name": "a"}]}})
        );
    }

    #[test]
    fn items_and_fields_are_removed() {
        let object = json!({"metadata": {"labels": {"a": "1"}}, "spec": {
            "nodeName": "x", "containers": [{"name": "a", "image": "1"}, {"name": "b"}],
            "tolerations": [{"key": "a"}]}});
        let set = FieldSet::default()
            .with(&["f:metadata", "f:labels", "f:a"])
            .with(&["f:spec", "f:containers", r#"k:{"name":"b"}"#])
            .with(&["f:spec", "f:containers", r#"k:{"name":"a"}"#, "f:image"])
            .with(&["f:spec", "f:tolerations"]);
        let kept: Value = remove(pod(), object.as_object().unwrap(), &set).into();
        assert_eq!(
            kept,
            json!({"spec": {"nodeName": "x", "containers": [{"name": "a"}]}})
        );
    }

    proptest! {
        #[test]
        fn no_item_is_lost_or_duplicated(live in "[a-f]{0,6}", config in "[a-f]{0,6}") {
            let distinct = |text: &str| {
                let mut seen = String::new();
                text.chars().for_each(|c| if !seen.contains(c) { seen.push(c) });
                seen
            };
            let (live, config) = (distinct(&live), distinct(&config));
            let result = order(&merged(names(&live), names(&config)));
            let mut sorted: Vec<_> = result.chars().collect();
            sorted.sort_unstable();
            let mut expected: Vec<_> = distinct(&format!("{live}{config}")).chars().collect();
            expected.sort_unstable();
            prop_assert_eq!(sorted, expected);
            let shown: String = result.chars().filter(|c| config.contains(*c)).collect();
            prop_assert_eq!(shown, config.clone());
            prop_assert_eq!(order(&merged(names(&result), names(&config))), result);
        }
    }
}
