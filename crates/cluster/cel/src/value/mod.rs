//! Values of expressions. JSON values are converted when they are read.

mod bytes;
mod compare;
mod decimal;
mod json;
mod opaque;
mod url;

use std::{collections::BTreeMap, fmt, ops::Deref, rc::Rc};

use jiff::Timestamp;

use crate::names::{JSON_PATCH, OBJECT};

pub(crate) use bytes::Bytes;
pub(crate) use compare::{compare, equal, item_key, position};
pub(crate) use decimal::Decimal;
pub(crate) use json::{Key, List, Map, from_json, parse_duration, parse_timestamp};
pub(crate) use opaque::{Access, Cidr, Format, Opaque, Semver};
pub(crate) use url::Url;

/// A value.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Bytes<'a>),
    List(List<'a>),
    Map(Map<'a>),
    /// In nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    Optional(Option<Rc<Value<'a>>>),
    Type(&'static str),
    Opaque(Rc<Opaque>),
    /// The variables of a policy, which are evaluated when they are read.
    Variables,
    Struct(Rc<Struct<'a>>),
}

/// A value of a type that expressions construct: `JSONPatch` or `Object`.
#[derive(Debug, Clone)]
pub(crate) struct Struct<'a> {
    pub(crate) name: &'a str,
    pub(crate) fields: BTreeMap<&'a str, Value<'a>>,
}

/// A string that is part of the input, or was computed.
#[derive(Clone)]
pub(crate) enum Text<'a> {
    Part(&'a str),
    Own(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Part(text) => text,
            Self::Own(text) => text,
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<'a> Value<'a> {
    pub(crate) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::String(Text::Own(text.into()))
    }

    pub(crate) fn some(value: Self) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        Self::List(List::Own(Rc::new(items)))
    }

    pub(crate) fn opaque(opaque: Opaque) -> Self {
        Self::Opaque(Rc::new(opaque))
    }

    /// The name of the type, as in the result of `type`.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Opaque(opaque) => opaque.type_name(),
            Self::Variables => "kubernetes.variables",
            Self::Struct(made) if made.name == JSON_PATCH => JSON_PATCH,
            Self::Struct(_) => OBJECT,
        }
    }

    /// The number of elements, characters or bytes; 1 for other values. Long
    /// strings are measured in bytes, which takes no time.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::String(text) if text.len() > 1024 => text.len() as u64,
            Self::String(text) => text.chars().count() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.len() as u64,
            Self::Map(map) => map.len() as u64,
            Self::Optional(Some(inner)) => inner.size(),
            Self::Opaque(opaque) => opaque.size(),
            _ => 1,
        }
    }

    /// Returns true if the value is the default of its type.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Null | Self::Bool(false) | Self::Int(0) | Self::Uint(0) | Self::Duration(0) => {
                true
            }
            Self::Double(number) => *number == 0.0,
            Self::String(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.len() == 0,
            Self::List(list) => list.len() == 0,
            Self::Map(map) => map.len() == 0,
            Self::Optional(inner) => inner.is_none(),
            Self::Struct(made) => made.fields.is_empty(),
            _ => false,
        }
    }
}
