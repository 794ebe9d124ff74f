//! From messages to JSON objects, driven by the table.

mod special;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value};

use super::{
    DecodeError,
    table::{Field, Many, Message, Type, table},
    wire::{Reader, Wire},
};

/// How deep messages may nest. The schemas of CustomResourceDefinitions nest
/// deepest, and API servers refuse them long before.
const DEPTH: usize = 100;

/// Where a value stands, for errors; and how deep.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) message: &'a Message,
    pub(super) field: &'a Field,
    pub(super) depth: usize,
}

impl Place<'_> {
    /// The error of a value that is not what it should be.
    pub(super) fn mismatch(self, expected: &'static str) -> DecodeError {
        DecodeError::Mismatch {
            message: self.message.name.clone(),
            field: self.field.name.to_owned(),
            expected,
        }
    }
}

/// Reads a message into `object`. A message field that comes twice is merged,
/// a scalar's last value counts, as everywhere in protobuf.
pub(super) fn message(
    message: &Message,
    bytes: &[u8],
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), DecodeError> {
    if depth > DEPTH {
        return Err(DecodeError::TooDeep(DEPTH));
    }
    let mut reader = Reader::new(&message.name, bytes);
    while let Some((number, wire)) = reader.next()? {
        if let Some(field) = message.field(number) {
            set(
                Place {
                    message,
                    field,
                    depth,
                },
                wire,
                object,
            )?;
        }
    }
    Ok(())
}

/// Puts one occurrence of a field into its object.
fn set(
    place: Place<'_>,
    wire: Wire<'_>,
    object: &mut Map<String, Value>,
) -> Result<(), DecodeError> {
    let Place { field, depth, .. } = place;
    match field.many {
        Many::One => {
            if let Type::Message(index) = field.value {
                let bytes = bytes(place, wire)?;
                let inner = table().at(index);
                if field.is_inline {
                    return message(inner, bytes, object, depth + 1);
                }
                let entry = object
                    .entry(field.name)
                    .or_insert_with(|| Value::Object(Map::new()));
                return match entry {
                    Value::Object(entry) => message(inner, bytes, entry, depth + 1),
                    _ => Err(place.mismatch("an object")),
                };
            }
            match single(place, wire)? {
                Some(value) if !(field.omits_zero && is_zero(&value)) => {
                    object.insert(field.name.to_owned(), value);
                }
                _ => {
                    object.remove(field.name);
                }
            }
        }
        Many::List => {
            let entry = object
                .entry(field.name)
                .or_insert_with(|| Value::Array(Vec::new()));
            let Value::Array(items) = entry else {
                return Err(place.mismatch("a list"));
            };
            match (field.value, wire) {
                (Type::Integer, Wire::Bytes(packed)) => {
                    let mut reader = Reader::new(&place.message.name, packed);
                    while let Some(number) = reader.packed()? {
                        items.push(number.cast_signed().into());
                    }
                }
                _ => items.push(single(place, wire)?.unwrap_or(Value::Null)),
            }
        }
        Many::Map => {
            let (key, value) = entry(place, bytes(place, wire)?)?;
            let entry = object
                .entry(field.name)
                .or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(entries) = entry else {
                return Err(place.mismatch("a map"));
            };
            entries.insert(key, value);
        }
    }
    Ok(())
}

/// An entry of a map: a message of key and value, each of which may be missing.
fn entry(place: Place<'_>, bytes: &[u8]) -> Result<(String, Value), DecodeError> {
    let mut key = String::new();
    let mut value = None;
    let mut reader = Reader::new(&place.message.name, bytes);
    while let Some((number, wire)) = reader.next()? {
        match number {
            1 => key = text(place, wire)?,
            2 => value = single(place, wire)?,
            _ => {}
        }
    }
    let value = match (value, place.field.value) {
        (Some(value), _) => value,
        (None, Type::String | Type::Bytes) => Value::String(String::new()),
        (None, Type::Integer | Type::Double) => 0.into(),
        (None, Type::Boolean) => false.into(),
        (None, Type::Message(_)) => Value::Object(Map::new()),
        (None, Type::Special(special)) => {
            special::special(place, special, &[])?.unwrap_or(Value::Null)
        }
    };
    Ok((key, value))
}

/// One value; nothing for values that JSON leaves out, as the zero time.
fn single(place: Place<'_>, wire: Wire<'_>) -> Result<Option<Value>, DecodeError> {
    Ok(Some(match (place.field.value, wire) {
        (Type::String, _) => text(place, wire)?.into(),
        (Type::Boolean, Wire::Varint(value)) => (value != 0).into(),
        (Type::Boolean, _) => return Err(place.mismatch("true or false")),
        // Negative numbers are sent in two's complement of 64 bits.
        (Type::Integer, Wire::Varint(value)) => value.cast_signed().into(),
        (Type::Double, Wire::Fixed64(bits)) => f64::from_bits(bits).into(),
        (Type::Integer | Type::Double, _) => return Err(place.mismatch("a number")),
        (Type::Bytes, _) => BASE64_STANDARD.encode(bytes(place, wire)?).into(),
        (Type::Message(index), _) => {
            let mut object = Map::new();
            message(
                table().at(index),
                bytes(place, wire)?,
                &mut object,
                place.depth + 1,
            )?;
            object.into()
        }
        (Type::Special(special), _) => {
            return special::special(place, special, bytes(place, wire)?);
        }
    }))
}

fn bytes<'a>(place: Place<'_>, wire: Wire<'a>) -> Result<&'a [u8], DecodeError> {
    match wire {
        Wire::Bytes(bytes) => Ok(bytes),
        _ => Err(place.mismatch("bytes")),
    }
}

fn text(place: Place<'_>, wire: Wire<'_>) -> Result<String, DecodeError> {
    let text = std::str::from_utf8(bytes(place, wire)?);
    text.map(str::to_owned)
        .map_err(|_| place.mismatch("UTF-8 text"))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}
