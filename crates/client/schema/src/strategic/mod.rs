//! Strategic merge patch, the merge of Kubernetes. Objects are merged. Lists
//! are merged by key, merged as sets or replaced, depending on the type.
//! Directives in the patch (`$patch`, `$deleteFromPrimitiveList/f`,
//! `$setElementOrder/f`, `$retainKeys`) control the rest.

mod positions;

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::{Shape, Strategy, TypeRef};
use positions::{Positions, Slots};

type Object = Map<String, Value>;

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// The reason why a patch cannot be merged, with the messages of API servers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrategicError {
    /// A directive is malformed.
    #[error("{0}")]
    Format(String),
    /// The patch cannot be applied. API servers respond with 500 and no reason.
    #[error("{0}")]
    Content(String),
}

type Result<T, E = StrategicError> = std::result::Result<T, E>;

/// Merges a patch into a document of a type.
///
/// ```
/// use longshore_model::Gvk;
/// use longshore_schema::{registry, strategic};
/// use serde_json::json;
/// let pod = registry().root(&Gvk::from_api_version("v1", "Pod")).unwrap();
/// let document = json!({"spec": {"containers": [{"name": "main", "image": "a"}]}});
/// let patch = json!({"spec": {"containers": [{"name": "main", "image": "b"}, {"name": "side"}]}});
/// let merged = strategic::merge(pod, document, patch.as_object().unwrap()).unwrap();
/// // The patch determines the order; lists are merged by their key.
/// assert_eq!(
///     merged["spec"]["containers"],
///     json!([{"name": "main", "image": "b"}, {"name": "side"}])
/// );
/// ```
///
/// # Errors
/// Fails if a directive is malformed or a value has another type than in the
/// document.
pub fn merge(root: TypeRef, document: Value, patch: &Object) -> Result<Value> {
    let mut object = match document {
        Value::Object(object) => object,
        _ => Object::new(),
    };
    merge_object(Some(root), &mut object, patch)?;
    Ok(Value::Object(object))
}

fn wrong(problem: String) -> StrategicError {
    StrategicError::Content(problem)
}

enum Directive {
    Merge,
    Replace,
    Delete,
}

/// Parses the `$patch` directive. Merging is the default; as in Kubernetes, an
/// explicit `merge` is rejected.
fn directive(patch: &Object) -> Result<Directive> {
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
        Some(other) => Err(wrong(format!("{PATCH} is not text: {other}"))),
    }
}

