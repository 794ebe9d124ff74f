//! Custom objects: pruning, defaults, validation.

use longshore_conformance::PatchType;
use serde_json::{Value, json};

use super::Boxes;
use crate::common::{items, version, with};

#[tokio::test]
async fn rule_30_custom_objects_support_all_verbs() {
    let boxes = Boxes::served(&[]).await;
    let (test, path) = (&boxes.test, &boxes.path);
    let made = boxes.make("a").await;
    assert_eq!(made["kind"], "Box");
    assert_eq!(made["metadata"]["generation"], 1);
    let one = format!("{path}/a");
    assert_eq!(test.get(&one).await.ok(), made);
    let mut watch = test
        .watch(&format!(
            "{path}?watch=1&resourceVersion={}",
            version(&made)
        ))
        .await;
    let patch = json!({"spec": {"colour": "blue"}});
    let patched = boxes.merge(&one, patch.clone()).await;
    assert_eq!(patched["metadata"]["generation"], 2);
    assert_eq!(watch.event("MODIFIED").await, patched);
    let list = test.get(&format!("{path}?limit=1")).await.ok();
    assert_eq!(items(&list), ["a"]);
    let json = json!([{"op": "replace", "path": "/spec/colour", "value": "red"}]);
    test.patch(&one, PatchType::Json, &json).await.ok();
    // Custom kinds do not support strategic merge patches.
    let response = test.patch(&one, PatchType::Strategic, &patch).await;
    response.refused(415, "UnsupportedMediaType");
    let status = test.delete(&one).await.ok();
    assert_eq!(status["status"], "Success");
    watch.event("MODIFIED").await;
    watch.event_of("DELETED", "a").await;
}

#[tokio::test]
async fn rule_30_an_update_requires_a_resource_version() {
    let boxes = Boxes::served(&[]).await;
    let (test, path) = (&boxes.test, &boxes.path);
    let object = boxes.object("a", json!({"colour": "red"}));
    let made = test.create(path, &object).await;
    let one = format!("{path}/a");
    let response = test.put(&one, &object).await;
    response.refused_for(
        422,
        "Invalid",
        &[("FieldValueInvalid", "metadata.resourceVersion")],
    );
    let blue = with(made, &[("/spec/colour", json!("blue"))]);
    test.put(&one, &blue).await.ok();
    test.put(&one, &blue).await.refused(409, "Conflict");
}

#[tokio::test]
async fn rule_30_unknown_fields_are_pruned() {
    let boxes = Boxes::served(&[]).await;
    let (test, path) = (&boxes.test, &boxes.path);
    let spec = json!({
        "colour": "red", "nonsense": 1, "free": {"any": {"thing": [1]}},
        "list": [{"a": "x", "b": "y"}],
    });
    let object = with(boxes.object("a", spec), &[("/more", json!(1))]);
    let made = test
        .create(&format!("{path}?fieldValidation=Ignore"), &object)
        .await;
    let expected = json!({
        "colour": "red", "size": 3, "free": {"any": {"thing": [1]}}, "list": [{"a": "x"}],
    });
    assert_eq!(made["spec"], expected);
    assert_eq!(made.get("more"), None);
}

#[tokio::test]
async fn rule_30_defaults_are_applied() {
    let boxes = Boxes::served(&[]).await;
    let (test, path) = (&boxes.test, &boxes.path);
    let made = boxes.make("a").await;
    assert_eq!(made["spec"]["size"], 3);
    let one = format!("{path}/a");
    let patch = json!({"spec": {"size": null}});
    let patched = boxes.merge(&one, patch.clone()).await;
    assert_eq!(patched["spec"]["size"], 3);
    let given = boxes.object("b", json!({"colour": "red", "size": 5, "maybe": null}));
    let made = test.create(path, &given).await;
    assert_eq!(made["spec"]["size"], 5);
    assert_eq!(made["spec"].get("maybe"), Some(&json!(null)), "nullable");
}

