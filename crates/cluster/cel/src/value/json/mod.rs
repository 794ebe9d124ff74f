//! Converts JSON values to values, as their schema declares them.

mod list;
mod map;

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde_json::Value as Json;

pub(crate) use list::List;
pub(crate) use map::{Key, Map};

use super::{Bytes, Text, Value};
use crate::{
    decl::{Decl, ListKind, Shape},
    error::EvalError,
};

/// Converts a JSON value with a declaration.
pub(crate) fn from_json<'a>(json: &'a Json, decl: &'a Decl) -> Result<Value<'a>, EvalError> {
    let wrong = |expected: &str| EvalError::new(format!("invalid data, expected {expected}"));
    Ok(match (&decl.shape, json) {
        (_, Json::Null) => Value::Null,
        (Shape::Any | Shape::IntOrString, Json::Number(number)) => {
            if let Some(number) = number.as_i64() {
                Value::Int(number)
            } else {
                Value::Double(number.as_f64().unwrap_or_default())
            }
        }
        (Shape::Double, Json::Number(number)) => Value::Double(number.as_f64().unwrap_or_default()),
        (Shape::Int, Json::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Value::Int(number),
            #[allow(clippy::cast_possible_truncation)]
            (None, Some(number)) if number.fract() == 0.0 && number.abs() < 9.2e18 => {
                Value::Int(number as i64)
            }
            _ => return Err(wrong("an integer")),
        },
        (Shape::Any | Shape::Bool, Json::Bool(flag)) => Value::Bool(*flag),
        (Shape::Any | Shape::IntOrString | Shape::String, Json::String(text)) => {
            Value::String(Text::Part(text))
        }
        (Shape::Bytes, Json::String(text)) => Value::Bytes(Bytes::Encoded(text)),
        (Shape::Duration, Json::String(text)) => match parse_units(text, true) {
            Some(duration) => Value::Duration(duration),
            None => return Err(EvalError::new(format!("Invalid duration {text}"))),
        },
        (Shape::Date, Json::String(text)) => {
            let date = text.parse::<Date>().ok();
            let time = date.and_then(|date| date.to_zoned(TimeZone::UTC).ok());
            match time {
                Some(time) => Value::Timestamp(time.timestamp()),
                None => {
                    return Err(EvalError::new(format!(
                        "Invalid date formatted string {text}"
                    )));
                }
            }
        }
        (Shape::DateTime, Json::String(text)) => match parse_timestamp(text) {
            Some(time) => Value::Timestamp(time),
            None => {
                return Err(EvalError::new(format!(
                    "Invalid date-time formatted string {text}"
                )));
            }
        },
        (Shape::List { items: decl, kind }, Json::Array(items)) => {
            Value::List(List::Json { items, decl, kind })
        }
        (Shape::Any, Json::Array(items)) => Value::List(List::Json {
            items,
            decl: Decl::any_ref(),
            kind: &ListKind::Atomic,
        }),
        (Shape::Map(_) | Shape::Object(_) | Shape::Any, Json::Object(fields)) => {
            Value::Map(Map::Json { fields, decl })
        }
        (Shape::IntOrString, _) => return Err(wrong("a string or an integer")),
        (_, _) => return Err(wrong("a value of the declared type")),
    })
}

/// Parses a time of RFC 3339.
pub(crate) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let (date, _) = text.split_once(['T', 't'])?;
    (date.len() == 10).then(|| text.parse().ok()).flatten()
}

/// Parses a duration as Go writes it, as in `1h30m`, in nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    parse_units(text, false)
}

/// Parses a duration. If `days` is set, days and weeks are also allowed, as in schemas.
fn parse_units(text: &str, days: bool) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" if days => 86_400_000_000_000,
            "w" if days => 604_800_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.len() > 19 || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let whole: i128 = match whole {
            "" => 0,
            digits => digits.parse().ok()?,
        };
        total = total.checked_add(whole.checked_mul(unit)?)?;
        let digits: String = fraction.chars().take(18).collect();
        if !digits.is_empty() {
            let scale = 10i128.checked_pow(u32::try_from(digits.len()).ok()?)?;
            total = total.checked_add(digits.parse::<i128>().ok()?.checked_mul(unit)? / scale)?;
        }
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}
