//! Functions of strings. Positions count characters.

use crate::{
    error::EvalError,
    library::printf,
    meter::Meter,
    value::{Text, Value},
};

pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    meter: &mut Meter,
) -> Option<Result<Value<'a>, EvalError>> {
    if name == "join" {
        return Some(match args {
            [Value::List(list)] => join(list.to_vec(), "", meter),
            [Value::List(list), Value::String(by)] => join(list.to_vec(), by, meter),
            _ => Err(EvalError::NoSuchOverload),
        });
    }
    if name == "format" {
        return Some(match args {
            [Value::String(text), Value::List(list)] => list
                .to_vec()
                .and_then(|args| printf::format(text, &args, meter))
                .map(Value::text),
            _ => Err(EvalError::NoSuchOverload),
        });
    }
    let text = match args.first()? {
        Value::String(text) => text,
        Value::Bytes(bytes) if name == "size" => {
            return Some(Ok(int(bytes.len())));
        }
        _ => return None,
    };
    let mut strings: Vec<&str> = Vec::new();
    let mut numbers: Vec<i64> = Vec::new();
    for arg in &args[1..] {
        match arg {
            Value::String(text) => strings.push(text),
            Value::Int(number) => numbers.push(*number),
            _ => return None,
        }
    }
    if let Err(error) = meter.work(text.len()) {
        return Some(Err(error));
    }
    Some(match (name, &*strings, &*numbers) {
        ("size", [], []) => Ok(int(text.chars().count())),
        ("contains", [part], []) => Ok(Value::Bool(text.contains(part))),
        ("startsWith", [part], []) => Ok(Value::Bool(text.starts_with(part))),
        ("endsWith", [part], []) => Ok(Value::Bool(text.ends_with(part))),
        ("charAt", [], [at]) => char_at(text, *at),
        ("indexOf", [part], at) if at.len() < 2 => index_of(text, part, at.first().copied(), meter),
        ("lastIndexOf", [part], at) if at.len() < 2 => {
            last_index_of(text, part, at.first().copied(), meter)
        }
        ("lowerAscii", [], []) => Ok(Value::text(text.to_ascii_lowercase())),
        ("upperAscii", [], []) => Ok(Value::text(text.to_ascii_uppercase())),
        ("trim", [], []) => Ok(Value::text(text.trim())),
        ("replace", [from, to], []) => replace(text, from, to, -1, meter),
        ("replace", [from, to], [count]) => replace(text, from, to, *count, meter),
        ("split", [by], []) => split(text, by, -1, meter),
        ("split", [by], [count]) => split(text, by, *count, meter),
        ("substring", [], [from]) => substring(text, *from, None),
        ("substring", [], [from, to]) => substring(text, *from, Some(*to)),
        ("strings.quote", [], []) => Ok(Value::text(quote(text))),
        _ => return None,
    })
}

fn int<'a>(number: usize) -> Value<'a> {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn out_of_range(index: i64) -> EvalError {
    EvalError::new(format!("index out of range: {index}"))
}

fn index(at: i64) -> Result<usize, EvalError> {
    usize::try_from(at).map_err(|_| out_of_range(at))
}

fn char_at<'a>(text: &str, at: i64) -> Result<Value<'a>, EvalError> {
    let index = index(at)?;
    let mut chars = text.chars().skip(index);
    match chars.next() {
        Some(c) => Ok(Value::text(c.to_string())),
        None if text.chars().count() == index => Ok(Value::text("")),
        None => Err(out_of_range(at)),
    }
}

fn substring<'a>(text: &str, from: i64, to: Option<i64>) -> Result<Value<'a>, EvalError> {
    let length = text.chars().count();
    if let Some(to) = to.filter(|to| *to < from) {
        return Err(EvalError::new(format!(
            "invalid substring range. start: {from}, end: {to}"
        )));
    }
    let start = index(from)?;
    if start > length {
        return Err(out_of_range(from));
    }
    let end = match to {
        Some(to) => index(to)?,
        None => length,
    };
    if end > length {
        return Err(out_of_range(to.unwrap_or_default()));
    }
    let part: String = text.chars().skip(start).take(end - start).collect();
    Ok(Value::text(part))
}

fn index_of<'a>(
    text: &str,
    part: &str,
    from: Option<i64>,
    meter: &mut Meter,
) -> Result<Value<'a>, EvalError> {
    meter.work(text.len())?;
    let length = text.chars().count();
    let start = index(from.unwrap_or_default())?;
    if part.is_empty() {
        return Ok(int(start));
    }
    if start > length {
        return match from {
            Some(from) => Err(out_of_range(from)),
            None => Ok(Value::Int(-1)),
        };
    }
    let offset = text
        .char_indices()
        .nth(start)
        .map_or(text.len(), |(at, _)| at);
    Ok(match text[offset..].find(part) {
        Some(at) => int(start + text[offset..offset + at].chars().count()),
        None => Value::Int(-1),
    })
}

