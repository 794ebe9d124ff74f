//! Parsing JSON once: its value, and whether an object in it names a field
//! twice, which the value does not show.

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Error, Map, Number, Value, de::Read};

use crate::duplicates::duplicate_fields;

/// The value of a JSON text, and the fields that come twice in an object of
/// it (the last of them counts), worded as API servers word them:
/// `duplicate field "spec.foo"`.
///
/// # Errors
/// The text is not JSON, as `serde_json` says it.
///
/// ```
/// let (value, twice) = longshore_schema::parse(br#"{"a": [{"b": 1, "b": 2}]}"#)?;
/// assert_eq!(value["a"][0]["b"], 2);
/// assert_eq!(twice, [r#"duplicate field "a[0].b""#]);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn parse(json: &[u8]) -> Result<(Value, Vec<String>), Error> {
    let twice = Cell::new(false);
    // Text that is known to be UTF-8 is not looked at again string by string.
    let value = match std::str::from_utf8(json) {
        Ok(text) => whole(serde_json::Deserializer::from_str(text), &twice),
        Err(_) => whole(serde_json::Deserializer::from_slice(json), &twice),
    }?;
    // Where they are is told by another look, which few texts need.
    let twice = if twice.get() {
        duplicate_fields(json)
    } else {
        Vec::new()
    };
    Ok((value, twice))
}

fn whole<'a, R: Read<'a>>(
    mut json: serde_json::Deserializer<R>,
    twice: &Cell<bool>,
) -> Result<Value, Error> {
    let value = Build(twice).deserialize(&mut json)?;
    json.end()?;
    Ok(value)
}

/// Builds one value; notes a field that comes twice.
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
    fn the_last_of_two_counts_and_both_are_told() {
        let (value, twice) = parse(br#"{"a": 1, "b": [{"c": null, "c": "x"}], "a": 2}"#).unwrap();
        assert_eq!(value, serde_json::json!({"a": 2, "b": [{"c": "x"}]}));
        assert_eq!(
            twice,
            [r#"duplicate field "b[0].c""#, r#"duplicate field "a""#]
        );
    }

    #[test]
    fn it_says_what_serde_json_says() {
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
