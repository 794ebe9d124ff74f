//! `string.format`.

use crate::{
    error::EvalError,
    library::convert::{double_text, duration_text},
    meter::Meter,
    value::{Opaque, Value},
};

/// Maximum number of digits after the point.
const MAX_PRECISION: usize = 1000;

/// Formats values.
pub(crate) fn format(
    text: &str,
    args: &[Value<'_>],
    meter: &mut Meter,
) -> Result<String, EvalError> {
    let mut out = String::with_capacity(text.len());
    let mut args = args.iter().enumerate();
    let mut used = 0;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if rest.peek() == Some(&'%') {
            rest.next();
            out.push('%');
            continue;
        }
        let mut precision = None;
        if rest.peek() == Some(&'.') {
            rest.next();
            let mut digits = String::new();
            while let Some(digit) = rest.peek().filter(|c| c.is_ascii_digit()) {
                digits.push(*digit);
                rest.next();
            }
            let found = digits
                .parse::<usize>()
                .ok()
                .filter(|found| *found <= MAX_PRECISION);
            precision = Some(found.ok_or_else(|| {
                EvalError::new(format!(
                    "error while parsing precision: {digits:?} is not a number up to {MAX_PRECISION}"
                ))
            })?);
        }
        let Some(verb) = rest.next() else {
            return Err(EvalError::new("unexpected end of string"));
        };
        let Some((index, arg)) = args.next() else {
            return Err(EvalError::new(format!("index {used} out of range")));
        };
        used = index + 1;
        let before = out.len();
        clause(verb, arg, precision, &mut out, meter)?;
        meter.work(out.len() - before)?;
    }
    Ok(out)
}

fn clause(
    verb: char,
    arg: &Value<'_>,
    precision: Option<usize>,
    out: &mut String,
    meter: &mut Meter,
) -> Result<(), EvalError> {
    let mismatch = |expected: &str| {
        EvalError::new(format!(
            "type conversion error from '{}' to '{expected}'",
            arg.type_name()
        ))
    };
    match (verb, arg) {
        ('s', arg) => text(arg, out, meter)?,
        ('d', Value::Int(number)) => out.push_str(&number.to_string()),
        ('d', Value::Uint(number)) => out.push_str(&number.to_string()),
        ('d', Value::Double(number)) if !number.is_finite() => out.push_str(&special(*number)),
        ('f' | 'e', arg) => {
            #[allow(clippy::cast_precision_loss)]
            let number = match arg {
                Value::Double(number) => *number,
                Value::Int(number) => *number as f64,
                Value::Uint(number) => *number as f64,
                _ => return Err(mismatch("double")),
            };
            let digits = precision.unwrap_or(6);
            out.push_str(&match verb {
                _ if !number.is_finite() => special(number),
                'f' => format!("{number:.digits$}"),
                _ => exponent(number, digits),
            });
        }
        ('b', Value::Int(number)) => out.push_str(&signed(*number, |n| format!("{n:b}"))),
        ('b', Value::Uint(number)) => out.push_str(&format!("{number:b}")),
        ('b', Value::Bool(flag)) => out.push(if *flag { '1' } else { '0' }),
        ('o', Value::Int(number)) => out.push_str(&signed(*number, |n| format!("{n:o}"))),
        ('o', Value::Uint(number)) => out.push_str(&format!("{number:o}")),
        ('x' | 'X', arg) => {
            let hex = match arg {
                Value::Int(number) => signed(*number, |n| format!("{n:x}")),
                Value::Uint(number) => format!("{number:x}"),
                Value::String(text) => {
                    meter.work(text.len())?;
                    text.bytes().map(|byte| format!("{byte:02x}")).collect()
                }
                Value::Bytes(bytes) => {
                    let bytes = bytes.decode(meter)?;
                    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
                }
                _ => return Err(mismatch("int")),
            };
            out.push_str(&if verb == 'X' { hex.to_uppercase() } else { hex });
        }
        ('d' | 'b' | 'o', _) => return Err(mismatch("int")),
        (verb, _) => {
            return Err(EvalError::new(format!(
                "unrecognized formatting clause \"{verb}\""
            )));
        }
    }
    Ok(())
}

fn special(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number > 0.0 {
        "Infinity".to_owned()
    } else {
        "-Infinity".to_owned()
    }
}

fn signed(number: i64, digits: fn(u64) -> String) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", digits(number.unsigned_abs()))
}

/// Go's notation has at least two digits in the exponent.
fn exponent(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, power) = match power.strip_prefix('-') {
        Some(power) => ('-', power),
        None => ('+', power),
    };
    format!("{digits}e{sign}{power:0>2}")
}

/// The text of a value, for `%s`.
fn text(value: &Value<'_>, out: &mut String, meter: &mut Meter) -> Result<(), EvalError> {
    meter.step()?;
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(&flag.to_string()),
        Value::Int(number) => out.push_str(&number.to_string()),
        Value::Uint(number) => out.push_str(&number.to_string()),
        Value::Double(number) if number.is_finite() => out.push_str(&double_text(*number)),
        Value::Double(number) => out.push_str(&special(*number)),
        Value::String(text) => {
            meter.work(text.len())?;
            out.push_str(text);
        }
        Value::Bytes(bytes) => {
            out.push_str(&String::from_utf8_lossy(&bytes.decode(meter)?));
        }
        Value::Duration(nanos) => out.push_str(&duration_text(*nanos)),
        Value::Timestamp(time) => out.push_str(&time.to_string()),
        Value::Type(name) => out.push_str(name),
        Value::List(list) => {
            out.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                text(&item?, out, meter)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            for (index, key) in map.keys().iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                text(key, out, meter)?;
                out.push_str(": ");
                if let Some(found) = map.get(key) {
                    text(&found?, out, meter)?;
                }
            }
            out.push('}');
        }
        Value::Opaque(opaque) if matches!(**opaque, Opaque::Ip(_) | Opaque::Cidr(_)) => {
            out.push_str(&super::net::text(opaque).unwrap_or_default());
        }
        Value::Optional(_) | Value::Opaque(_) => {
            return Err(EvalError::new(format!(
                "could not convert argument of type '{}' to string",
                value.type_name()
            )));
        }
    }
    Ok(())
}
