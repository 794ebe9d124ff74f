//! Validation of policies and bindings, and how they are shown.

use serde_json::{Value, json};

use crate::{
    GROUP, binding,
    common::{Server, TABLE, lines},
    make, policy,
};

async fn problems(server: &Server, plural: &str, object: &Value) -> Vec<String> {
    let answer = server.post(&format!("{GROUP}/{plural}"), object).await;
    assert_eq!(answer.code, 422, "{}", answer.text());
    let status = answer.json();
    let causes = status["details"]["causes"].as_array().unwrap().iter();
    causes
        .map(|cause| {
            format!(
                "{}: {}",
                cause["field"].as_str().unwrap(),
                cause["message"].as_str().unwrap()
            )
        })
        .collect()
}

#[tokio::test]
async fn defaults_are_set() {
    let server = Server::new();
    let path = format!("{GROUP}/validatingadmissionpolicies");
    let made = make(
        &server,
        &path,
        &policy("p", json!({"validations": [{"expression": "true"}]})),
    )
    .await;
    assert_eq!(made["spec"]["failurePolicy"], "Fail");
    assert_eq!(
        made["spec"]["matchConstraints"]["matchPolicy"],
        "Equivalent"
    );
    assert_eq!(
        made["spec"]["matchConstraints"]["namespaceSelector"],
        json!({})
    );
    assert_eq!(
        made["spec"]["matchConstraints"]["resourceRules"][0]["scope"],
        "*"
    );
    assert_eq!(
        (&made["metadata"]["generation"], &made["status"]),
        (&json!(1), &json!({}))
    );
    let table = server.get_as(&path, TABLE).await.json();
    insta::assert_snapshot!(lines(&table, false), @r"
    Name | Validations | ParamKind | Age
    p | 1 | <unset> | 0s
    ");
    let path = format!("{GROUP}/validatingadmissionpolicybindings");
    let bound = json!({"paramRef": {"name": "x", "parameterNotFoundAction": "Deny"}});
    make(&server, &path, &binding("p", bound)).await;
    let table = server.get_as(&path, TABLE).await.json();
    insta::assert_snapshot!(lines(&table, false), @r"
    Name | PolicyName | ParamRef | Age
    p-binding | p | */x | 0s
    ");
}

#[tokio::test]
async fn expressions_are_compiled() {
    let server = Server::new();
    let spec = json!({
        "matchConditions": [{"name": "c", "expression": "params.x == 1"}],
        "variables": [
            {"name": "a", "expression": "object.x + "},
            {"name": "while", "expression": "1"},
            {"name": "n", "expression": "1"},
        ],
        "validations": [
            {"expression": "'x'"},
            {"expression": "variables.missing"},
            {"expression": "variables.n"},
            {"expression": "true", "messageExpression": "authorizer.path('/').check('get').reason()"},
            {"expression": "true", "message": "a\nb", "reason": "Gone"},
            {"expression": " "},
        ],
        "auditAnnotations": [{"key": "k", "valueExpression": "1"}, {"key": "k", "valueExpression": "null"}],
    });
    let found = problems(&server, "validatingadmissionpolicies", &policy("p", spec)).await;
    insta::assert_debug_snapshot!(found, @r#"
    [
        "spec.matchConditions[0].expression: Invalid value: \"params.x == 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.x == 1\n | ^",
        "spec.variables[0].expression: Invalid value: \"object.x + \": compilation failed: ERROR: <input>:1:12: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | object.x + \n | ...........^",
        "spec.variables[1].name: Invalid value: \"while\": must be a valid CEL identifier",
        "spec.validations[0].expression: Invalid value: \"'x'\": must evaluate to bool but got string",
        "spec.validations[1].expression: Invalid value: \"variables.missing\": compilation failed: ERROR: <input>:1:10: undefined field 'missing'\n | variables.missing\n | .........^",
        "spec.validations[2].expression: Invalid value: \"variables.n\": must evaluate to bool but got int",
        "spec.validations[3].messageExpression: Invalid value: \"authorizer.path('/').check('get').reason()\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'authorizer' (in container '')\n | authorizer.path('/').check('get').reason()\n | ^",
        "spec.validations[4].message: Invalid value: \"a\\nb\": must not contain line breaks",
        "spec.validations[4].reason: Unsupported value: \"Gone\": supported values: \"Forbidden\", \"Invalid\", \"RequestEntityTooLarge\"",
        "spec.validations[5].expression: Required value: expression is not specified",
        "spec.auditAnnotations[0].valueExpression: Invalid value: \"1\": must evaluate to one of [string null_type] but got int",
        "spec.auditAnnotations[1].key: Duplicate value: \"k\"",
    ]
    "#);
}

#[tokio::test]
async fn fields_of_policies_and_bindings_are_checked() {
    let server = Server::new();
    let object = json!({"metadata": {"name": "p"}, "spec": {
        "failurePolicy": "Never", "paramKind": {"apiVersion": "a/b/c", "kind": "9x"},
        "matchConstraints": {"resourceRules": []},
    }});
    let found = problems(&server, "validatingadmissionpolicies", &object).await;
    insta::assert_debug_snapshot!(found, @r#"
    [
        "spec.failurePolicy: Unsupported value: \"Never\": supported values: \"Fail\", \"Ignore\"",
        "spec.paramKind.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
        "spec.paramKind.kind: Invalid value: \"9x\": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        "spec.matchConstraints.resourceRules: Required value",
        "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
        "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
    ]
    "#);
    let object = json!({"metadata": {"name": "b"}, "spec": {
        "validationActions": ["Deny", "Warn", "Deny", "Other"],
        "paramRef": {"name": "a", "selector": {}},
        "matchResources": {"matchPolicy": "Other"},
    }});
    let found = problems(&server, "validatingadmissionpolicybindings", &object).await;
    insta::assert_debug_snapshot!(found, @r#"
    [
        "spec.policyName: Required value",
        "spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
        "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive",
        "spec.paramRef.parameterNotFoundAction: Required value",
        "spec.matchResources.matchPolicy: Unsupported value: \"Other\": supported values: \"Equivalent\", \"Exact\"",
        "spec.validationActions[2]: Duplicate value: \"Deny\"",
        "spec.validationActions[3]: Unsupported value: \"Other\": supported values: \"Audit\", \"Deny\", \"Warn\"",
        "spec.validationActions: Invalid value: [\"Deny\",\"Warn\",\"Deny\",\"Other\"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
    ]
    "#);
}