#[tokio::test]
async fn rule_30_objects_are_validated() {
    let boxes = Boxes::served(&[]).await;
    let (test, path) = (&boxes.test, &boxes.path);
    let why = "a wrong type has its own reason";
    let other_type = test.old_or_new("FieldValueInvalid", "FieldValueTypeInvalid", why);
    for (spec, reason, field) in [
        (json!({}), "FieldValueRequired", "spec.colour"),
        (
            json!({"colour": "green"}),
            "FieldValueNotSupported",
            "spec.colour",
        ),
        (
            json!({"colour": "red", "size": 0}),
            "FieldValueInvalid",
            "spec.size",
        ),
        (
            json!({"colour": "red", "size": "big"}),
            other_type,
            "spec.size",
        ),
        (
            json!({"colour": "red", "name": "UP"}),
            "FieldValueInvalid",
            "spec.name",
        ),
        (
            json!({"colour": "red", "tags": ["a", "b", "a"]}),
            "FieldValueDuplicate",
            "spec.tags[2]",
        ),
    ] {
        let response = test.post(path, &boxes.object("a", spec)).await;
        response.refused_for(422, "Invalid", &[(reason, field)]);
    }
    let part = boxes.object("a", json!({"colour": "red", "size": 1.5}));
    let mistyped = (other_type, "spec.size");
    let both = [mistyped, ("FieldValueInvalid", "<nil>")];
    let why = "a fraction causes a second error";
    let causes = test.old_or_new(&both[..1], &both[..], why);
    let response = test.post(path, &part).await;
    response.refused_for(422, "Invalid", causes);
    // The reasons of these errors differ between versions.
    for (spec, field) in [
        (json!({"colour": 5}), "spec.colour"),
        (json!({"colour": "red", "name": "abcdefg"}), "spec.name"),
        (json!({"colour": "red", "list": [{}, {}, {}]}), "spec.list"),
        (json!({"colour": "red", "either": true}), "spec.either"),
    ] {
        let response = test.post(path, &boxes.object("a", spec.clone())).await;
        let status = response.refused(422, "Invalid");
        let causes = status["details"]["causes"].as_array().unwrap();
        let about = |cause: &Value| cause["field"].as_str().unwrap().starts_with(field);
        assert!(causes.iter().any(about), "{spec}: {status}");
        assert_eq!(status["details"]["kind"], "Box");
    }
    let wrong = boxes.object("a", json!({"colour": "red", "size": "x"}));
    let status = test.post(path, &wrong).await.refused(422, "Invalid");
    let message = status["message"].as_str().unwrap();
    let end = r#"is invalid: spec.size: Invalid value: "string": spec.size in body must be of type integer: "string""#;
    assert!(message.ends_with(end), "{message}");
    for (name, either) in [("a", json!(5)), ("b", json!("5%"))] {
        let object = boxes.object(name, json!({"colour": "red", "either": either}));
        test.create(path, &object).await;
    }
    let patch = json!({"spec": {"colour": "green"}});
    let one = format!("{path}/a");
    let response = test.patch(&one, PatchType::Merge, &patch).await;
    response.refused(422, "Invalid");
}

#[tokio::test]
async fn rule_30_the_kind_must_match_the_path() {
    let boxes = Boxes::served(&[]).await;
    let object = boxes.object("a", json!({"colour": "red"}));
    let other = with(object.clone(), &[("/kind", json!("Boot"))]);
    let response = boxes.test.post(&boxes.path, &other).await;
    response.refused_for(422, "Invalid", &[("FieldValueInvalid", "kind")]);
    let none = with(object, &[("/kind", json!(""))]);
    let response = boxes.test.post(&boxes.path, &none).await;
    response.refused(400, "BadRequest");
}

#[tokio::test]
async fn rule_30_additional_printer_columns_define_the_table() {
    let columns = json!([
        {"name": "Colour", "type": "string", "jsonPath": ".spec.colour"},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1, "description": "How big."},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]);
    let boxes = Boxes::served(&[("/spec/versions/0/additionalPrinterColumns", columns)]).await;
    let (test, path) = (&boxes.test, &boxes.path);
    boxes.make("a").await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = test.request("GET", path).accept(accept).send().await.ok();
    let shown: Vec<_> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| (column["name"].clone(), column["priority"].clone()))
        .collect();
    let expected = [("Name", 0), ("Colour", 0), ("Size", 1), ("Age", 0)];
    assert_eq!(
        shown,
        expected.map(|(name, priority)| (json!(name), json!(priority)))
    );
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells[..3], [json!("a"), json!("red"), json!(3)]);
    assert!(cells[3].is_string(), "{table}");
}
