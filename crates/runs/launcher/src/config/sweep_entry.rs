//! Parameters and combinations as written.

use std::{fmt, str::FromStr};

use serde::{
    Deserialize, Deserializer,
    de::{
        Error, MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};

use super::{ConfigError, Scalar, Text, values::invalid};

/// A part of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub enum SweepEntry {
    /// A parameter and its values.
    Parameter(Text, SweepValues),
    /// The values of all parameters in one combination.
    Combination(Vec<(Text, Scalar)>),
}

/// The values of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum SweepValues {
    /// `0.1,0.01`, `1..5` or `0.1..1.0:log`.
    Expression(String),
    /// Single values.
    List(Vec<Scalar>),
}

impl FromStr for SweepEntry {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let rule = "write NAME=VALUES, as in lr=0.1,0.01 or seed=1..5";
        let pair = text.split_once('=');
        let (name, values) = pair.ok_or_else(|| invalid("--sweep", text, rule))?;
        let values = SweepValues::Expression(values.to_owned());
        Ok(Self::Parameter(name.trim().into(), values))
    }
}

/// Reads the key `sweep`: a table of parameters, or a list of combinations.
pub(super) fn entries<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<SweepEntry>, D::Error> {
    deserializer.deserialize_any(SweepVisitor)
}

struct SweepVisitor;

impl<'de> Visitor<'de> for SweepVisitor {
    type Value = Vec<SweepEntry>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of parameters, or a list of combinations")
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Self::Value, A::Error> {
        let values: std::collections::BTreeMap<Text, SweepValues> =
            Deserialize::deserialize(MapAccessDeserializer::new(table))?;
        let mut values: Vec<_> = values.into_iter().collect();
        in_order(&mut values);
        let entries = values.into_iter();
        Ok(entries
            .map(|(name, values)| SweepEntry::Parameter(name, values))
            .collect())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        let list: Vec<std::collections::BTreeMap<Text, Scalar>> =
            Deserialize::deserialize(SeqAccessDeserializer::new(list))?;
        let combinations = list.into_iter().map(|values| {
            let mut values: Vec<_> = values.into_iter().collect();
            in_order(&mut values);
            SweepEntry::Combination(values)
        });
        Ok(combinations.collect())
    }
}

/// Sorts by the position in the file.
fn in_order<V>(values: &mut [(Text, V)]) {
    values.sort_by_key(|(name, _)| name.offset());
}

impl<'de> Deserialize<'de> for SweepValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValuesVisitor)
    }
}

struct ValuesVisitor;

impl<'de> Visitor<'de> for ValuesVisitor {
    type Value = SweepValues;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of values, or a string, as in \"1..5\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SweepValues, E> {
        Ok(SweepValues::Expression(text.to_owned()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<SweepValues, E> {
        Ok(SweepValues::List(vec![Scalar::Integer(value)]))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<SweepValues, E> {
        Ok(SweepValues::List(vec![Scalar::Number(value)]))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<SweepValues, E> {
        Ok(SweepValues::List(vec![Scalar::Truth(value)]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<SweepValues, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(values)).map(SweepValues::List)
    }
}
