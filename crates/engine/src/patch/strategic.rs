//! Strategic merge patch: Kubernetes' own merge. Objects merge; lists merge by
//! key, as sets or not at all, as the types say; directives in the patch
//! (`$patch`, `$deleteFromPrimitiveList/f`, `$setElementOrder/f`,
//! `$retainKeys`) say the rest.

use longshore_schema::{Strategy, TypeRef};
use serde_json::{Map, Value};

use crate::Error;

type Object = Map<String, Value>;

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// Merges a patch into a document of a type.
pub(super) fn merge(root: TypeRef, document: Value, patch: &Object) -> Result<Value, Error> {
    let mut object = match document {
        Value::Object(object) => object,
        _ => Object::new(),
    };
    merge_object(Some(root), &mut object, patch)?;
    Ok(Value::Object(object))
}

fn wrong(problem: String) -> Error {
    Error::BadRequest(format!("invalid strategic merge patch: {problem}"))
}

enum Directive {
    Merge,
    Replace,
    Delete,
}

/// What a patch says is to be done; to merge is what is done when it says
/// nothing. To say so, too, is refused by Kubernetes.
fn directive(patch: &Object) -> Result<Directive, Error> {
    match patch.get(PATCH) {
        None => Ok(Directive::Merge),
        Some(Value::String(word)) => match word.as_str() {
            "replace" => Ok(Directive::Replace),
            "delete" => Ok(Directive::Delete),
            _ => Err(wrong(format!(
                "unknown patch type: {word} in map: {}",
                Value::Object(patch.clone())
            ))),
        },
        Some(other) => Err(wrong(format!("{PATCH} is no text: {other}"))),
    }
}

fn merge_object(at: Option<TypeRef>, object: &mut Object, patch: &Object) -> Result<(), Error> {
    match directive(patch)? {
        Directive::Delete => {
            object.clear();
            return Ok(());
        }
        Directive::Replace => object.clear(),
        Directive::Merge => {}
    }
    retain_keys(object, patch)?;
    // Orders refer to the list as it was before this patch.
    let orders: Vec<_> = patch
        .iter()
        .filter_map(|(name, order)| Some((name.strip_prefix(ORDER)?, order)))
        .map(|(field, order)| (field, order, object.get(field).cloned()))
        .collect();
    // Where nothing is said of it, the order is that of the patch.
    let implied: Vec<_> = patch
        .iter()
        .filter(|(name, value)| {
            value.is_array()
                && merges(at.and_then(|at| at.field(name)))
                && !patch.contains_key(&format!("{ORDER}{name}"))
        })
        .map(|(name, order)| (name.as_str(), order, object.get(name).cloned()))
        .collect();
    for (name, value) in patch {
        if name == PATCH || name == RETAIN {
            continue;
        }
        if let Some(field) = name.strip_prefix(DELETE) {
            delete_from_list(object, field, value)?;
        } else if !name.starts_with(ORDER) {
            merge_field(at.and_then(|at| at.field(name)), object, name, value)?;
        }
    }
    for (field, order, before) in orders.into_iter().chain(implied) {
        let key = at.and_then(|at| at.field(field)?.patch().merge_key);
        let order = Order {
            key,
            field,
            order,
            before: &before,
            patched: patch.get(field),
        };
        order.apply(object)?;
    }
    Ok(())
}

fn merge_field(
    at: Option<TypeRef>,
    object: &mut Object,
    name: &str,
    patch: &Value,
) -> Result<(), Error> {
    match patch {
        Value::Null => {
            object.remove(name);
        }
        Value::Object(patch) => {
            let mut inner = match object.remove(name) {
                Some(Value::Object(inner)) => inner,
                _ => Object::new(),
            };
            merge_object(at, &mut inner, patch)?;
            object.insert(name.to_owned(), Value::Object(inner));
        }
        Value::Array(patch) if merges(at) => {
            let mut list = match object.remove(name) {
                Some(Value::Array(list)) => list,
                _ => Vec::new(),
            };
            let key = at.and_then(|at| at.patch().merge_key);
            let before: Vec<Value> = list.iter().map(|value| id(key, value)).collect();
            match key {
                Some(key) => merge_by_key(at.and_then(TypeRef::items), key, &mut list, patch)?,
                None => {
                    for value in patch {
                        if !list.contains(value) {
                            list.push(value.clone());
                        }
                    }
                }
            }
            // A patch that gives no order of its own: that of its items.
            let order: Vec<Value> = patch.iter().map(|value| id(key, value)).collect();
            arrange(&mut list, key, &order, &before);
            object.insert(name.to_owned(), Value::Array(list));
        }
        value => {
            object.insert(name.to_owned(), value.clone());
        }
    }
    Ok(())
}

