//! Optional values.

use crate::{error::EvalError, meter::Meter, value::Value};

pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    _: &mut Meter,
) -> Option<Result<Value<'a>, EvalError>> {
    Some(match (name, args) {
        ("optional.none", []) => Ok(Value::Optional(None)),
        ("optional.of", [value]) => Ok(Value::some(value.clone())),
        ("optional.ofNonZeroValue", [value]) => Ok(match value.is_zero() {
            true => Value::Optional(None),
            false => Value::some(value.clone()),
        }),
        ("hasValue", [Value::Optional(inner)]) => Ok(Value::Bool(inner.is_some())),
        ("value", [Value::Optional(Some(inner))]) => Ok((**inner).clone()),
        ("value", [Value::Optional(None)]) => Err(EvalError::new("optional.none() dereference")),
        _ => return None,
    })
}
