//! Equality and order of values. Lists from schemas are compared as sets or maps if the schema
//! declares this.

use std::{cmp::Ordering, collections::BTreeMap};

use super::{Key, List, Map, Text, Value};
use crate::{decl::ListKind, error::EvalError, meter::Meter};

/// Returns true if two values are equal. Numbers of different types can be equal.
pub(crate) fn equal(a: &Value<'_>, b: &Value<'_>, meter: &mut Meter) -> Result<bool, EvalError> {
    meter.step()?;
    Ok(match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => {
            meter.work(a.len().min(b.len()))?;
            **a == **b
        }
        (Value::Bytes(a), Value::Bytes(b)) => a.decode(meter)? == b.decode(meter)?,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => a == b,
        (Value::Opaque(a), Value::Opaque(b)) => a.equals(b),
        (Value::Optional(None), Value::Optional(None)) => true,
        (Value::Optional(Some(a)), Value::Optional(Some(b))) => equal(a, b, meter)?,
        (Value::List(a), Value::List(b)) => equal_lists(a, b, meter)?,
        (Value::Map(a), Value::Map(b)) => equal_maps(a, b, meter)?,
        (Value::Struct(a), Value::Struct(b)) => {
            if a.name != b.name || a.fields.len() != b.fields.len() {
                return Ok(false);
            }
            for ((a_name, a), (b_name, b)) in a.fields.iter().zip(&b.fields) {
                if a_name != b_name || !equal(a, b, meter)? {
                    return Ok(false);
                }
            }
            true
        }
        _ => numbers(a, b) == Some(Ordering::Equal),
    })
}

fn equal_lists(a: &List<'_>, b: &List<'_>, meter: &mut Meter) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    match a.kind() {
        ListKind::Atomic => {
            for (a, b) in a.iter().zip(b.iter()) {
                if !equal(&a?, &b?, meter)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        ListKind::Set => {
            for item in a.iter() {
                if position(b, &item?, meter)?.is_none() {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        ListKind::Map(keys) => {
            let mut by_key = BTreeMap::new();
            for item in b.iter() {
                let item = item?;
                meter.step()?;
                by_key.insert(item_key(&item, keys), item);
            }
            for item in a.iter() {
                let item = item?;
                match by_key.get(&item_key(&item, keys)) {
                    Some(other) if equal(&item, other, meter)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
    }
}

/// The values of the key fields of an item.
pub(crate) fn item_key(item: &Value<'_>, keys: &[String]) -> Vec<Option<Key>> {
    let Value::Map(map) = item else {
        return Vec::new();
    };
    keys.iter()
        .map(|key| {
            let found = map.get(&Value::String(Text::Part(key)))?.ok()?;
            Key::of(&found)
        })
        .collect()
}

/// The index of an equal item.
pub(crate) fn position(
    list: &List<'_>,
    wanted: &Value<'_>,
    meter: &mut Meter,
) -> Result<Option<usize>, EvalError> {
    for (index, item) in list.iter().enumerate() {
        if equal(&item?, wanted, meter)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn equal_maps(a: &Map<'_>, b: &Map<'_>, meter: &mut Meter) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    meter.steps(a.len() as u64)?;
    for key in a.keys() {
        let (Some(a), Some(b)) = (a.get(&key), b.get(&key)) else {
            return Ok(false);
        };
        if !equal(&a?, &b?, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The order of two numbers.
fn numbers(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    let whole = |value: &Value<'_>| match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::Uint(number) => Some(i128::from(*number)),
        _ => None,
    };
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Double(a), b) => whole_to_double(whole(b)?, *a).map(Ordering::reverse),
        (a, Value::Double(b)) => whole_to_double(whole(a)?, *b),
        (a, b) => Some(whole(a)?.cmp(&whole(b)?)),
    }
}

/// The order of a whole number and a double, without loss of precision.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn whole_to_double(whole: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    if double.abs() > 1e30 {
        return 0.0f64.partial_cmp(&double);
    }
    let floor = double.floor();
    Some(match whole.cmp(&(floor as i128)) {
        Ordering::Equal if double > floor => Ordering::Less,
        order => order,
    })
}

/// The order of two values.
pub(crate) fn compare(
    a: &Value<'_>,
    b: &Value<'_>,
    meter: &mut Meter,
) -> Result<Ordering, EvalError> {
    Ok(match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => {
            meter.work(a.len().min(b.len()))?;
            (**a).cmp(&**b)
        }
        (Value::Bytes(a), Value::Bytes(b)) => a.decode(meter)?.cmp(&b.decode(meter)?),
        (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
        (a, b) => match numbers(a, b) {
            Some(order) => order,
            None if matches!((a, b), (Value::Double(_), _) | (_, Value::Double(_))) => {
                return Err(EvalError::new("NaN values cannot be ordered"));
            }
            None => return Err(EvalError::NoSuchOverload),
        },
    })
}
