//! Quantities.

use crate::{
    error::EvalError,
    meter::Meter,
    value::{Decimal, Opaque, Value},
};

fn quantity(value: &Value<'_>) -> Option<Decimal> {
    match value {
        Value::Opaque(opaque) => match &**opaque {
            Opaque::Quantity(number) => Some(*number),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    meter: &mut Meter,
) -> Option<Result<Value<'a>, EvalError>> {
    if let ("quantity" | "isQuantity", [Value::String(text)]) = (name, args) {
        if let Err(error) = meter.work(text.len()) {
            return Some(Err(error));
        }
        let found = Decimal::parse(text);
        return Some(match name {
            "quantity" => found
                .map(|number| Value::opaque(Opaque::Quantity(number)))
                .map_err(EvalError::Other),
            _ => Ok(Value::Bool(found.is_ok())),
        });
    }
    let own = quantity(args.first()?)?;
    let other = match args.get(1) {
        None => None,
        Some(Value::Int(number)) => Some(Decimal::of(*number)),
        Some(other) => Some(quantity(other)?),
    };
    let made = |number| Ok(Value::opaque(Opaque::Quantity(number)));
    Some(match (name, other) {
        ("sign", None) => Ok(Value::Int(own.sign())),
        ("isInteger", None) => Ok(Value::Bool(own.integer().is_some())),
        ("asInteger", None) => own
            .integer()
            .map(Value::Int)
            .ok_or_else(|| EvalError::new("cannot convert value to integer")),
        ("asApproximateFloat", None) => Ok(Value::Double(own.double())),
        ("add", Some(other)) => made(own.plus(other)),
        ("sub", Some(other)) => made(own.minus(other)),
        ("isGreaterThan", Some(other)) => Ok(Value::Bool(own > other)),
        ("isLessThan", Some(other)) => Ok(Value::Bool(own < other)),
        ("compareTo", Some(other)) => Ok(Value::Int(own.cmp(&other) as i64)),
        _ => return None,
    })
}
