//! Tests of the validation of flow control.

use longshore_model::CauseList;
use serde_json::{Value, json};

use super::{level, schema};
use crate::defaults;
use crate::json::Object;

fn problems(check: fn(&Object, &mut CauseList), object: Value) -> Vec<String> {
    let mut causes = CauseList::new();
    if let Value::Object(mut object) = object {
        defaults::flow_control::level(&mut object);
        check(&object, &mut causes);
    }
    causes
        .into_iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect()
}

fn limited(queuing: &Value) -> Value {
    json!({"metadata": {"name": "x"}, "spec": {"type": "Limited", "limited": {
        "limitResponse": {"type": "Queue", "queuing": queuing},
    }}})
}

#[test]
fn hands_are_limited_by_the_bits_of_the_hash() {
    assert_eq!(problems(level, limited(&json!({}))), [""; 0]);
    let text = problems(level, limited(&json!({"queues": 512, "handSize": 8}))).join("\n");
    assert!(
        text.contains(
            "required entropy bits of deckSize 512 and handSize 8 should not be greater than 60"
        ),
        "{text}"
    );
    let text = problems(level, limited(&json!({"queues": 4, "handSize": 5}))).join("\n");
    assert!(
        text.contains("should not be greater than queues (4)"),
        "{text}"
    );
}

#[test]
fn rules_name_subjects_verbs_and_what_is_requested() {
    let object = json!({"metadata": {"name": "x"}, "spec": {
        "matchingPrecedence": 1,
        "priorityLevelConfiguration": {},
        "rules": [
            {},
            {
                "subjects": [{"kind": "User", "group": {"name": "g"}}, {"kind": "Robot"}],
                "resourceRules": [{"verbs": ["*", "get"], "apiGroups": [""], "resources": []}],
                "nonResourceRules": [{"verbs": ["fly"], "nonResourceURLs": ["/a*", "/a/*", "b"]}],
            },
        ],
    }});
    let rule = "spec.rules[1]";
    let expected = [
        "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1".to_owned(),
        "spec.priorityLevelConfiguration.name: Required value: must reference a priority level".to_owned(),
        "spec.rules[0].subjects: Required value: subjects must contain at least one value".to_owned(),
        "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty".to_owned(),
        format!("{rule}.subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'"),
        format!("{rule}.subjects[0].user: Required value: user is required when subject kind is 'User'"),
        format!("{rule}.subjects[1].kind: Unsupported value: \"Robot\": supported values: \"Group\", \"ServiceAccount\", \"User\""),
        format!("{rule}.resourceRules[0].verbs: Invalid value: [\"*\",\"get\"]: if '*' is present, must not specify other verbs"),
        format!("{rule}.resourceRules[0].resources: Required value: resource rules must supply at least one resource"),
        format!("{rule}.resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace"),
        format!("{rule}.nonResourceRules[0].verbs: Unsupported value: [\"fly\"]: supported values: \"create\", \"delete\", \"deletecollection\", \"get\", \"list\", \"patch\", \"proxy\", \"update\", \"watch\""),
        format!("{rule}.nonResourceRules[0].nonResourceURLs[0]: Invalid value: \"/a*\": wildcard can only do suffix matching"),
        format!("{rule}.nonResourceRules[0].nonResourceURLs[2]: Invalid value: \"b\": must start with slash"),
    ];
    assert_eq!(problems(schema, object), expected);
}
