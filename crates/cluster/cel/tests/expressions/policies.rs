//! Expressions of policies: variables, results and limits.

use longshore_cel::{AdmissionInputs, COST_OF_POLICY, Compiler, Output, Returns, Variables};
use serde_json::{Value, json};

/// Evaluates an expression with variables on an object.
fn evaluated(
    variables: &[(&str, &str)],
    (source, returns): (&str, Returns),
    object: &Value,
) -> Result<Output, String> {
    let mut compiler = Compiler::new().with_variables().with_patch_types();
    let mut defined = Variables::default();
    for (name, source) in variables {
        let _ = compiler.add(&mut defined, name, source);
    }
    let expression = compiler.compile(source, returns);
    let inputs = AdmissionInputs {
        object: Some(object),
        ..AdmissionInputs::default()
    };
    let (mut results, _) = inputs.evaluate(&defined, &[Some(&expression)], COST_OF_POLICY)?;
    results.pop().unwrap()
}

#[test]
fn variables_refer_to_earlier_ones() {
    let object = json!({"a": 2});
    let variables = [
        ("x", "object.a"),
        ("y", "variables.x + 1"),
        ("x", "variables.y * 10"),
    ];
    let found = evaluated(&variables, ("variables.x == 30", Returns::Bool), &object);
    assert_eq!(found, Ok(Output::Bool(true)));
    let failed = evaluated(
        &[("x", "missing")],
        ("variables.x == 1", Returns::Bool),
        &object,
    );
    let failed = failed.unwrap_err();
    assert!(
        failed.contains("composited variable \"x\" fails to compile: compilation failed: ERROR: <input>:1:1: undeclared reference to 'missing'"),
        "{failed}"
    );
    let found = evaluated(&[], ("variables.x == 1", Returns::Bool), &object);
    assert!(found.unwrap_err().contains("undefined field 'x'"));
    // The type of a variable is the type of its expression.
    let found = evaluated(&[("x", "'a'")], ("variables.x > 1", Returns::Bool), &object);
    let error = found.unwrap_err();
    assert!(
        error.contains("found no matching overload for '_>_' applied to '(string, int)'"),
        "{error}"
    );
}

#[test]
fn chains_of_variables_are_limited() {
    let sources: Vec<(String, String)> = (0..3000)
        .map(|index: usize| {
            let before = index.saturating_sub(1);
            let source = match index {
                0 => "1".to_owned(),
                _ => format!("variables.v{before} + 1"),
            };
            (format!("v{index}"), source)
        })
        .collect();
    let variables: Vec<(&str, &str)> = sources
        .iter()
        .map(|(name, source)| (name.as_str(), source.as_str()))
        .collect();
    let object = json!({});
    let source = |index: usize| format!("variables.v{index} == {}", index + 1);
    let found = evaluated(&variables[..300], (&source(299), Returns::Bool), &object);
    assert_eq!(found, Ok(Output::Bool(true)));
    let found = evaluated(&variables, (&source(2999), Returns::Bool), &object);
    assert!(found.unwrap_err().contains("recursion limit exceeded"));
}

#[test]
fn objects_and_patches_become_json() {
    let object = json!({"names": ["b", "a"]});
    let made = evaluated(
        &[],
        (
            "Object{spec: Object.spec{names: object.names.map(n, n + '!'), ?none: optional.none(), n: 1, map: {'k': 1.5}}}",
            Returns::Object,
        ),
        &object,
    );
    let expected = json!({"spec": {"names": ["b!", "a!"], "n": 1, "map": {"k": 1.5}}});
    assert_eq!(made, Ok(Output::Json(expected)));
    let made = evaluated(
        &[],
        (
            "[JSONPatch{op: 'add', path: '/a', value: Object.spec{x: null}}]",
            Returns::Patch,
        ),
        &object,
    );
    let expected = json!([{"op": "add", "path": "/a", "value": {"x": null}}]);
    assert_eq!(made, Ok(Output::Json(expected)));
    for (source, returns, problem) in [
        (
            "[JSONPatch{oops: 1}]",
            Returns::Patch,
            "unexpected JSONPatchType field: oops",
        ),
        (
            "[JSONPatch{op: 1}]",
            Returns::Patch,
            "expected type 'string' but found 'int'",
        ),
        (
            "Object{a: Object.b{}}",
            Returns::Object,
            "expected \"Object.a\"",
        ),
        (
            "Object{a: duration('1s')}",
            Returns::Object,
            "unsupported type in a patch",
        ),
        (
            "Object.spec{}",
            Returns::Object,
            "must evaluate to Object but got Object.spec",
        ),
    ] {
        let error = evaluated(&[], (source, returns), &object).unwrap_err();
        assert!(error.contains(problem), "{source}: {error}");
    }
}
