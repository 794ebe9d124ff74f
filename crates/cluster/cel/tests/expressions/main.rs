//! Tests the meaning of expressions, and that no expression or value breaks the evaluation.
#![allow(clippy::unwrap_used)]

mod conditions;
mod corpus;
mod costs;
mod errors;
mod policies;
mod properties;
mod semantics;

use longshore_cel::{Decl, Environment, EvalError, Evaluation, Outcome};
use serde_json::{Value, json};

/// A schema with a field of each kind.
pub(crate) fn schema() -> Value {
    json!({"type": "object", "properties": {
        "int": {"type": "integer"},
        "num": {"type": "number"},
        "str": {"type": "string"},
        "flag": {"type": "boolean"},
        "dur": {"type": "string", "format": "duration"},
        "at": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "raw": {"type": "string", "format": "byte"},
        "either": {"x-kubernetes-int-or-string": true},
        "x-dash.dot": {"type": "string"},
        "namespace": {"type": "string"},
        "absent": {"type": "string"},
        "list": {"type": "array", "items": {"type": "integer"}},
        "names": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "set2": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "inner": {"type": "object", "properties": {"a": {"type": "string"}}},
    }})
}

pub(crate) fn object() -> Value {
    json!({
        "int": 5, "num": 1, "str": "hello", "flag": true, "dur": "1h30m",
        "at": "2024-02-29T12:30:45.5Z", "day": "2024-02-29", "raw": "aGk=",
        "either": "50%", "x-dash.dot": "d", "namespace": "ns",
        "list": [3, 1, 2], "names": ["b", "a"], "set": ["a", "b"], "set2": ["b", "a"],
        "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}],
        "labels": {"app": "web", "tier": "1"}, "inner": {"a": "x"},
    })
}

pub(crate) fn environment() -> Environment {
    let decl = Decl::of_schema(&schema(), true).unwrap();
    Environment::new()
        .with("self", decl)
        .with("any", Decl::any())
}

pub(crate) fn evaluate(source: &str, limit: u64) -> Evaluation {
    let program = environment()
        .compile(source)
        .unwrap_or_else(|error| panic!("{source}: {error}"));
    let object = object();
    program.evaluate(&[("self", Some(&object)), ("any", Some(&object))], limit)
}

pub(crate) fn result(source: &str) -> Result<Outcome, EvalError> {
    evaluate(source, 1_000_000).result
}
