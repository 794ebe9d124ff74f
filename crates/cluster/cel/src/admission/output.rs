//! The results of expressions as JSON.

use serde_json::{Map as Fields, Value as Json};

use crate::{
    error::EvalError,
    names::OBJECT,
    value::{Key, Value},
};

/// The result of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A boolean.
    Bool(bool),
    /// A string.
    String(String),
    /// Null.
    Null,
    /// An `Object`, or a list of `JSONPatch`.
    Json(Json),
    /// A value of another type, represented by the name of its type.
    Other(&'static str),
}

impl Output {
    pub(super) fn of(value: &Value<'_>) -> Result<Self, EvalError> {
        Ok(match value {
            Value::Bool(flag) => Self::Bool(*flag),
            Value::String(text) => Self::String(text.to_string()),
            Value::Null => Self::Null,
            Value::Struct(_) => {
                check_names(value, OBJECT)?;
                Self::Json(to_json(value)?)
            }
            Value::List(list) if is_patch(value) => {
                let items: Result<Vec<_>, _> = list.iter().map(|item| to_json(&item?)).collect();
                Self::Json(Json::Array(items?))
            }
            other => Self::Other(other.type_name()),
        })
    }
}

/// Returns true if a value is a list of patches; an empty list may be one.
fn is_patch(value: &Value<'_>) -> bool {
    let Value::List(list) = value else {
        return false;
    };
    list.get(0)
        .is_none_or(|item| matches!(item, Ok(Value::Struct(_))))
}

/// Checks that each object has the type of its field.
fn check_names(value: &Value<'_>, expected: &str) -> Result<(), EvalError> {
    match value {
        Value::Struct(made) => {
            if made.name != expected {
                return Err(EvalError::new(format!(
                    "unexpected type name {:?}, expected {expected:?}, which matches field name path from root Object type",
                    made.name
                )));
            }
            for (field, value) in &made.fields {
                check_names(value, &format!("{expected}.{field}"))?;
            }
            Ok(())
        }
        Value::List(list) => list
            .iter()
            .try_for_each(|item| check_names(&item?, expected)),
        Value::Map(map) => map
            .keys()
            .iter()
            .filter_map(|key| map.get(key))
            .try_for_each(|value| check_names(&value?, expected)),
        _ => Ok(()),
    }
}

fn to_json(value: &Value<'_>) -> Result<Json, EvalError> {
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Int(number) => (*number).into(),
        Value::Uint(number) => (*number).into(),
        Value::Double(number) => (*number).into(),
        Value::String(text) => Json::String(text.to_string()),
        Value::List(list) => {
            let items: Result<Vec<_>, _> = list.iter().map(|item| to_json(&item?)).collect();
            Json::Array(items?)
        }
        Value::Map(map) => {
            let mut fields = Fields::new();
            for key in map.keys() {
                let Some(Key::String(name)) = Key::of(&key) else {
                    let found = key.type_name();
                    return Err(EvalError::new(format!(
                        "map key is of type {found}, not string"
                    )));
                };
                if let Some(value) = map.get(&key) {
                    fields.insert(name.to_string(), to_json(&value?)?);
                }
            }
            Json::Object(fields)
        }
        Value::Struct(made) => {
            let mut fields = Fields::new();
            for (name, value) in &made.fields {
                fields.insert((*name).to_owned(), to_json(value)?);
            }
            Json::Object(fields)
        }
        Value::Timestamp(time) => Json::String(time.to_string()),
        other => {
            let found = other.type_name();
            return Err(EvalError::new(format!(
                "unsupported type in a patch: {found}"
            )));
        }
    })
}
