//! Operators.

use std::{cmp::Ordering, rc::Rc};

use jiff::{SignedDuration, Timestamp};

use crate::{
    decl::ListKind,
    error::EvalError,
    meter::Meter,
    value::{self, Bytes, List, Value, item_key, position},
};

pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    meter: &mut Meter,
) -> Option<Result<Value<'a>, EvalError>> {
    Some(match (name, args) {
        ("_+_", [a, b]) => add(a, b, meter),
        ("_-_", [a, b]) => subtract(a, b),
        ("_*_", [a, b]) => multiply(a, b),
        ("_/_", [a, b]) => divide(a, b),
        ("_%_", [a, b]) => remainder(a, b),
        ("-_", [Value::Int(a)]) => checked_int(a.checked_neg()),
        ("-_", [Value::Double(a)]) => Ok(Value::Double(-a)),
        ("!_", [Value::Bool(a)]) => Ok(Value::Bool(!a)),
        ("_==_", [a, b]) => value::equal(a, b, meter).map(Value::Bool),
        ("_!=_", [a, b]) => value::equal(a, b, meter).map(|equal| Value::Bool(!equal)),
        ("_<_", [a, b]) => order(a, b, meter, Ordering::is_lt),
        ("_<=_", [a, b]) => order(a, b, meter, Ordering::is_le),
        ("_>_", [a, b]) => order(a, b, meter, Ordering::is_gt),
        ("_>=_", [a, b]) => order(a, b, meter, Ordering::is_ge),
        ("@in", [item, Value::List(list)]) => {
            position(list, item, meter).map(|found| Value::Bool(found.is_some()))
        }
        ("@in", [key, Value::Map(map)]) => Ok(Value::Bool(map.contains(key))),
        _ => return None,
    })
}

fn order<'a>(
    a: &Value<'a>,
    b: &Value<'a>,
    meter: &mut Meter,
    fits: fn(Ordering) -> bool,
) -> Result<Value<'a>, EvalError> {
    Ok(Value::Bool(fits(value::compare(a, b, meter)?)))
}

fn checked_int<'a>(number: Option<i64>) -> Result<Value<'a>, EvalError> {
    number
        .map(Value::Int)
        .ok_or_else(|| EvalError::new("integer overflow"))
}

fn checked_uint<'a>(number: Option<u64>) -> Result<Value<'a>, EvalError> {
    number
        .map(Value::Uint)
        .ok_or_else(|| EvalError::new("unsigned integer overflow"))
}

fn checked_duration<'a>(nanos: Option<i64>) -> Result<Value<'a>, EvalError> {
    nanos
        .map(Value::Duration)
        .ok_or_else(|| EvalError::new("duration overflow"))
}

fn moved<'a>(time: Timestamp, nanos: i64) -> Result<Value<'a>, EvalError> {
    time.checked_add(SignedDuration::from_nanos(nanos))
        .map(Value::Timestamp)
        .map_err(|_| EvalError::new("timestamp overflow"))
}

/// The sum of two values; also concatenates.
pub(crate) fn add<'a>(
    a: &Value<'a>,
    b: &Value<'a>,
    meter: &mut Meter,
) -> Result<Value<'a>, EvalError> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => checked_int(a.checked_add(*b)),
        (Value::Uint(a), Value::Uint(b)) => checked_uint(a.checked_add(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::String(a), Value::String(b)) => {
            meter.work(a.len().saturating_add(b.len()))?;
            Ok(Value::text([&**a, &**b].concat()))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            let (a, b) = (a.decode(meter)?, b.decode(meter)?);
            Ok(Value::Bytes(Bytes::Own([&*a, &*b].concat().into())))
        }
        (Value::List(a), Value::List(b)) => concatenate(a, b, meter),
        (Value::Timestamp(time), Value::Duration(nanos))
        | (Value::Duration(nanos), Value::Timestamp(time)) => moved(*time, *nanos),
        (Value::Duration(a), Value::Duration(b)) => checked_duration(a.checked_add(*b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// Adds lists. Lists with a schema are added as sets or maps if the schema declares this.
fn concatenate<'a>(a: &List<'a>, b: &List<'a>, meter: &mut Meter) -> Result<Value<'a>, EvalError> {
    meter.steps((a.len() as u64).saturating_add(b.len() as u64))?;
    let mut items = a.to_vec()?;
    let kind = a.kind();
    match kind {
        ListKind::Atomic => items.extend(b.to_vec()?),
        ListKind::Set => {
            for item in b.iter() {
                let item = item?;
                if position(a, &item, meter)?.is_none() {
                    items.push(item);
                }
            }
        }
        ListKind::Map(keys) => {
            let mut at = std::collections::BTreeMap::new();
            for (index, item) in items.iter().enumerate() {
                at.insert(item_key(item, keys), index);
            }
            for item in b.iter() {
                let item = item?;
                match at.get(&item_key(&item, keys)) {
                    Some(index) => items[*index] = item,
                    None => items.push(item),
                }
            }
        }
    }
    Ok(match kind {
        ListKind::Atomic => Value::list(items),
        kind => Value::List(List::Typed {
            items: Rc::new(items),
            kind,
        }),
    })
}

fn subtract<'a>(a: &Value<'a>, b: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => checked_int(a.checked_sub(*b)),
        (Value::Uint(a), Value::Uint(b)) => checked_uint(a.checked_sub(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a - b)),
        (Value::Timestamp(time), Value::Duration(nanos)) => match nanos.checked_neg() {
            Some(nanos) => moved(*time, nanos),
            None => Err(EvalError::new("duration overflow")),
        },
        (Value::Timestamp(a), Value::Timestamp(b)) => {
            let nanos = a.as_nanosecond() - b.as_nanosecond();
            checked_duration(i64::try_from(nanos).ok())
        }
        (Value::Duration(a), Value::Duration(b)) => checked_duration(a.checked_sub(*b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn multiply<'a>(a: &Value<'a>, b: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => checked_int(a.checked_mul(*b)),
        (Value::Uint(a), Value::Uint(b)) => checked_uint(a.checked_mul(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a * b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn divide<'a>(a: &Value<'a>, b: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match (a, b) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => {
            Err(EvalError::new("division by zero"))
        }
        (Value::Int(a), Value::Int(b)) => checked_int(a.checked_div(*b)),
        (Value::Uint(a), Value::Uint(b)) => checked_uint(a.checked_div(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a / b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn remainder<'a>(a: &Value<'a>, b: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match (a, b) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => {
            Err(EvalError::new("modulus by zero"))
        }
        (Value::Int(a), Value::Int(b)) => checked_int(a.checked_rem(*b)),
        (Value::Uint(a), Value::Uint(b)) => checked_uint(a.checked_rem(*b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}
