//! Converts messages to JSON objects, driven by the table.

mod special;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value};

use super::{
    DecodeError,
    table::{Cardinality, Field, Message, Type, table},
    wire::{Reader, Wire},
};

/// Maximum nesting depth of messages. Schemas in CustomResourceDefinitions have
/// the deepest nesting, and API servers reject them well below this limit.
const MAX_DEPTH: usize = 100;

/// The position of a value for error messages, and its nesting depth.
#[derive(Clone, Copy)]
pub(super) struct FieldContext<'a> {
    pub(super) message: &'a Message,
    pub(super) field: &'a Field,
    pub(super) depth: usize,
}

impl FieldContext<'_> {
    /// The error for a value of an unexpected type.
    pub(super) fn mismatch(self, expected: &'static str) -> DecodeError {
        DecodeError::Mismatch {
            message: self.message.name.clone(),
            field: self.field.name.to_owned(),
            expected,
        }
    }
}

/// Decodes a message into `object`. As usual in protobuf, repeated occurrences
/// of a message field are merged, and the last value of a scalar wins.
pub(super) fn message(
    message: &Message,
    bytes: &[u8],
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), DecodeError> {
    if depth > MAX_DEPTH {
        return Err(DecodeError::TooDeep(MAX_DEPTH));
    }
    let mut reader = Reader::new(&message.name, bytes);
    while let Some((number, wire)) = reader.next()? {
        if let Some(field) = message.field(number) {
            set(
                FieldContext {
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

/// Stores one occurrence of a field in its object.
fn set(
    context: FieldContext<'_>,
    wire: Wire<'_>,
    object: &mut Map<String, Value>,
) -> Result<(), DecodeError> {
    let FieldContext { field, depth, .. } = context;
    match field.cardinality {
        Cardinality::One => {
            if let Type::Message(index) = field.value {
                let bytes = bytes(context, wire)?;
                let inner = table().at(index);
                if field.is_inline {
                    return message(inner, bytes, object, depth + 1);
                }
                let entry = object
                    .entry(field.name)
                    .or_insert_with(|| Value::Object(Map::new()));
                return match entry {
                    Value::Object(entry) => message(inner, bytes, entry, depth + 1),
                    _ => Err(context.mismatch("an object")),
                };
            }
            match single(context, wire)? {
                Some(value) if !(field.omits_zero && is_zero(&value)) => {
                    object.insert(field.name.to_owned(), value);
                }
                _ => {
                    object.remove(field.name);
                }
            }
        }
        Cardinality::List => {
            let entry = object
                .entry(field.name)
                .or_insert_with(|| Value::Array(Vec::new()));
            let Value::Array(items) = entry else {
                return Err(context.mismatch("a list"));
            };
            match (field.value, wire) {
                (Type::Integer, Wire::Bytes(packed)) => {
                    let mut reader = Reader::new(&context.message.name, packed);
                    while let Some(number) = reader.packed()? {
                        items.push(number.cast_signed().into());
                    }
                }
                _ => items.push(single(context, wire)?.unwrap_or(Value::Null)),
            }
        }
        Cardinality::Map => {
            let (key, value) = entry(context, bytes(context, wire)?)?;
            let entry = object
                .entry(field.name)
                .or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(entries) = entry else {
                return Err(context.mismatch("a map"));
            };
            entries.insert(key, value);
        }
    }
    Ok(())
}

/// A map entry: a message with a key and a value, each of them optional.
fn entry(context: FieldContext<'_>, bytes: &[u8]) -> Result<(String, Value), DecodeError> {
    let mut key = String::new();
    let mut value = None;
    let mut reader = Reader::new(&context.message.name, bytes);
    while let Some((number, wire)) = reader.next()? {
        match number {
            1 => key = text(context, wire)?,
            2 => value = single(context, wire)?,
            _ => {}
        }
    }
    let value = match (value, context.field.value) {
        (Some(value), _) => value,
        (None, Type::String | Type::Bytes) => Value::String(String::new()),
        (None, Type::Integer | Type::Double) => 0.into(),
        (None, Type::Boolean) => false.into(),
        (None, Type::Message(_)) => Value::Object(Map::new()),
        (None, Type::Special(special)) => {
            special::special(context, special, &[])?.unwrap_or(Value::Null)
        }
    };
    Ok((key, value))
}

/// A single value; `None` for values that JSON omits, such as the zero time.
fn single(context: FieldContext<'_>, wire: Wire<'_>) -> Result<Option<Value>, DecodeError> {
    Ok(Some(match (context.field.value, wire) {
        (Type::String, _) => text(context, wire)?.into(),
        (Type::Boolean, Wire::Varint(value)) => (value != 0).into(),
        (Type::Boolean, _) => return Err(context.mismatch("true or false")),
        // Negative numbers are encoded as 64-bit two's complement.
        (Type::Integer, Wire::Varint(value)) => value.cast_signed().into(),
        (Type::Double, Wire::Fixed64(bits)) => f64::from_bits(bits).into(),
        (Type::Integer | Type::Double, _) => return Err(context.mismatch("a number")),
        (Type::Bytes, _) => BASE64_STANDARD.encode(bytes(context, wire)?).into(),
        (Type::Message(index), _) => {
            let mut object = Map::new();
            message(
                table().at(index),
                bytes(context, wire)?,
                &mut object,
                context.depth + 1,
            )?;
            object.into()
        }
        (Type::Special(special), _) => {
            return special::special(context, special, bytes(context, wire)?);
        }
    }))
}

fn bytes<'a>(context: FieldContext<'_>, wire: Wire<'a>) -> Result<&'a [u8], DecodeError> {
    match wire {
        Wire::Bytes(bytes) => Ok(bytes),
        _ => Err(context.mismatch("bytes")),
    }
}

fn text(context: FieldContext<'_>, wire: Wire<'_>) -> Result<String, DecodeError> {
    let text = std::str::from_utf8(bytes(context, wire)?);
    text.map(str::to_owned)
        .map_err(|_| context.mismatch("UTF-8 text"))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}
