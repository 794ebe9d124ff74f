//! Prunes undeclared fields and sets defaults.

use longshore_model::MessageList;
use serde_json::{Map, Value};

use super::{Additional, Structural, is_meta};

impl Structural {
    /// Drops the fields that the schema does not declare and returns their
    /// paths in order. Keeps the type and metadata of the object.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = MessageList::new();
        prune(object, Some(self), &mut String::new(), &mut unknown);
        unknown.sort_unstable();
        unknown.into_vec()
    }

    /// Drops nulls where the schema does not permit them, and sets defaults.
    /// The operation is idempotent.
    pub fn fill(&self, object: &mut Value) {
        drop_nulls(object, Some(self));
        fill(object, self);
    }

    pub(super) fn drop_nulls(&self, object: &mut Value) {
        drop_nulls(object, Some(self));
    }
}

fn prune(value: &mut Value, schema: Option<&Structural>, path: &mut String, out: &mut MessageList) {
    if let Some(schema) = schema.filter(|schema| schema.preserves_unknown) {
        return prune_declared(value, schema, path, out);
    }
    let length = path.len();
    match value {
        Value::Object(fields) => {
            let at_top = path.is_empty();
            fields.retain(|name, value| {
                let Some(schema) = schema else {
                    out.push(join(path, name));
                    return false;
                };
                if schema.embedded && is_meta(name) {
                    return true;
                }
                let inner = schema.at_key(name);
                if inner.is_none() && schema.additional == Additional::Undeclared {
                    if !(at_top && is_meta(name)) {
                        out.push(join(path, name));
                    }
                    return false;
                }
                push(path, name);
                prune(value, inner, path, out);
                path.truncate(length);
                true
            });
        }
        Value::Array(items) => {
            let inner = schema.and_then(|schema| schema.items.as_deref());
            each(items, path, |item, path| prune(item, inner, path, out));
        }
        _ => {}
    }
}

/// Prunes the declared fields of a value that preserves unknown fields.
fn prune_declared(
    value: &mut Value,
    schema: &Structural,
    path: &mut String,
    out: &mut MessageList,
) {
    let length = path.len();
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if schema.embedded && is_meta(name) {
                    continue;
                }
                let inner = schema.at_key(name);
                if inner.is_some() || schema.additional != Additional::Undeclared {
                    push(path, name);
                    prune(value, inner, path, out);
                    path.truncate(length);
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = schema.items.as_deref() else {
                return;
            };
            each(items, path, |item, path| {
                prune_declared(item, inner, path, out);
            });
        }
        _ => {}
    }
}

fn each(items: &mut [Value], path: &mut String, mut visit: impl FnMut(&mut Value, &mut String)) {
    let length = path.len();
    for (index, item) in items.iter_mut().enumerate() {
        path.push_str(&format!("[{index}]"));
        visit(item, path);
        path.truncate(length);
    }
}

fn push(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

fn join(path: &str, name: &str) -> String {
    let mut path = path.to_owned();
    push(&mut path, name);
    path
}

/// Returns true if a value is a null that is not permitted and has no default to replace it.
fn is_forbidden_null(value: &Value, schema: Option<&Structural>) -> bool {
    value.is_null() && schema.is_some_and(|schema| !schema.nullable && schema.default.is_none())
}

fn drop_nulls(value: &mut Value, schema: Option<&Structural>) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let inner = schema.and_then(|schema| schema.at_key(name));
            if is_forbidden_null(value, inner) {
                return false;
            }
            drop_nulls(value, inner);
            true
        }),
        Value::Array(items) => {
            let inner = schema.and_then(|schema| schema.items.as_deref());
            items.iter_mut().for_each(|item| drop_nulls(item, inner));
        }
        _ => {}
    }
}

fn fill(value: &mut Value, schema: &Structural) {
    match value {
        Value::Object(fields) => fill_object(fields, schema),
        Value::Array(items) => {
            if let Some(inner) = schema.items.as_deref() {
                for item in items {
                    replace_null(item, inner);
                    fill(item, inner);
                }
            }
        }
        _ => {}
    }
}

fn fill_object(fields: &mut Map<String, Value>, schema: &Structural) {
    for (name, property) in &schema.properties {
        let Some(default) = &property.default else {
            continue;
        };
        match fields.get(name) {
            Some(value) if !value.is_null() || property.nullable => {}
            _ => {
                fields.insert(name.clone(), default.clone());
            }
        }
    }
    for (name, value) in fields {
        if let Some(inner) = schema.at_key(name) {
            replace_null(value, inner);
            fill(value, inner);
        }
    }
}

fn replace_null(value: &mut Value, schema: &Structural) {
    if let (true, false, Some(default)) = (value.is_null(), schema.nullable, &schema.default) {
        *value = default.clone();
    }
}
