//! `string.format`.

use crate::{
    error::EvalError,
    library::convert::{double_text, duration_text},
    meter::Meter,
    value::{Opaque, Value},
};

/// Maximum number of digits after the point.
const MAX_PRECISION: usize = 1000;

/// The verbs of a format.
///
/// # Errors
/// Returns the reason why the format is invalid.
pub(crate) fn clauses(text: &str) -> Result<Vec<char>, String> {
    let mut verbs = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' || rest.next_if_eq(&'%').is_some() {
            continue;
        }
        if rest.next_if_eq(&'.').is_some() {
            while rest.next_if(char::is_ascii_digit).is_some() {}
        }
        match rest.next() {
            Some(verb @ ('s' | 'd' | 'f' | 'e' | 'b' | 'o' | 'x' | 'X')) => verbs.push(verb),
            Some(verb) => return Err(format!("unrecognized formatting clause \"{verb}\"")),
            None => return Err("unexpected end of string".to_owned()),
        }
    }
    Ok(verbs)
}

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
            let Value::Double(number) = arg else {
                return Err(mismatch("double"));
            };
            let number = *number;
            let digits = precision.unwrap_or(6);
            out.push_str(&match verb {
                _ if !number.is_finite() => special(number),
                'f' => grouped(&format!("{number:.digits$}")),
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

/// A decimal number with commas between thousands.
fn grouped(text: &str) -> String {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match digits.find('.') {
        Some(at) => digits.split_at(at),
        None => (digits, ""),
    };
    let mut out = String::with_capacity(text.len() + whole.len() / 3);
    if digits.len() < text.len() {
        out.push('-');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// Scientific notation, as in 1.500000×10⁰³.
fn exponent(number: f64, digits: usize) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let text = format!("{number:.digits$e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, power) = match power.strip_prefix('-') {
        Some(power) => ("⁻", power),
        None => ("", power),
    };
    let power = format!("{power:0>2}");
    let raised = power.chars().filter_map(|c| c.to_digit(10));
    let raised: String = raised
        .filter_map(|digit| RAISED.get(digit as usize))
        .collect();
    format!("{digits}×10{sign}{raised}")
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
                literal(&item?, out, meter)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            for (index, key) in map.keys().iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                literal(key, out, meter)?;
                out.push(':');
                if let Some(found) = map.get(key) {
                    literal(&found?, out, meter)?;
                }
            }
            out.push('}');
        }
        Value::Opaque(opaque) if matches!(**opaque, Opaque::Ip(_) | Opaque::Cidr(_)) => {
            out.push_str(&super::net::text(opaque).unwrap_or_default());
        }
        Value::Optional(_) | Value::Opaque(_) | Value::Variables | Value::Struct(_) => {
            return Err(EvalError::new(format!(
                "could not convert argument of type '{}' to string",
                value.type_name()
            )));
        }
    }
    Ok(())
}

/// The text of a value in a list or a map, where strings are quoted.
fn literal(value: &Value<'_>, out: &mut String, meter: &mut Meter) -> Result<(), EvalError> {
    match value {
        Value::String(inner) => {
            meter.work(inner.len())?;
            out.push_str(&format!("{:?}", &**inner));
        }
        Value::Bytes(bytes) => {
            let bytes = bytes.decode(meter)?;
            out.push_str(&format!("b{:?}", String::from_utf8_lossy(&bytes)));
        }
        Value::Double(number) if number.is_finite() => out.push_str(&format!("{number:.6}")),
        Value::Double(number) => out.push_str(&format!("{:?}", special(*number))),
        Value::Duration(nanos) => {
            out.push_str(&format!("duration({:?})", duration_text(*nanos)));
        }
        Value::Timestamp(time) => out.push_str(&format!("timestamp({:?})", time.to_string())),
        Value::Type(name) => out.push_str(&format!("type({name})")),
        value => text(value, out, meter)?,
    }
    Ok(())
}