fn merges(at: Option<TypeRef>) -> bool {
    at.is_some_and(|at| {
        matches!(
            at.patch().strategy,
            Strategy::Merge | Strategy::MergeRetainKeys
        )
    })
}

fn merge_by_key(
    item: Option<TypeRef>,
    key: &str,
    list: &mut Vec<Value>,
    patch: &[Value],
) -> Result<(), Error> {
    let mut patches = Vec::with_capacity(patch.len());
    for value in patch {
        let value = value
            .as_object()
            .ok_or_else(|| wrong(format!("{value} stands in a list of objects")))?;
        if value.get(PATCH).is_some_and(|word| word == "merge") {
            return Err(wrong(
                "merging lists cannot yet be specified in the patch".into(),
            ));
        }
        patches.push((directive(value)?, value));
    }
    if patches
        .iter()
        .any(|(directive, _)| matches!(directive, Directive::Replace))
    {
        list.clear();
        // An item with a directive says nothing else, be there what may.
        patches.retain(|(directive, _)| matches!(directive, Directive::Merge));
    }
    for (directive, value) in patches {
        let id = value.get(key).ok_or_else(|| {
            wrong(format!(
                "{} does not contain declared merge key: {key}",
                Value::Object(value.clone())
            ))
        })?;
        let found = list.iter().position(|item| item.get(key) == Some(id));
        if matches!(directive, Directive::Delete) {
            list.retain(|item| item.get(key) != Some(id));
            continue;
        }
        let mut merged = match found.map(|index| std::mem::take(&mut list[index])) {
            Some(Value::Object(object)) => object,
            _ => Object::new(),
        };
        merge_object(item, &mut merged, value)?;
        match found {
            Some(index) => list[index] = Value::Object(merged),
            None => list.push(Value::Object(merged)),
        }
    }
    Ok(())
}

fn retain_keys(object: &mut Object, patch: &Object) -> Result<(), Error> {
    let Some(keys) = patch.get(RETAIN) else {
        return Ok(());
    };
    let keys = keys
        .as_array()
        .ok_or_else(|| wrong(format!("{RETAIN} is no list")))?;
    let has = |name: &str| keys.iter().any(|key| key == name);
    let stray = patch
        .iter()
        .find(|(name, value)| !name.starts_with('$') && !value.is_null() && !has(name));
    if let Some((name, _)) = stray {
        return Err(wrong(format!(
            "{RETAIN} does not name {name}, which the patch sets"
        )));
    }
    object.retain(|name, _| has(name));
    Ok(())
}

fn delete_from_list(object: &mut Object, field: &str, values: &Value) -> Result<(), Error> {
    let values = values
        .as_array()
        .ok_or_else(|| wrong(format!("{DELETE}{field} is no list")))?;
    if let Some(Value::Array(list)) = object.get_mut(field) {
        list.retain(|value| !values.contains(value));
    }
    Ok(())
}

/// The order of a merged list: what the patch names as it names it; what only
/// the server has stays before what it stood before.
struct Order<'a> {
    key: Option<&'a str>,
    field: &'a str,
    order: &'a Value,
    before: &'a Option<Value>,
    patched: Option<&'a Value>,
}

impl Order<'_> {
    fn id(&self, value: &Value) -> Value {
        id(self.key, value)
    }

    fn ids(&self, list: Option<&Value>) -> Vec<Value> {
        let list = list.and_then(Value::as_array).into_iter().flatten();
        list.map(|value| self.id(value)).collect()
    }

    fn apply(&self, object: &mut Object) -> Result<(), Error> {
        let field = self.field;
        if !self.order.is_array() {
            return Err(wrong(format!("{ORDER}{field} is no list")));
        }
        let order = self.ids(Some(self.order));
        for value in self.patched.and_then(Value::as_array).into_iter().flatten() {
            let deleted = value.get(PATCH).is_some();
            if !deleted && !order.contains(&self.id(value)) {
                return Err(wrong(format!(
                    "{ORDER}{field} does not name {}",
                    self.id(value)
                )));
            }
        }
        let before = self.ids(self.before.as_ref());
        if let Some(Value::Array(list)) = object.get_mut(field) {
            arrange(list, self.key, &order, &before);
        }
        Ok(())
    }
}

