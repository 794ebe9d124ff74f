//! Messages with a special JSON format: times, quantities, embedded JSON.

use jiff::Timestamp;
use longshore_model::time::{micros, seconds};
use serde_json::{Map, Value};

use super::FieldContext;
use crate::protobuf::{
    DecodeError,
    table::{Special, table},
    wire::{Reader, Wire},
};

/// The schema type within the three "or" types.
const JSON_SCHEMA: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// The JSON of a special message; `None` if JSON omits the field.
pub(super) fn special(
    context: FieldContext<'_>,
    special: Special,
    bytes: &[u8],
) -> Result<Option<Value>, DecodeError> {
    let fields = Fields::read(context, bytes)?;
    match special {
        Special::Time => time(context, &fields, seconds),
        Special::MicroTime => time(context, &fields, micros),
        Special::Quantity => Ok(Some(match fields.bytes(1) {
            Some(bytes) => text(context, bytes)?,
            None => "0".into(),
        })),
        // Field 1 is the type: 0 for the number in field 2, 1 for the string in
        // field 3.
        Special::IntOrString => Ok(Some(match fields.number(1) {
            Some(1) => text(context, fields.bytes(3).unwrap_or_default())?,
            _ => fields.number(2).unwrap_or(0).into(),
        })),
        Special::Json => match fields.bytes(1).unwrap_or_default() {
            [] => Ok(None),
            raw => serde_json::from_slice(raw)
                .map(Some)
                .map_err(|_| context.mismatch("JSON")),
        },
        Special::Items => fields.texts(context, 1).map(Some),
        Special::SchemaOrArray => match fields.bytes(1) {
            Some(one) => schema(context, one).map(Some),
            None => fields
                .all(2)
                .map(|bytes| schema(context, bytes))
                .collect::<Result<_, _>>()
                .map(Some),
        },
        Special::SchemaOrBool => Ok(Some(match fields.bytes(2) {
            Some(one) => schema(context, one)?,
            None => (fields.number(1).unwrap_or(0) != 0).into(),
        })),
        Special::SchemaOrStringArray => match fields.bytes(1) {
            Some(one) => schema(context, one).map(Some),
            None => fields.texts(context, 2).map(Some),
        },
    }
}

/// Seconds and nanoseconds since 1970. The zero time is an empty message.
fn time(
    context: FieldContext<'_>,
    fields: &Fields<'_>,
    write: fn(Timestamp) -> String,
) -> Result<Option<Value>, DecodeError> {
    if fields.0.is_empty() {
        return Ok(None);
    }
    let nanoseconds = fields
        .number(2)
        .and_then(|number| i32::try_from(number).ok())
        .unwrap_or(0);
    Timestamp::new(fields.number(1).unwrap_or(0), nanoseconds)
        .map(|time| Some(write(time).into()))
        .map_err(|_| context.mismatch("a time of the calendar"))
}

fn schema(context: FieldContext<'_>, bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut object = Map::new();
    if let Some(message) = table().find(JSON_SCHEMA) {
        super::message(message, bytes, &mut object, context.depth + 1)?;
    }
    Ok(object.into())
}

fn text(context: FieldContext<'_>, bytes: &[u8]) -> Result<Value, DecodeError> {
    std::str::from_utf8(bytes)
        .map(Value::from)
        .map_err(|_| context.mismatch("UTF-8 text"))
}

/// The fields of a small message.
struct Fields<'a>(Vec<(u32, Wire<'a>)>);

impl<'a> Fields<'a> {
    fn read(context: FieldContext<'a>, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut fields = Vec::new();
        let mut reader = Reader::new(&context.message.name, bytes);
        while let Some(field) = reader.next()? {
            fields.push(field);
        }
        Ok(Self(fields))
    }

    fn number(&self, number: u32) -> Option<i64> {
        self.0.iter().rev().find_map(|field| match field {
            (n, Wire::Varint(value)) if *n == number => Some(value.cast_signed()),
            _ => None,
        })
    }

    fn bytes(&self, number: u32) -> Option<&'a [u8]> {
        self.all(number).last()
    }

    fn all(&self, number: u32) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter_map(move |field| match field {
            (n, Wire::Bytes(bytes)) if *n == number => Some(*bytes),
            _ => None,
        })
    }

    fn texts(&self, context: FieldContext<'_>, number: u32) -> Result<Value, DecodeError> {
        self.all(number).map(|bytes| text(context, bytes)).collect()
    }
}
