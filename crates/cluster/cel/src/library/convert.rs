//! Conversions between types.

use jiff::Timestamp;

use crate::{
    error::EvalError,
    meter::Meter,
    value::{Bytes, Opaque, Value, parse_duration, parse_timestamp},
};

pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    meter: &mut Meter,
) -> Option<Result<Value<'a>, EvalError>> {
    let [arg] = args else { return None };
    if let Value::String(text) = arg
        && let Err(error) = meter.work(text.len())
    {
        return Some(Err(error));
    }
    Some(match name {
        "type" => Ok(Value::Type(arg.type_name())),
        "dyn" => Ok(arg.clone()),
        "bool" => to_bool(arg),
        "bytes" => to_bytes(arg),
        "double" => to_double(arg),
        "int" => to_int(arg),
        "uint" => to_uint(arg),
        "string" => to_string(arg, meter),
        "duration" => to_duration(arg),
        "timestamp" => to_timestamp(arg),
        _ => return None,
    })
}

fn wrong<T>(value: &Value<'_>, to: &str) -> Result<T, EvalError> {
    Err(EvalError::new(format!(
        "type conversion error from '{}' to '{to}'",
        value.type_name()
    )))
}

fn to_bool<'a>(value: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match value {
        Value::Bool(_) => Ok(value.clone()),
        Value::String(text) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => wrong(value, "bool"),
        },
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn to_bytes<'a>(value: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match value {
        Value::Bytes(_) => Ok(value.clone()),
        Value::String(text) => Ok(Value::Bytes(Bytes::Own(text.as_bytes().into()))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

#[allow(clippy::cast_precision_loss)]
fn to_double<'a>(value: &Value<'a>) -> Result<Value<'a>, EvalError> {
    Ok(Value::Double(match value {
        Value::Double(number) => *number,
        Value::Int(number) => *number as f64,
        Value::Uint(number) => *number as f64,
        Value::String(text) => match text.parse() {
            Ok(number) => number,
            Err(_) => return wrong(value, "double"),
        },
        _ => return Err(EvalError::NoSuchOverload),
    }))
}

#[allow(clippy::cast_possible_truncation)]
fn to_int<'a>(value: &Value<'a>) -> Result<Value<'a>, EvalError> {
    let overflow = || EvalError::new("integer overflow");
    Ok(Value::Int(match value {
        Value::Int(number) => *number,
        Value::Uint(number) => i64::try_from(*number).map_err(|_| overflow())?,
        Value::Double(number) if number.abs() < 9.223_372_036_854_775e18 => *number as i64,
        Value::Double(_) => return Err(overflow()),
        Value::String(text) => match text.parse() {
            Ok(number) => number,
            Err(_) => return wrong(value, "int"),
        },
        Value::Timestamp(time) => time.as_second(),
        Value::Duration(nanos) => *nanos,
        _ => return Err(EvalError::NoSuchOverload),
    }))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn to_uint<'a>(value: &Value<'a>) -> Result<Value<'a>, EvalError> {
    let overflow = || EvalError::new("unsigned integer overflow");
    Ok(Value::Uint(match value {
        Value::Uint(number) => *number,
        Value::Int(number) => u64::try_from(*number).map_err(|_| overflow())?,
        Value::Double(number) if *number >= 0.0 && *number < 1.844_674_407_370_955e19 => {
            *number as u64
        }
        Value::Double(_) => return Err(overflow()),
        Value::String(text) => match text.parse() {
            Ok(number) => number,
            Err(_) => return wrong(value, "uint"),
        },
        _ => return Err(EvalError::NoSuchOverload),
    }))
}

fn to_string<'a>(value: &Value<'a>, meter: &mut Meter) -> Result<Value<'a>, EvalError> {
    Ok(Value::text(match value {
        Value::String(_) => return Ok(value.clone()),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => double_text(*number),
        Value::Bytes(bytes) => match std::str::from_utf8(&bytes.decode(meter)?) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                return Err(EvalError::new(
                    "invalid UTF-8 in bytes, cannot convert to string",
                ));
            }
        },
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(nanos) => duration_text(*nanos),
        Value::Opaque(opaque) if matches!(**opaque, Opaque::Ip(_) | Opaque::Cidr(_)) => {
            super::net::text(opaque).unwrap_or_default()
        }
        _ => return Err(EvalError::NoSuchOverload),
    }))
}

fn to_duration<'a>(value: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match value {
        Value::Duration(_) => Ok(value.clone()),
        Value::Int(nanos) => Ok(Value::Duration(*nanos)),
        Value::String(text) => match parse_duration(text) {
            Some(nanos) => Ok(Value::Duration(nanos)),
            None => wrong(value, "google.protobuf.Duration"),
        },
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn to_timestamp<'a>(value: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match value {
        Value::Timestamp(_) => Ok(value.clone()),
        Value::Int(seconds) => match Timestamp::from_second(*seconds) {
            Ok(time) => Ok(Value::Timestamp(time)),
            Err(_) => Err(EvalError::new("timestamp overflow")),
        },
        Value::String(text) => match parse_timestamp(text) {
            Some(time) => Ok(Value::Timestamp(time)),
            None => wrong(value, "google.protobuf.Timestamp"),
        },
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// A number as Go writes it with the fewest digits.
pub(crate) fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let text = format!("{number:e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = power.parse().unwrap_or_default();
    if !(-4..6).contains(&power) {
        let sign = if power < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", power.abs());
    }
    format!("{number}")
}

/// A duration in seconds, as in `1.5s`.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn duration_text(nanos: i64) -> String {
    format!("{}s", nanos as f64 / 1e9)
}
