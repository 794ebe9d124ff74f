//! Rule 30: rules in the Common Expression Language (`x-kubernetes-validations`).

use longshore_engine::{Error, Subresource};
use longshore_model::PatchKind;
use serde_json::{Value, json};

use super::{DEFINITIONS, create, definition, patch, version};
use crate::support::{Api, api, status};

/// A definition whose schema has these properties in `spec`, and rules.
fn with_rules(properties: Value, rules: Value) -> Value {
    let mut version = version("v1", true);
    let spec = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"];
    *spec = json!({"type": "object", "properties": properties});
    spec["properties"]["size"] = json!({"type": "integer"});
    spec["properties"]["replicas"] = json!({"type": "integer"});
    spec["x-kubernetes-validations"] = rules;
    definition(json!([version]))
}

async fn kind(properties: Value, rules: Value) -> Api {
    let api = api();
    let made = api.create(DEFINITIONS, with_rules(properties, rules)).await;
    made.unwrap_or_else(|error| panic!("{error}"));
    api
}

fn message<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    let (code, _, message) = status(result);
    assert_eq!(code, 422, "{message}");
    message
}

async fn made(api: &Api, name: &str, spec: Value) -> Result<(), Error> {
    let object = json!({"metadata": {"name": name}, "spec": spec});
    create(api, "v1", object).await.map(drop)
}

/// Returns the warnings of the change.
async fn changed(api: &Api, name: &str, body: Value) -> Result<Vec<String>, Error> {
    let change = super::Patch {
        target: super::target(api, "v1", name),
        subresource: Subresource::None,
        kind: PatchKind::Merge,
        body,
        options: super::WriteOptions::default(),
    };
    Ok(api.0.patch(change).await?.warnings)
}

#[tokio::test]
async fn rule_30_rules_are_evaluated_on_create_and_update() {
    let rules = json!([
        {"rule": "self.size <= self.limit", "message": "size is above the limit"},
        {"rule": "self.size > 0"},
        {"rule": "self.size != 13", "messageExpression": "'unlucky: %d'.format([self.size])",
            "reason": "FieldValueForbidden", "fieldPath": ".size"},
    ]);
    let api = kind(json!({"limit": {"type": "integer"}}), rules).await;
    made(&api, "a", json!({"size": 1, "limit": 5}))
        .await
        .unwrap();
    assert_eq!(
        message(made(&api, "b", json!({"size": 9, "limit": 5})).await),
        r#"Shoe.example.com "b" is invalid: spec: Invalid value: size is above the limit"#
    );
    assert_eq!(
        message(made(&api, "b", json!({"size": 0, "limit": 5})).await),
        r#"Shoe.example.com "b" is invalid: spec: Invalid value: failed rule: self.size > 0"#
    );
    assert_eq!(
        message(made(&api, "b", json!({"size": 13, "limit": 50})).await),
        r#"Shoe.example.com "b" is invalid: spec.size: Forbidden: unlucky: 13"#
    );
    let missing = message(made(&api, "b", json!({"size": 1})).await);
    assert!(
        missing.contains("no such key: limit evaluating rule: size is above the limit"),
        "{missing}"
    );
    let refused = message(changed(&api, "a", json!({"spec": {"size": 7}})).await);
    assert!(refused.contains("size is above the limit"), "{refused}");
    changed(&api, "a", json!({"spec": {"size": 5}}))
        .await
        .unwrap();
}

#[tokio::test]
async fn rule_30_transition_rules_compare_with_the_previous_value() {
    let rules = json!([{"rule": "self.size >= oldSelf.size", "message": "size may not shrink"}]);
    let items = json!({"ports": {"type": "array", "maxItems": 10,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "maxLength": 10},
            "port": {"type": "integer", "x-kubernetes-validations": [
                {"rule": "self == oldSelf", "message": "port is immutable"}]},
        }}},
        "colour": {"type": "string", "maxLength": 20, "x-kubernetes-validations": [
            {"rule": "!oldSelf.hasValue() || self == oldSelf.value()", "optionalOldSelf": true,
                "message": "colour is immutable"}]}});
    let api = kind(items, rules).await;
    let port = |name: &str, port: u16| json!({"name": name, "port": port});
    let spec = json!({"size": 2, "ports": [port("a", 1), port("b", 2)]});
    made(&api, "a", spec).await.unwrap();
    let change = |spec: Value| changed(&api, "a", json!({"spec": spec}));
    assert!(
        message(change(json!({"size": 1})).await)
            .contains("spec: Invalid value: size may not shrink")
    );
    // Items are compared by their keys, not by their positions.
    change(json!({"ports": [port("b", 2), port("c", 3)]}))
        .await
        .unwrap();
    let refused = message(change(json!({"ports": [port("c", 3), port("b", 5)]})).await);
    assert!(
        refused.contains("spec.ports[1].port: Invalid value: 5: port is immutable"),
        "{refused}"
    );
    change(json!({"colour": "red"})).await.unwrap();
    let refused = message(change(json!({"colour": "blue"})).await);
    assert!(
        refused.contains(r#"spec.colour: Invalid value: "blue": colour is immutable"#),
        "{refused}"
    );
}

