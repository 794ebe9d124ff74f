//! Messages with a JSON form of their own: times, quantities, embedded JSON.

use jiff::Timestamp;
use longshore_model::time::{micros, seconds};
use serde_json::{Map, Value};

use super::Place;
use crate::protobuf::{
    DecodeError,
    table::{Special, table},
    wire::{Reader, Wire},
};

/// The schema type that the three "or" types hold.
const JSON_SCHEMA: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// The JSON of a special message; nothing where JSON leaves the field out.
pub(super) fn special(
    place: Place<'_>,
    special: Special,
    bytes: &[u8],
) -> Result<Option<Value>, DecodeError> {
    let fields = Fields::read(place, bytes)?;
    match special {
        Special::Time => time(place, &fields, seconds),
        Special::MicroTime => time(place, &fields, micros),
        Special::Quantity => Ok(Some(match fields.bytes(1) {
            Some(bytes) => text(place, bytes)?,
            None => "0".into(),
        })),
        // Field 1 is the type: 0 for the number in 2, 1 for the text in 3.
        Special::IntOrString => Ok(Some(match fields.number(1) {
            Some(1) => text(place, fields.bytes(3).unwrap_or_default())?,
            _ => fields.number(2).unwrap_or(0).into(),
        })),
        Special::Json => match fields.bytes(1).unwrap_or_default() {
            [] => Ok(None),
            raw => serde_json::from_slice(raw)
                .map(Some)
                .map_err(|_| place.mismatch("JSON")),
        },
        Special::Items => fields.texts(place, 1).map(Some),
        Special::SchemaOrArray => match fields.bytes(1) {
            Some(one) => schema(place, one).map(Some),
            None => fields
                .all(2)
                .map(|bytes| schema(place, bytes))
                .collect::<Result<_, _>>()
                .map(Some),
        },
        Special::SchemaOrBool => Ok(Some(match fields.bytes(2) {
            Some(one) => schema(place, one)?,
            None => (fields.number(1).unwrap_or(0) != 0).into(),
        })),
        Special::SchemaOrStringArray => match fields.bytes(1) {
            Some(one) => schema(place, one).map(Some),
            None => fields.texts(place, 2).map(Some),
        },
    }
}

/// Seconds and nanoseconds since 1970. The zero time is an empty message.
fn time(
    place: Place<'_>,
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
        .map_err(|_| place.mismatch("a time of the calendar"))
}

fn schema(place: Place<'_>, bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut object = Map::new();
    if let Some(message) = table().find(JSON_SCHEMA) {
        super::message(message, bytes, &mut object, place.depth + 1)?;
    }
    Ok(object.into())
}

fn text(place: Place<'_>, bytes: &[u8]) -> Result<Value, DecodeError> {
    std::str::from_utf8(bytes)
        .map(Value::from)
        .map_err(|_| place.mismatch("UTF-8 text"))
}

/// The fields of a small message.
struct Fields<'a>(Vec<(u32, Wire<'a>)>);

impl<'a> Fields<'a> {
    fn read(place: Place<'a>, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut fields = Vec::new();
        let mut reader = Reader::new(&place.message.name, bytes);
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

    fn texts(&self, place: Place<'_>, number: u32) -> Result<Value, DecodeError> {
        self.all(number).map(|bytes| text(place, bytes)).collect()
    }
}
