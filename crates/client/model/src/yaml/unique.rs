//! Values of YAML texts in which no mapping has a key twice.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// A JSON value that is read only if no mapping in it has a key twice. Otherwise, all but the last value
/// of the key would be lost.
///
/// ```
/// use longshore_model::yaml::Unique;
/// let read = |text| serde_yaml_ng::from_str::<Unique>(text);
/// assert_eq!(read("a: {b: 1}").unwrap().0["a"]["b"], 1);
/// let error = read("a: 1\nb: 2\na: 3\n").unwrap_err().to_string();
/// assert!(error.contains("the key \"a\" occurs twice at line 3"), "{error}");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Unique(pub Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Reader { repeats: None }.deserialize(deserializer)
    }
}

/// Reads a value.
struct Reader<'a> {
    /// The key of the value, if it has occurred before. The error of the value
    /// has the line.
    repeats: Option<&'a str>,
}

impl Reader<'_> {
    fn done<E: Error>(self, value: impl Into<Value>) -> Result<Unique, E> {
        match self.repeats {
            Some(key) => Err(E::custom(format_args!("the key {key:?} occurs twice"))),
            None => Ok(Unique(value.into())),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Unique;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Unique, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Unique, E> {
        self.done(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Unique, E> {
        self.done(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Unique, E> {
        self.done(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Unique, E> {
        self.done(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Unique, E> {
        self.done(value)
    }

    fn visit_unit<E: Error>(self) -> Result<Unique, E> {
        self.done(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Unique, E> {
        self.done(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Unique, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unique, A::Error> {
        let mut values = Vec::new();
        while let Some(Unique(value)) = items.next_element()? {
            values.push(value);
        }
        self.done(values)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Unique, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let repeats = map.contains_key(&key).then_some(key.as_str());
            let Unique(value) = entries.next_value_seed(Reader { repeats })?;
            map.insert(key, value);
        }
        self.done(map)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn refusal(text: &str) -> String {
        serde_yaml_ng::from_str::<Unique>(text)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_key_that_occurs_twice_is_refused_at_any_depth() {
        for text in [
            "{a: 1, a: 1}",
            "- {a: {b: [x, {c: 1, c: 2}]}}",
            "a:\n  b: 1\n  'b': 2\n",
            "{\"a\": 1, \"\\u0061\": 2}",
        ] {
            assert!(refusal(text).contains("occurs twice"), "{text}");
        }
    }

    proptest! {
        /// Apart from keys that occur twice, it is the value that serde_json reads.
        #[test]
        fn values_are_those_of_serde_json(text in r#"(\{|\[|\}|\]|, |: |- |\n|  |a|b|1|0x1f|1\.5|\.nan|-3|true|null|~|'q'|"w"|yes|!t ){0,20}"#) {
            let expected = serde_yaml_ng::from_str::<Value>(&text);
            match serde_yaml_ng::from_str::<Unique>(&text) {
                Ok(Unique(value)) => prop_assert_eq!(value, expected.unwrap()),
                Err(error) if error.to_string().contains("occurs twice") => prop_assert!(expected.is_ok()),
                Err(_) => prop_assert!(expected.is_err()),
            }
        }
    }
}
