//! The valid keys of `longshore.toml`, and the closest key to a misspelled one.

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, Visitor, value::Error},
};
use toml::de::DeTable;

use super::{ConfigError, source::Source};
use crate::suggest;

/// The names of a struct's fields, as serde reads them.
pub(super) fn fields<T: Deserialize<'static>>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    // The result is always an error, because the deserializer has no value.
    let _ = T::deserialize(Fields(&mut fields));
    fields
}

/// Records the fields that a struct requests.
struct Fields<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("there is no value"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        option unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier
        ignored_any
    }
}

/// Rejects a table with an unknown key, and suggests the closest valid key. `name` is the name of
/// the table, as in `roles.worker`, or `None` for the table of the whole file.
pub(super) fn check(
    table: &DeTable<'_>,
    valid: &[&str],
    name: Option<&str>,
    source: &Source,
) -> Result<(), ConfigError> {
    let mut keys = table.iter().map(|(key, _)| key);
    let Some(unknown) = keys.find(|key| !valid.contains(&key.get_ref().as_ref())) else {
        return Ok(());
    };
    let key = unknown.get_ref().as_ref();
    let (prefix, place) = match name {
        None => (String::new(), String::new()),
        Some(name) => (format!("{name}."), format!(" in [{name}]")),
    };
    Err(ConfigError::UnknownKey {
        at: source.at(unknown.span().start),
        key: format!("{prefix}{key}"),
        place,
        nearest: match key {
            "cpu" | "memory" | "gpu" => Some(format!("resources.{key}")),
            _ => nearest(key, valid).map(str::to_owned),
        },
        valid: valid.join(", "),
    })
}

/// The closest valid key to a misspelled one.
fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase().replace('-', "_");
    suggest::nearest(&word, candidates.iter().copied())
}