/// What tells an item from others: its key, or itself.
fn id(key: Option<&str>, value: &Value) -> Value {
    match key {
        Some(key) => value.get(key).cloned().unwrap_or_default(),
        None => value.clone(),
    }
}

/// Puts the items that `order` names into that order; the others keep their
/// own, each before what it stood before.
fn arrange(list: &mut Vec<Value>, key: Option<&str>, order: &[Value], before: &[Value]) {
    let position = |list: &[Value], value: &Value| {
        let id = id(key, value);
        list.iter().position(|other| *other == id)
    };
    let stood = |value: &Value| position(before, value);
    let place = |value: &Value| position(order, value);
    let (mut named, others): (Vec<Value>, Vec<Value>) = std::mem::take(list)
        .into_iter()
        .partition(|value| place(value).is_some());
    named.sort_by_key(place);
    let mut others = others.into_iter().peekable();
    for value in named {
        let before_it = |other: &Value| match (stood(other), stood(&value)) {
            (Some(other), Some(value)) => other < value,
            _ => false,
        };
        while let Some(other) = others.next_if(before_it) {
            list.push(other);
        }
        list.push(value);
    }
    list.extend(others);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::Gvk;
    use longshore_schema::registry;
    use proptest::{prelude::prop, prop_assert_eq, proptest, strategy::Strategy as _};
    use serde_json::json;

    use super::*;

    fn pod(document: Value, patch: Value) -> Value {
        try_pod(document, &patch).unwrap()
    }

    fn try_pod(document: Value, patch: &Value) -> Result<Value, Error> {
        let root = registry()
            .root(&Gvk::from_api_version("v1", "Pod"))
            .unwrap();
        merge(root, document, patch.as_object().unwrap())
    }

    fn containers(list: Value) -> Value {
        json!({"spec": {"containers": list}})
    }

    #[test]
    fn containers_merge_by_name() {
        let merged = pod(
            containers(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}])),
            containers(json!([{"name": "b", "image": "2"}, {"name": "c"}])),
        );
        let expected =
            json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c"}]);
        assert_eq!(merged, containers(expected));
        let merged = pod(merged, containers(json!([{"name": "d"}, {"name": "b"}])));
        let names: Vec<_> = merged["spec"]["containers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|container| container["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["d", "a", "b", "c"]);
    }

    /// As a real API server answers.
    #[test]
    fn rule_17_what_the_patch_names_comes_before_what_it_does_not_know() {
        let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
        let once = pod(finalizers(json!(["a"])), finalizers(json!(["d"])));
        assert_eq!(once, finalizers(json!(["d", "a"])));
        let twice = pod(once, finalizers(json!(["x", "a"])));
        assert_eq!(twice, finalizers(json!(["x", "d", "a"])));
        let merged = pod(
            containers(json!([{"name": "a"}, {"name": "b"}])),
            containers(json!([{"name": "c"}])),
        );
        let expected = json!([{"name": "c"}, {"name": "a"}, {"name": "b"}]);
        assert_eq!(merged, containers(expected));
    }

    #[test]
    fn command_and_tolerations_are_replaced() {
        let merged = pod(
            json!({"spec": {"tolerations": [{"key": "a"}], "containers": [{"name": "a", "command": ["x", "y"]}]}}),
            json!({"spec": {"tolerations": [{"key": "b"}], "containers": [{"name": "a", "command": ["z"]}]}}),
        );
        assert_eq!(merged["spec"]["tolerations"], json!([{"key": "b"}]));
        assert_eq!(merged["spec"]["containers"][0]["command"], json!(["z"]));
    }

    #[test]
    fn finalizers_merge_as_a_set_and_lose_values_by_name() {
        let document = json!({"metadata": {"finalizers": ["a", "b"]}});
        let merged = pod(
            document.clone(),
            json!({"metadata": {"finalizers": ["b", "c"]}}),
        );
        assert_eq!(merged["metadata"]["finalizers"], json!(["a", "b", "c"]));
        let merged = pod(
            document,
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
        );
        assert_eq!(merged["metadata"]["finalizers"], json!(["b"]));
    }

    #[test]
    fn conditions_merge_by_type() {
        let merged = pod(
            json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
            json!({"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "X"}]}}),
        );
        assert_eq!(
            merged["status"]["conditions"],
            json!([{"type": "Ready", "status": "True"}, {"type": "X"}])
        );
    }

    #[test]
    fn patch_delete_takes_an_item_or_an_object_away() {
        let merged = pod(
            containers(json!([{"name": "a"}, {"name": "b"}])),
            containers(
                json!([{"name": "a", "$patch": "delete"}, {"name": "z", "$patch": "delete"}]),
            ),
        );
        assert_eq!(merged, containers(json!([{"name": "b"}])));
        let merged = pod(
            json!({"metadata": {"labels": {"a": "1"}}}),
            json!({"metadata": {"labels": {"$patch": "delete"}}}),
        );
        assert_eq!(merged, json!({"metadata": {"labels": {}}}));
    }

    #[test]
    fn patch_replace_takes_the_patch_as_it_is() {
        let merged = pod(
            containers(json!([{"name": "a"}, {"name": "b"}])),
            containers(json!([{"$patch": "replace"}, {"name": "c"}])),
        );
        assert_eq!(merged, containers(json!([{"name": "c"}])));
        let merged = pod(
            json!({"metadata": {"labels": {"a": "1"}}}),
            json!({"metadata": {"labels": {"$patch": "replace", "b": "2"}}}),
        );
        assert_eq!(merged, json!({"metadata": {"labels": {"b": "2"}}}));
    }

    #[test]
    fn set_element_order_orders_and_keeps_strangers_in_their_place() {
        let merged = pod(
            containers(json!([{"name": "a"}, {"name": "server"}, {"name": "b"}])),
            json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}, {"name": "c"}],
                "containers": [{"name": "c"}]}}),
        );
        let names: Vec<_> = merged["spec"]["containers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["server", "b", "a", "c"]);
        let merged = pod(
            containers(json!([{"name": "a"}, {"name": "server"}])),
            json!({"spec": {"$setElementOrder/containers": [{"name": "a"}, {"name": "new"}],
                "containers": [{"name": "new"}]}}),
        );
        assert_eq!(
            merged,
            containers(json!([{"name": "a"}, {"name": "new"}, {"name": "server"}]))
        );
        let patch = json!({"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "c"}]}});
        assert!(try_pod(containers(json!([])), &patch).is_err());
    }

    #[test]
    fn retain_keys_drops_the_other_fields() {
        let merged = pod(
            json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}),
            json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}}),
        );
        assert_eq!(
            merged["spec"]["volumes"],
            json!([{"name": "v", "hostPath": {"path": "/"}}])
        );
    }

    #[test]
    fn broken_patches_are_refused() {
        for patch in [
            containers(json!([{"image": "x"}])),
            containers(json!(["x"])),
            containers(json!([{"name": "a", "$patch": "jump"}])),
            json!({"metadata": {"$patch": 1}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}}),
            json!({"metadata": {"$setElementOrder/finalizers": "a"}}),
            json!({"metadata": {"$retainKeys": "a"}}),
        ] {
            assert!(
                matches!(
                    try_pod(containers(json!([])), &patch),
                    Err(Error::BadRequest(_))
                ),
                "{patch}"
            );
        }
    }

    fn named(range: &'static str) -> impl proptest::strategy::Strategy<Value = Value> {
        prop::collection::btree_map(range, "[1-3]", 0..5).prop_map(|map| {
            containers(
                map.into_iter()
                    .map(|(name, image)| json!({"name": name, "image": image}))
                    .collect(),
            )
        })
    }

    proptest! {
        #[test]
        fn a_patch_applied_twice_is_applied_once(document in named("[a-e]"), patch in named("[a-g]")) {
            let once = pod(document, patch.clone());
            prop_assert_eq!(pod(once.clone(), patch), once);
        }

        #[test]
        fn every_name_of_both_is_there_once(document in named("[a-e]"), patch in named("[a-g]")) {
            let merged = pod(document.clone(), patch.clone());
            let names = |value: &Value| -> Vec<String> {
                value["spec"]["containers"].as_array().unwrap().iter()
                    .map(|c| c["name"].as_str().unwrap().to_owned()).collect()
            };
            let mut expected = [names(&document), names(&patch)].concat();
            expected.sort();
            expected.dedup();
            let mut found = names(&merged);
            found.sort();
            prop_assert_eq!(found, expected);
        }
    }
}
