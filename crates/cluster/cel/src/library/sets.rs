//! Lists as sets.

use crate::{
    error::EvalError,
    meter::Meter,
    value::{List, Value, position},
};

pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    meter: &mut Meter,
) -> Option<Result<Value<'a>, EvalError>> {
    let [Value::List(a), Value::List(b)] = args else {
        return None;
    };
    let found = match name {
        "sets.contains" => contains(a, b, meter),
        "sets.equivalent" => match contains(a, b, meter) {
            Ok(true) => contains(b, a, meter),
            other => other,
        },
        "sets.intersects" => intersects(a, b, meter),
        _ => return None,
    };
    Some(found.map(Value::Bool))
}

fn contains(whole: &List<'_>, part: &List<'_>, meter: &mut Meter) -> Result<bool, EvalError> {
    for item in part.iter() {
        if position(whole, &item?, meter)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects(a: &List<'_>, b: &List<'_>, meter: &mut Meter) -> Result<bool, EvalError> {
    for item in b.iter() {
        if position(a, &item?, meter)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