#[tokio::test]
async fn rule_30_unchanged_values_do_not_block_updates() {
    let loose = with_rules(
        json!({"name": {"type": "string", "maxLength": 9}}),
        json!([]),
    );
    let api = api();
    api.create(DEFINITIONS, loose).await.unwrap();
    made(&api, "a", json!({"size": 1, "name": "old"}))
        .await
        .unwrap();
    let rule = json!([{"rule": "self == 'new'", "message": "must be new"}]);
    let strict =
        json!({"name": {"type": "string", "maxLength": 9, "x-kubernetes-validations": rule}});
    let versions = with_rules(strict, json!([]))["spec"]["versions"].clone();
    let change = json!({"spec": {"versions": versions}});
    api.merge(DEFINITIONS, "shoes.example.com", change)
        .await
        .unwrap();
    let warnings = changed(&api, "a", json!({"spec": {"size": 2}}))
        .await
        .unwrap();
    assert_eq!(
        warnings,
        [r#"spec.name: Invalid value: "old": must be new"#]
    );
    let refused = message(changed(&api, "a", json!({"spec": {"name": "x"}})).await);
    assert!(
        refused.contains(r#"spec.name: Invalid value: "x": must be new"#),
        "{refused}"
    );
    let refused = message(made(&api, "b", json!({"name": "old"})).await);
    assert!(refused.contains("must be new"), "{refused}");
}

#[tokio::test]
async fn rule_30_rules_apply_to_status() {
    let mut version = version("v1", true);
    let schema = &mut version["schema"]["openAPIV3Schema"];
    schema["x-kubernetes-validations"] = json!([
        {"rule": "!has(self.status) || self.status.replicas <= self.spec.size", "message": "too many"},
        {"rule": "self.metadata.name != 'bad'"},
    ]);
    let api = api();
    api.create(DEFINITIONS, definition(json!([version])))
        .await
        .unwrap();
    made(&api, "a", json!({"size": 2})).await.unwrap();
    let status = |replicas: u32| {
        let body = json!({"status": {"replicas": replicas}});
        patch(&api, "v1", Subresource::Status, PatchKind::Merge, body)
    };
    status(2).await.unwrap();
    let refused = message(status(3).await);
    assert_eq!(
        refused,
        r#"Shoe.example.com "a" is invalid: <nil>: Invalid value: too many"#
    );
    let refused = message(made(&api, "bad", json!({"size": 2})).await);
    assert!(
        refused.contains("failed rule: self.metadata.name != 'bad'"),
        "{refused}"
    );
    // Rules are not evaluated on objects of other types.
    let refused = message(made(&api, "c", json!({"size": "x"})).await);
    assert!(
        refused.contains("some validation rules were not checked"),
        "{refused}"
    );
}

#[tokio::test]
async fn rule_30_definitions_with_invalid_rules_are_rejected() {
    let list = json!({"list": {"type": "array", "items": {"type": "string"}}});
    let bounded = json!({"list": {"type": "array", "maxItems": 5,
        "items": {"type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}});
    for (properties, rule, expected) in [
        (
            json!({}),
            json!({"rule": "self.nothing == 1"}),
            r#"x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.nothing == 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: "#,
        ),
        (
            json!({}),
            json!({"rule": "self.nothing == 1"}),
            "compilation failed: ERROR: <input>:1:5: undefined field 'nothing'\n | self.nothing == 1\n | ....^",
        ),
        (
            json!({}),
            json!({"rule": "self.size"}),
            "cel expression must evaluate to a bool",
        ),
        (
            json!({}),
            json!({"rule": "true", "message": " "}),
            "message: Invalid value: \" \": must be non-empty if specified",
        ),
        (
            json!({}),
            json!({"rule": "true", "reason": "Other"}),
            "reason: Unsupported value: \"Other\"",
        ),
        (
            json!({}),
            json!({"rule": "true", "fieldPath": ".other"}),
            "fieldPath: Invalid value: \".other\": must be a valid path",
        ),
        (
            json!({}),
            json!({"rule": "true", "messageExpression": "1"}),
            "messageExpression must evaluate to a string",
        ),
        (
            json!({}),
            json!({"rule": "true", "optionalOldSelf": true}),
            "may not be set if oldSelf is not used in rule",
        ),
        (
            json!({}),
            json!({"rule": "true\n|| false"}),
            "message must be specified if rule contains line breaks",
        ),
        (
            list,
            json!({"rule": "self.list.all(x, self.list.all(y, x == y))"}),
            "estimated rule cost exceeds budget by factor of more than 100x",
        ),
        (
            bounded,
            json!({"rule": "true"}),
            "oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[spec].properties[list]",
        ),
    ] {
        let api = api();
        let made = api
            .create(DEFINITIONS, with_rules(properties, json!([rule])))
            .await;
        let message = message(made);
        assert!(message.contains(expected), "{rule}: {message}");
    }
}
