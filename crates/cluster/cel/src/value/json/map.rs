//! Maps and objects, from the input and computed.

use std::{collections::BTreeMap, rc::Rc};

use serde_json::{Map as Fields, Value as Json};

use super::from_json;
use crate::{
    decl::{Decl, Shape},
    error::EvalError,
    value::{Text, Value},
};

/// A map or an object.
#[derive(Debug, Clone)]
pub(crate) enum Map<'a> {
    Json {
        fields: &'a Fields<String, Json>,
        decl: &'a Decl,
    },
    Own(Rc<BTreeMap<Key, Value<'a>>>),
}

/// A key of a map. Unsigned keys that fit are signed, because both are equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Bool(bool),
    Int(i64),
    Uint(u64),
    String(Rc<str>),
}

impl Key {
    /// Converts a value to a key.
    pub(crate) fn of(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Int(number) => Self::Int(*number),
            Value::Uint(number) => match i64::try_from(*number) {
                Ok(number) => Self::Int(number),
                Err(_) => Self::Uint(*number),
            },
            #[allow(clippy::cast_possible_truncation)]
            Value::Double(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
                Self::Int(*number as i64)
            }
            Value::String(Text::Own(text)) => Self::String(text.clone()),
            Value::String(text) => Self::String((&**text).into()),
            _ => return None,
        })
    }

    pub(crate) fn to_value<'a>(&self) -> Value<'a> {
        match self {
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Int(number) => Value::Int(*number),
            Self::Uint(number) => Value::Uint(*number),
            Self::String(text) => Value::String(Text::Own(text.clone())),
        }
    }
}

impl<'a> Map<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json { fields, .. } => fields.len(),
            Self::Own(entries) => entries.len(),
        }
    }

    /// The value of a field, by its identifier.
    pub(crate) fn field(&self, identifier: &str) -> Option<Result<Value<'a>, EvalError>> {
        match self {
            Self::Json { fields, decl } => match &decl.shape {
                Shape::Object(_) => {
                    let field = decl.field(identifier)?;
                    Some(from_json(fields.get(&field.name)?, &field.decl))
                }
                _ => self.entry(identifier),
            },
            _ => self.entry(identifier),
        }
    }

    /// The value of a key that is a string.
    fn entry(&self, name: &str) -> Option<Result<Value<'a>, EvalError>> {
        match self {
            Self::Json { fields, decl } => {
                let values = match &decl.shape {
                    Shape::Map(values) => &**values,
                    Shape::Object(_) => decl.at_key(name).map_or(Decl::any_ref(), |d| &**d),
                    _ => Decl::any_ref(),
                };
                Some(from_json(fields.get(name)?, values))
            }
            Self::Own(entries) => Some(Ok(entries.get(&Key::String(name.into()))?.clone())),
        }
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &Value<'_>) -> Option<Result<Value<'a>, EvalError>> {
        match (self, key) {
            (Self::Own(entries), key) => Some(Ok(entries.get(&Key::of(key)?)?.clone())),
            (_, Value::String(name)) => self.entry(name),
            _ => None,
        }
    }

    pub(crate) fn contains(&self, key: &Value<'_>) -> bool {
        match (self, key) {
            (Self::Json { fields, .. }, Value::String(name)) => fields.contains_key(&**name),
            (Self::Own(entries), key) => Key::of(key).is_some_and(|key| entries.contains_key(&key)),
            _ => false,
        }
    }

    /// The keys, in order.
    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Self::Json { fields, .. } => fields
                .keys()
                .map(|key| Value::String(Text::Part(key)))
                .collect(),
            Self::Own(entries) => entries.keys().map(Key::to_value).collect(),
        }
    }
}
