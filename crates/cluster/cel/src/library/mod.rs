//! The functions that expressions call.

mod arithmetic;
mod authorization;
mod convert;
mod formats;
mod lists;
mod net;
mod optional;
mod printf;
mod quantity;
mod regexes;
mod semver;
mod sets;
mod strings;
mod times;
mod urls;

pub(crate) use arithmetic::add;
pub(crate) use formats::regex_size;
pub(crate) use lists::sorted_by;
pub(crate) use printf::clauses;

use crate::{
    error::EvalError,
    meter::Meter,
    value::{Value, parse_duration, parse_timestamp},
};

/// A family of functions: `None` if it does not contain the function.
type Family = for<'a> fn(&str, &[Value<'a>], &mut Meter) -> Option<Result<Value<'a>, EvalError>>;

const FAMILIES: [Family; 14] = [
    arithmetic::call,
    strings::call,
    lists::call,
    convert::call,
    regexes::call,
    optional::call,
    times::call,
    quantity::call,
    sets::call,
    urls::call,
    net::call,
    semver::call,
    formats::call,
    authorization::call,
];

/// Calls a function. A method has its receiver as the first argument.
pub(crate) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    meter: &mut Meter,
) -> Result<Value<'a>, EvalError> {
    FAMILIES
        .iter()
        .find_map(|family| family(name, args, meter))
        .unwrap_or(Err(EvalError::NoSuchOverload))
}

/// Returns true if a function converts its argument to a type.
pub(crate) fn is_conversion(name: &str) -> bool {
    matches!(
        name,
        "bool"
            | "bytes"
            | "double"
            | "dyn"
            | "duration"
            | "int"
            | "string"
            | "timestamp"
            | "type"
            | "uint"
    )
}

/// Returns true if a constant is an argument that a function accepts.
pub(crate) fn is_valid_literal(function: &str, text: &str) -> bool {
    match function {
        "matches" => regexes::is_valid(text),
        "duration" => parse_duration(text).is_some(),
        _ => parse_timestamp(text).is_some(),
    }
}