fn last_index_of<'a>(
    text: &str,
    part: &str,
    before: Option<i64>,
    meter: &mut Meter,
) -> Result<Value<'a>, EvalError> {
    meter.work(text.len())?;
    let length = text.chars().count();
    if part.is_empty() {
        return Ok(match before {
            Some(before) => Value::Int(before),
            None => int(length),
        });
    }
    let wanted = part.chars().count();
    if wanted > length {
        return Ok(Value::Int(-1));
    }
    let last = match before {
        None => length - wanted,
        Some(before) => {
            let last = index(before)?;
            if last >= length {
                return Err(out_of_range(before));
            }
            last.min(length - wanted)
        }
    };
    // The last match that starts at or before `last` ends at this offset.
    let end = text
        .char_indices()
        .nth(last + wanted)
        .map_or(text.len(), |(at, _)| at);
    Ok(match text[..end].rfind(part) {
        Some(at) => int(text[..at].chars().count()),
        None => Value::Int(-1),
    })
}

fn replace<'a>(
    text: &str,
    from: &str,
    to: &str,
    count: i64,
    meter: &mut Meter,
) -> Result<Value<'a>, EvalError> {
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let found = match from.is_empty() {
        true => text.chars().count() + 1,
        false => text.matches(from).take(limit).count(),
    };
    let found = found.min(limit);
    meter.work(found.saturating_mul(to.len()))?;
    Ok(Value::text(text.replacen(from, to, found)))
}

fn split<'a>(text: &str, by: &str, count: i64, meter: &mut Meter) -> Result<Value<'a>, EvalError> {
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let mut rest = text;
    while limit > 0 && (!rest.is_empty() || !by.is_empty()) {
        meter.step()?;
        let (end, skip) = match by.is_empty() {
            true => {
                let end = rest.chars().next().map_or(0, char::len_utf8);
                (Some(end).filter(|end| *end < rest.len()), 0)
            }
            false => (rest.find(by), by.len()),
        };
        match end.filter(|_| parts.len() + 1 < limit) {
            Some(end) => {
                parts.push(Value::text(&rest[..end]));
                rest = &rest[end + skip..];
            }
            None => {
                parts.push(Value::text(rest));
                break;
            }
        }
    }
    Ok(Value::list(parts))
}

fn join<'a>(
    items: Result<Vec<Value<'a>>, EvalError>,
    by: &str,
    meter: &mut Meter,
) -> Result<Value<'a>, EvalError> {
    let mut out = String::new();
    for (index, item) in items?.iter().enumerate() {
        let Value::String(text) = item else {
            return Err(EvalError::NoSuchOverload);
        };
        if index > 0 {
            meter.work(by.len())?;
            out.push_str(by);
        }
        meter.work(text.len())?;
        out.push_str(text);
    }
    Ok(Value::String(Text::Own(out.into())))
}

/// A string with the escapes of a literal.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