fn merge_object(at: Option<TypeRef>, object: &mut Object, patch: &Object) -> Result<()> {
    match directive(patch)? {
        Directive::Delete => {
            object.clear();
            return Ok(());
        }
        Directive::Replace => object.clear(),
        Directive::Merge => {}
    }
    retain_keys(object, patch)?;
    // Orders refer to the list before this patch.
    let orders: Vec<_> = patch
        .iter()
        .filter_map(|(name, order)| Some((name.strip_prefix(ORDER)?, order)))
        .map(|(field, order)| (field, order, object.get(field).cloned()))
        .collect();
    // Without an explicit order, the order of the patch applies.
    let implied: Vec<_> = patch
        .iter()
        .filter(|(name, value)| {
            value.is_array()
                && merges(at.and_then(|at| at.field(name)))
                && !patch.contains_key(&format!("{ORDER}{name}"))
        })
        .map(|(name, order)| (name.as_str(), order, object.get(name).cloned()))
        .collect();
    for (field, order, before) in &orders {
        can_order(at, field, [Some(order), before.as_ref(), patch.get(*field)])?;
    }
    for (name, value) in patch {
        if name == PATCH || name == RETAIN {
            continue;
        }
        if let Some(what) = incomplete_directive(name) {
            let problem = format!("invalid patch format of {what}");
            return Err(StrategicError::Format(problem));
        }
        if let Some(field) = name.strip_prefix(DELETE) {
            delete_from_list(object, field, value);
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

fn merge_field(at: Option<TypeRef>, object: &mut Object, name: &str, patch: &Value) -> Result<()> {
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
            let keyed = at.is_some_and(|at| at.patch().merge_key.is_some());
            if keyed && !object.contains_key(name) && !patch.iter().all(Value::is_object) {
                // There is nothing to merge with; validation reports the error.
                object.insert(name.to_owned(), Value::Array(patch.clone()));
                return Ok(());
            }
            let mut list = match object.remove(name) {
                Some(Value::Array(list)) => list,
                _ => Vec::new(),
            };
            let key = at.and_then(|at| at.patch().merge_key);
            let before: Vec<Value> = list.iter().map(|value| id(key, value).clone()).collect();
            match key {
                Some(key) => merge_by_key(at.and_then(TypeRef::items), key, &mut list, patch)?,
                None => {
                    let mut slots = Slots::new(std::mem::take(&mut list), None, patch.len());
                    for value in patch {
                        if slots.find(value).is_none() {
                            slots.push(value.clone());
                        }
                    }
                    list = slots.into_list();
                }
            }
            // Without an explicit order, the order of the items in the patch
            // applies.
            let order: Vec<&Value> = patch.iter().map(|value| id(key, value)).collect();
            arrange(&mut list, key, &order, &before.iter().collect::<Vec<_>>());
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
) -> Result<()> {
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
        // Other fields of an item with a directive are ignored.
        patches.retain(|(directive, _)| matches!(directive, Directive::Merge));
    }
    let mut slots = Slots::new(std::mem::take(list), Some(key), patches.len());
    for (directive, value) in patches {
        let id = value.get(key).ok_or_else(|| {
            wrong(format!(
                "{} does not contain declared merge key: {key}",
                Value::Object(value.clone())
            ))
        })?;
        if matches!(directive, Directive::Delete) {
            slots.remove(id);
            continue;
        }
        let found = slots.find(id);
        let mut merged = match found.and_then(|position| slots.take(position)) {
            Some(Value::Object(object)) => object,
            _ => Object::new(),
        };
        merge_object(item, &mut merged, value)?;
        match found {
            Some(position) => slots.put(position, Value::Object(merged)),
            None => slots.push(Value::Object(merged)),
        }
    }
    *list = slots.into_list();
    Ok(())
}

fn retain_keys(object: &mut Object, patch: &Object) -> Result<()> {
    let Some(keys) = patch.get(RETAIN) else {
        return Ok(());
    };
    let keys = keys.as_array();
    let names: HashSet<&str> = keys
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let has = |name: &str| names.contains(name);
    let mut set = patch
        .iter()
        .filter(|(name, value)| !name.starts_with('$') && !value.is_null());
    if keys.is_none() || !set.all(|(name, _)| has(name)) {
        let problem = "invalid patch format of retainKeys";
        return Err(StrategicError::Format(problem.into()));
    }
    object.retain(|name, _| has(name));
    Ok(())
}

/// Values that are not lists are left unchanged.
fn delete_from_list(object: &mut Object, field: &str, values: &Value) {
    if let (Some(Value::Array(list)), Value::Array(values)) = (object.get_mut(field), values) {
        let values: Vec<&Value> = values.iter().collect();
        let gone = Positions::of(&values);
        list.retain(|value| gone.find(value).is_none());
    }
}

/// The name of a directive that lacks the name of its field.
fn incomplete_directive(name: &str) -> Option<&'static str> {
    if name == DELETE.trim_end_matches('/') {
        Some("primitive list")
    } else if name == ORDER.trim_end_matches('/') {
        Some("setElementOrder list")
    } else {
        None
    }
}

/// Checks that an order can be applied to a field: its type must be a list.
/// `values` are the order, the field in the document and the field in the
/// patch.
fn can_order(at: Option<TypeRef>, field: &str, values: [Option<&Value>; 3]) -> Result<()> {
    let found = values.into_iter().flatten().find_map(|value| match value {
        Value::Array(_) | Value::Null => None,
        Value::Object(_) => Some("map[string]interface {}"),
        Value::String(_) => Some("string"),
        Value::Bool(_) => Some("bool"),
        Value::Number(number) if number.is_f64() => Some("float64"),
        Value::Number(_) => Some("int64"),
    });
    if let Some(found) = found {
        return Err(wrong(format!(
            "expected a []interface {{}}, but received a {found}"
        )));
    }
    let Some(at) = at else { return Ok(()) };
    match (at.shape(), at.field(field)) {
        (Shape::Map, _) => Err(wrong(
            "merging an object in json but data type is not struct, instead is: map".into(),
        )),
        (Shape::Object, None) => Err(wrong(format!(
            "unable to find api field in struct {} for the json field {field:?}",
            at.type_name().unwrap_or_default()
        ))),
        (Shape::Object, Some(inner)) if inner.shape() != Shape::List => Err(wrong(
            "expected slice or array type, but got: struct".into(),
        )),
        _ => Ok(()),
    }
}

/// The order of a merged list: items in the patch have the order of the patch;
/// items that only the server has keep their position relative to their
/// successor.
struct Order<'a> {
    key: Option<&'a str>,
    field: &'a str,
    order: &'a Value,
    before: &'a Option<Value>,
    patched: Option<&'a Value>,
}

impl Order<'_> {
    fn ids<'v>(&self, list: Option<&'v Value>) -> Vec<&'v Value> {
        let list = list.and_then(Value::as_array).into_iter().flatten();
        list.map(|value| id(self.key, value)).collect()
    }

    fn apply(&self, object: &mut Object) -> Result<()> {
        let field = self.field;
        let order = self.ids(Some(self.order));
        let positions = Positions::of(&order);
        for value in self.patched.and_then(Value::as_array).into_iter().flatten() {
            let deleted = value.get(PATCH).is_some();
            let id = id(self.key, value);
            if !deleted && positions.find(id).is_none() {
                return Err(wrong(format!("{ORDER}{field} does not name {id}")));
            }
        }
        let before = self.ids(self.before.as_ref());
        if let Some(Value::Array(list)) = object.get_mut(field) {
            arrange(list, self.key, &order, &before);
        }
        Ok(())
    }
}

/// The identity of an item: its key, or the item itself.
fn id<'v>(key: Option<&str>, value: &'v Value) -> &'v Value {
    match key {
        Some(key) => value.get(key).unwrap_or(&Value::Null),
        None => value,
    }
}

/// Sorts the items that `order` contains; all others keep their position
/// relative to their successor.
fn arrange(list: &mut Vec<Value>, key: Option<&str>, order: &[&Value], before: &[&Value]) {
    let (order, before) = (Positions::of(order), Positions::of(before));
    let old_position = |value: &Value| before.find(id(key, value));
    let position = |value: &Value| order.find(id(key, value));
    let (mut named, others): (Vec<Value>, Vec<Value>) = std::mem::take(list)
        .into_iter()
        .partition(|value| position(value).is_some());
    named.sort_by_cached_key(position);
    let mut others = others.into_iter().peekable();
    for value in named {
        let at = old_position(&value);
        let precedes = |other: &Value| match (old_position(other), at) {
            (Some(other), Some(value)) => other < value,
            _ => false,
        };
        while let Some(other) = others.next_if(precedes) {
            list.push(other);
        }
        list.push(value);
    }
    list.extend(others);
}

#[cfg(test)]
mod tests;
