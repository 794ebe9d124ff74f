//! Regular expressions with Go's syntax. They are compiled once, and their size
//! is limited.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use longshore_schema::structural::as_go_reads;
use regex::{Regex, RegexBuilder};

use crate::{error::EvalError, meter::Meter, value::Value};

const MAX_PATTERN_BYTES: usize = 512 << 10;
const MAX_MATCH_CACHE_BYTES: usize = 256 << 10;
/// Number of compiled patterns that are kept.
const CACHE_SIZE: usize = 32;
/// Number of steps that are charged for compiling a pattern.
const COMPILE_STEPS: u64 = 20_000;

pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    meter: &mut Meter,
) -> Option<Result<Value<'a>, EvalError>> {
    if !matches!(name, "matches" | "find" | "findAll") {
        return None;
    }
    let [Value::String(text), Value::String(pattern), rest @ ..] = args else {
        return Some(Err(EvalError::NoSuchOverload));
    };
    let run = |meter: &mut Meter| {
        let regex = compile(pattern, name, meter)?;
        // The time is at most the product of both lengths.
        let size = (text.len() / 16 + 1).saturating_mul(pattern.len() / 64 + 1);
        meter.steps(size as u64)?;
        match (name, rest) {
            ("matches", []) => Ok(Value::Bool(regex.is_match(text))),
            ("find", []) => Ok(Value::text(
                regex.find(text).map_or("", |found| found.as_str()),
            )),
            ("findAll", [] | [Value::Int(_)]) => {
                let limit = match rest {
                    [Value::Int(limit)] => usize::try_from(*limit).unwrap_or(usize::MAX),
                    _ => usize::MAX,
                };
                let mut found = Vec::new();
                for part in regex.find_iter(text).take(limit) {
                    // Every search may read the rest of the text.
                    meter.work(part.len().saturating_add(text.len() - part.end()))?;
                    found.push(Value::text(part.as_str()));
                }
                Ok(Value::list(found))
            }
            _ => Err(EvalError::NoSuchOverload),
        }
    };
    Some(run(meter))
}

fn build(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(&as_go_reads(pattern))
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_MATCH_CACHE_BYTES)
        .build()
        .map_err(|error| {
            // The last line of the message contains the reason.
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.trim_start_matches("error: ").to_owned()
        })
}

pub(super) fn is_valid(pattern: &str) -> bool {
    build(pattern).is_ok()
}

fn compile(pattern: &str, name: &str, meter: &mut Meter) -> Result<Arc<Regex>, EvalError> {
    static CACHE: OnceLock<Mutex<HashMap<String, Arc<Regex>>>> = OnceLock::new();
    let cache = || {
        let cache = CACHE.get_or_init(Mutex::default);
        // The map contains only complete entries.
        cache.lock().unwrap_or_else(PoisonError::into_inner)
    };
    if let Some(known) = cache().get(pattern) {
        return Ok(known.clone());
    }
    meter.steps(COMPILE_STEPS.saturating_add(pattern.len() as u64))?;
    let regex = build(pattern).map_err(|why| match name {
        "matches" => EvalError::new(format!("error parsing regexp: {why}")),
        _ => EvalError::new(format!("Illegal regex: {why}")),
    })?;
    let regex = Arc::new(regex);
    let mut cache = cache();
    if cache.len() >= CACHE_SIZE {
        cache.clear();
    }
    cache.insert(pattern.to_owned(), regex.clone());
    Ok(regex)
}
