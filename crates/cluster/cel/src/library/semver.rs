//! Semantic versions.

use std::cmp::Ordering;

use crate::{
    error::EvalError,
    meter::Meter,
    value::{Opaque, Semver, Value},
};

pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    meter: &mut Meter,
) -> Option<Result<Value<'a>, EvalError>> {
    if matches!(name, "semver" | "isSemver") {
        let (text, normalize) = match args {
            [Value::String(text)] => (text, false),
            [Value::String(text), Value::Bool(normalize)] => (text, *normalize),
            _ => return None,
        };
        if let Err(error) = meter.work(text.len()) {
            return Some(Err(error));
        }
        let found = match normalize {
            true => normalized(text).and_then(|text| parse(&text)),
            false => parse(text),
        };
        return Some(match name {
            "semver" => found
                .map(|version| Value::opaque(Opaque::Semver(version)))
                .map_err(EvalError::new),
            _ => Ok(Value::Bool(found.is_ok())),
        });
    }
    let own = version(args.first()?)?;
    Some(match (name, &args[1..]) {
        ("major" | "minor" | "patch", []) => {
            let [major, minor, patch] = own.numbers;
            let number = match name {
                "major" => major,
                "minor" => minor,
                _ => patch,
            };
            Ok(Value::Int(i64::try_from(number).unwrap_or(i64::MAX)))
        }
        (name, [other]) => {
            let order = order(own, version(other)?);
            match name {
                "isGreaterThan" => Ok(Value::Bool(order.is_gt())),
                "isLessThan" => Ok(Value::Bool(order.is_lt())),
                "compareTo" => Ok(Value::Int(order as i64)),
                _ => return None,
            }
        }
        _ => return None,
    })
}

fn version<'v>(value: &'v Value<'_>) -> Option<&'v Semver> {
    match value {
        Value::Opaque(opaque) => match &**opaque {
            Opaque::Semver(version) => Some(version),
            _ => None,
        },
        _ => None,
    }
}

fn parse(text: &str) -> Result<Semver, &'static str> {
    if text.is_empty() {
        return Err("Version string empty");
    }
    let (text, build) = match text.split_once('+') {
        Some((text, build)) => (text, Some(build)),
        None => (text, None),
    };
    let (core, pre) = match text.split_once('-') {
        Some((core, pre)) => (core, Some(pre)),
        None => (text, None),
    };
    let parts: Vec<&str> = core.split('.').collect();
    let [major, minor, patch] = &*parts else {
        return Err("No Major.Minor.Patch elements found");
    };
    let mut numbers = [0; 3];
    for (slot, part) in numbers.iter_mut().zip([major, minor, patch]) {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits {
            return Err("Invalid character(s) found in version number");
        }
        if part.len() > 1 && part.starts_with('0') {
            return Err("Version number must not contain leading zeroes");
        }
        *slot = part.parse().map_err(|_| "value out of range")?;
    }
    let identifiers = |text: Option<&str>, numeric: bool| -> Result<Vec<String>, &'static str> {
        let Some(text) = text else {
            return Ok(Vec::new());
        };
        let parts = text.split('.').map(|part| {
            if part.is_empty() {
                return Err("Prerelease is empty");
            }
            if !part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
                return Err("Invalid character(s) found in prerelease");
            }
            let digits = part.bytes().all(|byte| byte.is_ascii_digit());
            if numeric && digits && part.len() > 1 && part.starts_with('0') {
                return Err("Numeric PreRelease version must not contain leading zeroes");
            }
            Ok(part.to_owned())
        });
        parts.collect()
    };
    Ok(Semver {
        numbers,
        pre: identifiers(pre, true)?,
        build: identifiers(build, false)?,
    })
}

/// Removes a leading `v` and leading zeros, and adds missing numbers.
fn normalized(text: &str) -> Result<String, &'static str> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text
        .splitn(3, '.')
        .map(|part| {
            if part.len() < 2 {
                return part.to_owned();
            }
            let rest = part.trim_start_matches('0');
            match rest.starts_with(|c: char| c.is_ascii_digit()) {
                true => rest.to_owned(),
                false => format!("0{rest}"),
            }
        })
        .collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data");
        }
        parts.resize(3, "0".to_owned());
    }
    Ok(parts.join("."))
}

fn order(a: &Semver, b: &Semver) -> Ordering {
    let by_numbers = a.numbers.cmp(&b.numbers);
    if by_numbers.is_ne() {
        return by_numbers;
    }
    match (a.pre.is_empty(), b.pre.is_empty()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => {
            for (a, b) in a.pre.iter().zip(&b.pre) {
                let order = match (number(a), number(b)) {
                    (Some(a), Some(b)) => a.cmp(&b),
                    (Some(_), None) => Ordering::Less,
                    (None, Some(_)) => Ordering::Greater,
                    (None, None) => a.cmp(b),
                };
                if order.is_ne() {
                    return order;
                }
            }
            a.pre.len().cmp(&b.pre.len())
        }
    }
}

fn number(text: &str) -> Option<u128> {
    text.parse().ok()
}
