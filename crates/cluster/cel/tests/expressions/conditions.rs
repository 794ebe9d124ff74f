//! Match conditions of webhooks and policies.

use longshore_cel::{AdmissionInputs, Conditions, Matched, check_condition};
use serde_json::json;

fn matched(conditions: &[(&str, &str)]) -> Matched {
    let request = json!({
        "operation": "UPDATE", "namespace": "default", "dryRun": false,
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "userInfo": {"username": "admin", "groups": ["system:masters"]},
    });
    let object = json!({"metadata": {"name": "a", "labels": {"app": "web"}}});
    Conditions::compile(conditions.iter().copied()).evaluate(&AdmissionInputs {
        request: Some(&request),
        object: Some(&object),
        ..AdmissionInputs::default()
    })
}

#[test]
fn all_conditions_must_be_true() {
    let group = ("group", "request.resource.group == 'apps'");
    let user = ("user", "!('system:nodes' in request.userInfo.groups)");
    let label = (
        "label",
        "object.metadata.labels.app == 'web' && oldObject == null",
    );
    let wrong = ("wrong", "object.metadata.name == 'b'");
    let missing = ("missing", "object.spec.replicas > 1");
    let no = Matched::No {
        condition: "wrong".to_owned(),
    };
    assert_eq!(matched(&[]), Matched::Yes);
    assert_eq!(matched(&[group, user, label]), Matched::Yes);
    assert_eq!(matched(&[group, wrong]), no);
    // A false condition decides even if another has no value.
    assert_eq!(matched(&[missing, wrong]), no);
    let error = "expression 'object.spec.replicas > 1' resulted in error: no such key: spec";
    assert_eq!(
        matched(&[group, missing]),
        Matched::Unknown {
            error: error.to_owned()
        }
    );
}

#[test]
fn conditions_are_checked() {
    assert!(check_condition("request.operation == 'CREATE'").is_ok());
    let problem = |source: &str| check_condition(source).unwrap_err().to_string();
    assert_eq!(problem("'a'"), "must evaluate to bool but got string");
    assert_eq!(
        problem("object.spec.flag"),
        "must evaluate to bool but got dyn"
    );
    assert_eq!(
        problem("request.nothing == ''"),
        "compilation failed: ERROR: <input>:1:8: undefined field 'nothing'\n | request.nothing == ''\n | .......^"
    );
    assert!(problem("unknown").contains("undeclared reference to 'unknown'"));
}
