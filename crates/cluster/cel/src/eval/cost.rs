//! The costs of calls, which depend on the sizes of their arguments. The numbers equal Kubernetes'.

use crate::{
    error::EvalError,
    meter::Meter,
    value::{Opaque, Value},
};

/// The cost of asking the authorizer. The budget allows an expression to ask twice.
const AUTHORIZATION: u64 = 350_000;

/// Returns the cost of traversing a string: a tenth of its length.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]
fn tenth(size: u64) -> u64 {
    // Kubernetes computes with doubles, whose rounding is part of the cost.
    (size as f64 * 0.1).ceil() as u64
}

/// The cost of a call.
pub(super) fn of_call(
    name: &str,
    args: &[Value<'_>],
    result: &Value<'_>,
    meter: &mut Meter,
) -> Result<u64, EvalError> {
    let size = |index: usize| args.get(index).map_or(0, Value::size);
    let is_text =
        |index: usize| matches!(args.get(index), Some(Value::String(_) | Value::Bytes(_)));
    Ok(match name {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes" => args
            .first()
            .map_or(Ok(0), |value| traversal(value, meter))?,
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "isIP" | "isCIDR" | "cidr"
        | "quantity" | "isQuantity" | "semver" | "isSemver" => tenth(size(0)),
        "ip" if is_text(0) => tenth(size(0)),
        "replace" | "split" | "ip.isCanonical" => tenth(size(0).saturating_mul(2)),
        "join" => tenth(result.size().saturating_mul(2)),
        "matches" | "find" | "findAll" => {
            tenth(size(0).saturating_add(1)).saturating_mul(size(1).div_ceil(4))
        }
        "validate" => {
            let regex = match args.first() {
                Some(Value::Opaque(opaque)) => crate::library::regex_size(opaque),
                _ => 128,
            };
            tenth(size(1).saturating_add(1)).saturating_mul(regex.div_ceil(4))
        }
        "slice" | "reverse" | "lists.range" => result.size().saturating_add(11),
        "flatten" => {
            let depth = match args.get(1) {
                Some(Value::Int(depth)) => u64::try_from(*depth).unwrap_or_default(),
                _ => 1,
            };
            size(0).saturating_mul(depth).saturating_add(11)
        }
        "distinct" | "sort" => self_comparison(args.first()),
        "sets.contains" | "sets.intersects" => size(0).saturating_mul(size(1)).saturating_add(1),
        "sets.equivalent" => size(0)
            .saturating_mul(size(1))
            .saturating_mul(2)
            .saturating_add(1),
        "containsIP" | "containsCIDR" => {
            let mut cost = tenth(size(0).saturating_mul(2));
            if name == "containsCIDR" {
                cost = cost.saturating_add(tenth(size(0)) + 1);
            }
            match is_text(1) {
                true => cost.saturating_add(tenth(size(1))),
                false => cost,
            }
        }
        "check" => AUTHORIZATION,
        "fieldSelector" | "labelSelector" => tenth(size(1)),
        "jsonpatch.escapeKey" => tenth(size(0)),
        "startsWith" | "endsWith" => tenth(size(1)),
        "bytes" | "string" if is_text(0) => tenth(size(0)),
        "strings.quote" | "format" => tenth(size(0)),
        "@in" if matches!(args.get(1), Some(Value::List(_))) => size(1),
        "_==_" | "_!=_" => match args.first() {
            Some(Value::Opaque(opaque)) if !matches!(**opaque, Opaque::Format(_)) => 1,
            _ => tenth(size(0).min(size(1))),
        },
        "_<_" | "_<=_" | "_>_" | "_>=_" if is_text(0) => tenth(size(0).min(size(1))),
        "_+_" if is_text(0) => tenth(size(0).saturating_add(size(1))),
        "contains" => tenth(size(0)).saturating_mul(tenth(size(1))),
        _ => 1,
    })
}

/// The cost of comparing the items of a list with each other.
fn self_comparison(list: Option<&Value<'_>>) -> u64 {
    let Some(Value::List(list)) = list else {
        return 11;
    };
    let first = list.get(0).and_then(Result::ok);
    of_sort(list.len(), first.as_ref())
}

/// The cost of sorting by keys.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]
pub(super) fn of_sort(length: usize, first: Option<&Value<'_>>) -> u64 {
    let factor = match first {
        Some(Value::String(_) | Value::Bytes(_)) => 2.1,
        _ => 2.0,
    };
    let square = (length as u64).saturating_mul(length as u64);
    ((square as f64 * factor) as u64).saturating_add(11)
}

/// The cost of reading a value as a whole.
fn traversal(value: &Value<'_>, meter: &mut Meter) -> Result<u64, EvalError> {
    meter.step()?;
    let mut sum = 0u64;
    match value {
        Value::String(text) => return Ok(text.len() as u64 / 10),
        Value::Bytes(bytes) => return Ok(bytes.len() as u64 / 10),
        Value::List(list) => {
            for item in list.iter() {
                sum = sum.saturating_add(traversal(&item?, meter)?);
            }
        }
        Value::Map(map) => {
            for key in map.keys() {
                sum = sum.saturating_add(traversal(&key, meter)?);
                if let Some(found) = map.get(&key) {
                    sum = sum.saturating_add(traversal(&found?, meter)?);
                }
            }
        }
        _ => return Ok(1),
    }
    Ok(sum)
}
