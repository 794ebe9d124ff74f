//! Parses JSON and detects duplicate fields, which the resulting value does not
//! show, in one pass.

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Error, Map, Number, Value, de::Read};

use crate::duplicates::duplicate_fields;

/// Parses a JSON text. Returns its value and its duplicate fields (the last one
/// wins), with the messages of API servers: `duplicate field "spec.foo"`.
///
/// # Errors
/// Returns the error of `serde_json` if the text is not JSON.
///
/// ```
/// let (value, duplicates) = longshore_schema::parse(br#"{"a": [{"b": 1, "b": 2}]}"#)?;
/// assert_eq!(value["a"][0]["b"], 2);
/// assert_eq!(duplicates, [r#"duplicate field "a[0].b""#]);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn parse(json: &[u8]) -> Result<(Value, Vec<String>), Error> {
    let has_duplicates = Cell::new(false);
    // Validate UTF-8 once for the whole text instead of once per string.
    let value = match std::str::from_utf8(json) {
        Ok(text) => whole(serde_json::Deserializer::from_str(text), &has_duplicates),
        Err(_) => whole(serde_json::Deserializer::from_slice(json), &has_duplicates),
    }?;
    // Few texts have duplicates, so only those are searched a second time for
    // the paths.
    let has_duplicates = if has_duplicates.get() {
        duplicate_fields(json)
    } else {
        Vec::new()
    };
    Ok((value, has_duplicates))
}

fn whole<'a, R: Read<'a>>(
    mut json: serde_json::Deserializer<R>,
    has_duplicates: &Cell<bool>,
) -> Result<Value, Error> {
    let value = Build(has_duplicates).deserialize(&mut json)?;
    json.end()?;
    Ok(value)
}

/// Builds a value and records whether a field is duplicate.
struct Build<'a>(&'a Cell<bool>);

impl<'de> DeserializeSeed<'de> for Build<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Build<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any valid JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = map.next_key()? {
            let value = map.next_value_seed(Build(self.0))?;
            if fields.insert(name, value).is_some() {
                self.0.set(true);
            }
        }
        Ok(Value::Object(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(Build(self.0))? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::parse;

    #[test]
    fn the_last_duplicate_wins_and_duplicates_are_reported() {
        let (value, has_duplicates) =
            parse(br#"{"a": 1, "b": [{"c": null, "c": "x"}], "a": 2}"#).unwrap();
        assert_eq!(value, serde_json::json!({"a": 2, "b": [{"c": "x"}]}));
        assert_eq!(
            has_duplicates,
            [r#"duplicate field "b[0].c""#, r#"duplicate field "a""#]
        );
    }

    #[test]
    fn errors_are_those_of_serde_json() {
        let deep = "[".repeat(200);
        let cases: [&[u8]; 9] = [
            b"",
            b"{",
            b"{\"a\":1} x",
            b"[1,]",
            b"nul",
            b"1e999",
            b"\"\xff\"",
            b"{\"a\":\"\xff\"}",
            deep.as_bytes(),
        ];
        for text in cases {
            let plain = serde_json::from_slice::<serde_json::Value>(text).unwrap_err();
            let ours = parse(text).unwrap_err();
            assert_eq!(ours.to_string(), plain.to_string());
            assert_eq!(ours.is_eof(), plain.is_eof());
        }
    }

    proptest! {
        #[test]
        fn values_are_those_of_serde_json(text in r#"[\[\]{},:"a-c0-9.eEu\\ -]{0,40}"#) {
            let plain = serde_json::from_str::<serde_json::Value>(&text);
            let ours = parse(text.as_bytes());
            prop_assert_eq!(ours.is_ok(), plain.is_ok());
            if let (Ok((ours, _)), Ok(plain)) = (ours, plain) {
                prop_assert_eq!(ours, plain);
            }
        }
    }
}
