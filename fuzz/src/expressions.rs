//! Expressions in the Common Expression Language: compiling and evaluating any text ends,
//! within the limits, and the result of a condition has the declared type.

use longshore_cel::{Decl, Environment, EvalError, Outcome, ResultType};
use serde_json::json;

const LIMIT: u64 = 20_000;

pub fn check(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else {
        return;
    };
    let schema = json!({"type": "object", "properties": {
        "int": {"type": "integer"}, "num": {"type": "number"}, "str": {"type": "string"},
        "dur": {"type": "string", "format": "duration"}, "raw": {"type": "string", "format": "byte"},
        "either": {"x-kubernetes-int-or-string": true},
        "list": {"type": "array", "items": {"type": "integer"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
    }});
    let object = json!({
        "int": 5, "num": 1.5, "str": "text", "dur": "1m", "raw": "aGk=", "either": 3,
        "list": [3, 1, 2], "set": ["a", "b"], "map": {"a": "b"},
    });
    let decl = Decl::of_schema(&schema, true).unwrap();
    let environment = Environment::new()
        .with("self", decl.clone())
        .with_optional("oldSelf", decl)
        .with("any", Decl::any());
    let Ok(program) = environment.compile(source) else {
        return;
    };
    let inputs = [
        ("self", Some(&object)),
        ("oldSelf", None),
        ("any", Some(&object)),
    ];
    let evaluation = program.evaluate(&inputs, LIMIT);
    match (program.result_type(), &evaluation.result) {
        (ResultType::Bool, Ok(outcome)) => {
            assert!(matches!(outcome, Outcome::Bool(_)), "{source}: {outcome:?}");
        }
        (ResultType::String, Ok(outcome)) => {
            assert!(
                matches!(outcome, Outcome::String(_)),
                "{source}: {outcome:?}"
            );
        }
        (_, result) => {
            let is_over = evaluation.cost > LIMIT;
            assert!(!is_over || *result == Err(EvalError::TooCostly), "{source}");
        }
    }
}
