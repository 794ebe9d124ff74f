//! Tests the errors of expressions that do not compile or have no value.

use longshore_cel::EvalError;

use crate::{environment, evaluate, result};

fn compile_error(source: &str) -> String {
    match environment().compile(source) {
        Ok(_) => panic!("{source} compiles"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn problems_are_shown_at_their_position() {
    assert_eq!(
        compile_error("self.foo == 1"),
        "ERROR: <input>:1:5: undefined field 'foo'\n | self.foo == 1\n | ....^"
    );
    assert_eq!(
        compile_error("true &&\n  unknown"),
        "ERROR: <input>:2:3: undeclared reference to 'unknown' (in container '')\n |   unknown\n | ..^"
    );
    assert_eq!(
        compile_error("self.int + 'a' == 1"),
        "ERROR: <input>:1:10: found no matching overload for '_+_' applied to '(int, string)'\n | self.int + 'a' == 1\n | .........^"
    );
}

#[test]
fn expressions_are_checked() {
    for (source, expected) in [
        ("1 +", "Syntax error: mismatched input '<EOF>'"),
        ("1 2", "extraneous input '2' expecting <EOF>"),
        ("'a", "token recognition error"),
        ("self.str.nothing()", "undeclared reference to 'nothing'"),
        ("nothing(1)", "undeclared reference to 'nothing'"),
        ("self.str.contains(1)", "applied to 'string.(int)'"),
        ("self.str == 1", "no matching overload for '_==_'"),
        ("self.str == null", "no matching overload for '_==_'"),
        ("self.int.a", "type 'int' does not support field selection"),
        (
            "self.int.all(x, true)",
            "cannot be range of a comprehension",
        ),
        (
            "self.inner.all(x, true)",
            "cannot be range of a comprehension",
        ),
        ("[1, 'a']", "expected type 'int' but found 'string'"),
        ("1 && true", "expected type 'bool' but found 'int'"),
        ("[1].all(x, x)", "expected type 'bool' but found 'int'"),
        ("[1].map(1, 2)", "argument is not an identifier"),
        ("has(1)", "invalid argument to has() macro"),
        ("'a'.matches('[')", "invalid matches argument"),
        ("duration('x')", "invalid duration argument"),
        ("timestamp('x')", "invalid timestamp argument"),
        ("self.int = 5", "token recognition error at: '= '"),
        (
            "[1].filter(x, 1)",
            "overload for '_?_:_' applied to '(int, list(int), list(int))'",
        ),
        (
            "'%d'.format(['a'])",
            "decimal clause can only be used on integers, was given string",
        ),
        ("'%q'.format(['a'])", "unrecognized formatting clause \"q\""),
        ("'%s %s'.format(['a'])", "index 1 out of range"),
        (
            "authorizer.path('/')",
            "undeclared reference to 'authorizer'",
        ),
        ("Object{a: 1}", "undeclared reference to 'Object'"),
        ("let == 1", "reserved identifier: let"),
        ("9223372036854775808", "invalid int literal"),
        ("self.`a b`", "unsupported syntax"),
    ] {
        let found = compile_error(source);
        assert!(found.contains(expected), "{source}: {found}");
    }
}

#[test]
fn evaluations_fail_as_in_kubernetes() {
    for (source, expected) in [
        ("1 / 0 == 1", "division by zero"),
        ("1 % 0 == 1", "modulus by zero"),
        ("9223372036854775807 + 1 == 0", "integer overflow"),
        ("self.absent == ''", "no such key: absent"),
        ("self.labels['x'] == ''", "no such key: x"),
        ("self.list[5] == 1", "index out of bounds: 5"),
        ("[].first().value() == 1", "optional.none() dereference"),
        ("sign(quantity('x')) == 1", "quantities must match"),
        ("dyn(1) + dyn('a') == 1", "no such overload"),
        ("self.either + 1 == 2", "no such overload"),
        ("'abc'.substring(5) == ''", "index out of range: 5"),
        ("self.str.matches(self.str + '[')", "error parsing regexp"),
    ] {
        let error = result(source).unwrap_err().to_string();
        assert!(error.contains(expected), "{source}: {error}");
    }
}

#[test]
fn costs_are_limited() {
    let source = "lists.range(100).all(x, lists.range(100).all(y, x + y >= 0))";
    assert!(evaluate(source, 1_000_000).result.is_ok());
    let evaluation = evaluate(source, 10_000);
    assert_eq!(evaluation.result, Err(EvalError::TooCostly));
    assert!(evaluation.cost >= 10_000);
    // An error about costs is not hidden by other conditions.
    let hidden = format!("({source}) || true");
    assert_eq!(evaluate(&hidden, 100).result, Err(EvalError::TooCostly));
}
