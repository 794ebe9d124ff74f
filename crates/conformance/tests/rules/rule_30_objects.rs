//! Rule 30: CustomResourceDefinitions and the objects of their kinds.

use std::time::Duration;

use longshore_conformance::{Judge, PatchType};
use serde_json::{Value, json};

use crate::common::{items, number, version, with};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The schema of what is in an object besides metadata.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["colour"],
                "properties": {
                    "colour": {"type": "string", "enum": ["red", "blue"]},
                    "size": {"type": "integer", "minimum": 1, "default": 3},
                    "replicas": {"type": "integer"},
                    "name": {"type": "string", "pattern": "^[a-z]*$", "maxLength": 5},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "either": {"x-kubernetes-int-or-string": true},
                    "maybe": {"type": "string", "nullable": true},
                    "list": {"type": "array", "maxItems": 2, "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                },
            },
            "status": {
                "type": "object",
                "properties": {
                    "phase": {"type": "string"},
                    "replicas": {"type": "integer"},
                    "selector": {"type": "string"},
                },
            },
        },
    })
}

/// A definition whose group is the test's own, with a version `v1`.
fn definition(judge: &Judge) -> Value {
    let group = format!("{}.example.com", judge.namespace());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("boxes.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "boxes", "singular": "box", "kind": "Box", "shortNames": ["bx"], "categories": ["all"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema()},
            }],
        },
    })
}

fn is_true(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// Makes a definition and waits until its objects are served; gives their
/// path.
async fn define(judge: &Judge, definition: &Value) -> String {
    judge.create(DEFINITIONS, definition).await;
    let name = definition["metadata"]["name"].as_str().unwrap();
    let group = definition["spec"]["group"].as_str().unwrap();
    let path = judge.path(&format!("{group}/v1"), "boxes");
    for _ in 0..600 {
        let now = judge.get(&format!("{DEFINITIONS}/{name}")).await.ok();
        let served = judge.get(&path).await.code == 200;
        if is_true(&now, "NamesAccepted") && is_true(&now, "Established") && served {
            return path;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{name} is not served");
}

/// A judge with the definition, changed at some places.
async fn judge(changes: &[(&str, Value)]) -> (Judge, String, Value) {
    let judge = Judge::start().await;
    let definition = with(definition(&judge), changes);
    let path = define(&judge, &definition).await;
    (judge, path, definition)
}

fn a_box(definition: &Value, name: &str, spec: Value) -> Value {
    let group = definition["spec"]["group"].as_str().unwrap();
    json!({
        "apiVersion": format!("{group}/v1"), "kind": "Box",
        "metadata": {"name": name}, "spec": spec,
    })
}

#[tokio::test]
async fn rule_30_a_definition_is_accepted_established_and_served() {
    let (judge, path, definition) = judge(&[]).await;
    let name = definition["metadata"]["name"].as_str().unwrap();
    let one = judge.get(&format!("{DEFINITIONS}/{name}")).await.ok();
    assert_eq!(one["status"]["acceptedNames"], one["spec"]["names"]);
    assert_eq!(one["spec"]["names"]["listKind"], "BoxList");
    assert_eq!(one["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(one["spec"]["conversion"], json!({"strategy": "None"}));
    let list = judge.get(&path).await.ok();
    assert_eq!(
        (&list["kind"], &list["items"]),
        (&json!("BoxList"), &json!([]))
    );
    let group = definition["spec"]["group"].as_str().unwrap();
    let resources = judge.get(&format!("/apis/{group}/v1")).await.ok();
    let resource = &resources["resources"][0];
    assert_eq!(
        (&resource["name"], &resource["kind"]),
        (&json!("boxes"), &json!("Box"))
    );
    assert_eq!(resource["singularName"], "box");
    assert_eq!(
        (&resource["shortNames"], &resource["categories"]),
        (&json!(["bx"]), &json!(["all"]))
    );
    let found = judge.get(&format!("/apis/{group}")).await.ok();
    assert_eq!(found["preferredVersion"]["version"], "v1");
}

#[tokio::test]
async fn rule_30_a_definition_that_is_wrong_is_invalid() {
    let judge = Judge::start().await;
    let good = definition(&judge);
    for (pointer, value, field) in [
        (
            "/metadata/name",
            json!("other.example.com"),
            "metadata.name",
        ),
        ("/spec/scope", json!("Everywhere"), "spec.scope"),
        ("/spec/versions", json!([]), "spec.versions"),
        ("/spec/versions/0/storage", json!(false), "spec.versions"),
        (
            "/spec/versions/0/schema",
            json!(null),
            "spec.versions[0].schema.openAPIV3Schema",
        ),
        (
            "/spec/versions/0/schema/openAPIV3Schema/properties/spec/type",
            json!(null),
            "openAPIV3Schema.properties[spec].type",
        ),
        ("/spec/names/kind", json!("box of"), "spec.names.kind"),
    ] {
        let wrong = with(good.clone(), &[(pointer, value)]);
        let status = judge
            .post(DEFINITIONS, &wrong)
            .await
            .refused(422, "Invalid");
        let causes = status["details"]["causes"].as_array().unwrap();
        let about = |cause: &Value| cause["field"].as_str().unwrap().ends_with(field);
        assert!(causes.iter().any(about), "{pointer}: {status}");
    }
}

#[tokio::test]
async fn rule_30_objects_live_as_others_do() {
    let (judge, path, definition) = judge(&[]).await;
    let made = judge
        .create(&path, &a_box(&definition, "a", json!({"colour": "red"})))
        .await;
    assert_eq!(made["kind"], "Box");
    assert_eq!(made["metadata"]["generation"], 1);
    let one = format!("{path}/a");
    assert_eq!(judge.get(&one).await.ok(), made);
    let mut watch = judge
        .watch(&format!(
            "{path}?watch=1&resourceVersion={}",
            version(&made)
        ))
        .await;
    let patch = json!({"spec": {"colour": "blue"}});
    let patched = judge.patch(&one, PatchType::Merge, &patch).await.ok();
    assert_eq!(patched["metadata"]["generation"], 2);
    assert_eq!(watch.event("MODIFIED").await, patched);
    let list = judge.get(&format!("{path}?limit=1")).await.ok();
    assert_eq!(items(&list), ["a"]);
    let json = json!([{"op": "replace", "path": "/spec/colour", "value": "red"}]);
    judge.patch(&one, PatchType::Json, &json).await.ok();
    // Other ways to merge are not known of them.
    let answer = judge.patch(&one, PatchType::Strategic, &patch).await;
    answer.refused(415, "UnsupportedMediaType");
    let status = judge.delete(&one).await.ok();
    assert_eq!(status["status"], "Success");
    watch.event("MODIFIED").await;
    watch.event_of("DELETED", "a").await;
}

#[tokio::test]
async fn rule_30_an_update_needs_a_version() {
    let (judge, path, definition) = judge(&[]).await;
    let object = a_box(&definition, "a", json!({"colour": "red"}));
    let made = judge.create(&path, &object).await;
    let one = format!("{path}/a");
    let answer = judge.put(&one, &object).await;
    answer.refused_for(
        422,
        "Invalid",
        &[("FieldValueInvalid", "metadata.resourceVersion")],
    );
    let blue = with(made, &[("/spec/colour", json!("blue"))]);
    judge.put(&one, &blue).await.ok();
    judge.put(&one, &blue).await.refused(409, "Conflict");
}

#[tokio::test]
async fn rule_30_unknown_fields_are_pruned() {
    let (judge, path, definition) = judge(&[]).await;
    let spec = json!({
        "colour": "red", "nonsense": 1, "free": {"any": {"thing": [1]}},
        "list": [{"a": "x", "b": "y"}],
    });
    let object = with(a_box(&definition, "a", spec), &[("/more", json!(1))]);
    let made = judge
        .create(&format!("{path}?fieldValidation=Ignore"), &object)
        .await;
    let expected = json!({
        "colour": "red", "size": 3, "free": {"any": {"thing": [1]}}, "list": [{"a": "x"}],
    });
    assert_eq!(made["spec"], expected);
    assert_eq!(made.get("more"), None);
}

#[tokio::test]
async fn rule_30_defaults_are_filled_in() {
    let (judge, path, definition) = judge(&[]).await;
    let made = judge
        .create(&path, &a_box(&definition, "a", json!({"colour": "red"})))
        .await;
    assert_eq!(made["spec"]["size"], 3);
    let one = format!("{path}/a");
    let patch = json!({"spec": {"size": null}});
    let patched = judge.patch(&one, PatchType::Merge, &patch).await.ok();
    assert_eq!(patched["spec"]["size"], 3);
    let given = a_box(
        &definition,
        "b",
        json!({"colour": "red", "size": 5, "maybe": null}),
    );
    let made = judge.create(&path, &given).await;
    assert_eq!(made["spec"]["size"], 5);
    assert_eq!(made["spec"].get("maybe"), Some(&json!(null)), "nullable");
}

#[tokio::test]
async fn rule_30_objects_are_validated() {
    let (judge, path, definition) = judge(&[]).await;
    for (spec, field) in [
        (json!({}), "spec.colour"),
        (json!({"colour": "green"}), "spec.colour"),
        (json!({"colour": 5}), "spec.colour"),
        (json!({"colour": "red", "size": 0}), "spec.size"),
        (json!({"colour": "red", "size": "big"}), "spec.size"),
        (json!({"colour": "red", "name": "UP"}), "spec.name"),
        (json!({"colour": "red", "name": "abcdefg"}), "spec.name"),
        (json!({"colour": "red", "list": [{}, {}, {}]}), "spec.list"),
        (json!({"colour": "red", "either": true}), "spec.either"),
    ] {
        let answer = judge
            .post(&path, &a_box(&definition, "a", spec.clone()))
            .await;
        let status = answer.refused(422, "Invalid");
        let causes = status["details"]["causes"].as_array().unwrap();
        let about = |cause: &Value| cause["field"].as_str().unwrap().starts_with(field);
        assert!(causes.iter().any(about), "{spec}: {status}");
        assert_eq!(status["details"]["kind"], "Box");
    }
    for either in [json!(5), json!("5%")] {
        let name = if either.is_number() { "a" } else { "b" };
        let spec = json!({"colour": "red", "either": either});
        judge.create(&path, &a_box(&definition, name, spec)).await;
    }
    let patch = json!({"spec": {"colour": "green"}});
    let answer = judge
        .patch(&format!("{path}/a"), PatchType::Merge, &patch)
        .await;
    answer.refused(422, "Invalid");
}

#[tokio::test]
async fn rule_30_rules_in_the_common_expression_language() {
    let judge = Judge::start().await;
    if judge.lacks("rules in the Common Expression Language are of 1.25") {
        return;
    }
    let rules = json!([{"rule": "self.size >= 2", "message": "too small"}]);
    let pointer =
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations";
    let definition = with(definition(&judge), &[(pointer, rules)]);
    // They are kept and shown; to evaluate them comes later.
    let made = judge.create(DEFINITIONS, &definition).await;
    let spec = &made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(
        spec["x-kubernetes-validations"][0]["rule"],
        "self.size >= 2"
    );
}

#[tokio::test]
async fn rule_30_several_versions_show_one_object() {
    let judge = Judge::start().await;
    let version = |name: &str, served: bool, storage: bool| {
        json!({
            "name": name, "served": served, "storage": storage,
            "schema": {"openAPIV3Schema": schema()},
        })
    };
    let versions = json!([
        version("v1", true, false),
        version("v2", true, true),
        version("v3beta1", false, false)
    ]);
    let definition = with(definition(&judge), &[("/spec/versions", versions)]);
    let path = define(&judge, &definition).await;
    let group = definition["spec"]["group"].as_str().unwrap();
    judge
        .create(&path, &a_box(&definition, "a", json!({"colour": "red"})))
        .await;
    let other = judge.path(&format!("{group}/v2"), "boxes");
    let shown = judge.get(&format!("{other}/a")).await.ok();
    assert_eq!(shown["apiVersion"], format!("{group}/v2"));
    assert_eq!(shown["spec"]["colour"], "red");
    let patch = json!({"spec": {"colour": "blue"}});
    judge
        .patch(&format!("{other}/a"), PatchType::Merge, &patch)
        .await
        .ok();
    let first = judge.get(&format!("{path}/a")).await.ok();
    assert_eq!(
        (&first["apiVersion"], &first["spec"]["colour"]),
        (&json!(format!("{group}/v1")), &json!("blue"))
    );
    assert_eq!(first["metadata"]["uid"], shown["metadata"]["uid"]);
    let hidden = judge.path(&format!("{group}/v3beta1"), "boxes");
    assert_eq!(judge.get(&hidden).await.code, 404);
    let found = judge.get(&format!("/apis/{group}")).await.ok();
    let found: Vec<_> = found["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["version"].clone())
        .collect();
    assert_eq!(found, [json!("v2"), json!("v1")]);
    let mut watch = judge.watch(&format!("{other}?watch=1")).await;
    let seen = watch.event_of("ADDED", "a").await;
    assert_eq!(seen["apiVersion"], format!("{group}/v2"));
}

#[tokio::test]
async fn rule_30_the_status_is_apart_when_asked_for() {
    let (judge, path, definition) =
        judge(&[("/spec/versions/0/subresources", json!({"status": {}}))]).await;
    let object = with(
        a_box(&definition, "a", json!({"colour": "red"})),
        &[("/status", json!({"phase": "Early"}))],
    );
    let made = judge.create(&path, &object).await;
    assert_eq!(made.get("status"), None, "{made}");
    let one = format!("{path}/a");
    let both = json!({"status": {"phase": "Ready"}, "spec": {"colour": "blue"}});
    let status = judge
        .patch(&format!("{one}/status"), PatchType::Merge, &both)
        .await
        .ok();
    assert_eq!(
        (&status["status"]["phase"], &status["spec"]["colour"]),
        (&json!("Ready"), &json!("red"))
    );
    assert_eq!(status["metadata"]["generation"], 1);
    let other = json!({"status": {"phase": "Late"}, "spec": {"colour": "blue"}});
    let patched = judge.patch(&one, PatchType::Merge, &other).await.ok();
    assert_eq!(
        (&patched["status"]["phase"], &patched["spec"]["colour"]),
        (&json!("Ready"), &json!("blue"))
    );
    assert_eq!(patched["metadata"]["generation"], 2);
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let patched = judge.patch(&one, PatchType::Merge, &labels).await.ok();
    assert_eq!(patched["metadata"]["generation"], 2);
}

#[tokio::test]
async fn rule_30_without_a_status_subresource_there_is_none() {
    let (judge, path, definition) = judge(&[]).await;
    let object = with(
        a_box(&definition, "a", json!({"colour": "red"})),
        &[("/status", json!({"phase": "Early"}))],
    );
    let made = judge.create(&path, &object).await;
    assert_eq!(made["status"]["phase"], "Early");
    judge
        .get(&format!("{path}/a/status"))
        .await
        .refused(404, "NotFound");
    let patch = json!({"status": {"phase": "Late"}});
    let patched = judge
        .patch(&format!("{path}/a"), PatchType::Merge, &patch)
        .await
        .ok();
    assert_eq!(
        patched["metadata"]["generation"], 2,
        "it counts as any field"
    );
}

#[tokio::test]
async fn rule_30_the_scale_reads_and_writes_the_fields_named() {
    let subresources = json!({"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }});
    let (judge, path, definition) = judge(&[("/spec/versions/0/subresources", subresources)]).await;
    let object = a_box(&definition, "a", json!({"colour": "red", "replicas": 2}));
    let made = judge.create(&path, &object).await;
    let one = format!("{path}/a");
    let status = json!({"status": {"replicas": 1, "selector": "app=box"}});
    judge
        .patch(&format!("{one}/status"), PatchType::Merge, &status)
        .await
        .ok();
    let scale = judge.get(&format!("{one}/scale")).await.ok();
    assert_eq!(
        (&scale["kind"], &scale["apiVersion"]),
        (&json!("Scale"), &json!("autoscaling/v1"))
    );
    assert_eq!(scale["spec"], json!({"replicas": 2}));
    assert_eq!(
        scale["status"],
        json!({"replicas": 1, "selector": "app=box"})
    );
    let four = with(scale, &[("/spec/replicas", json!(4))]);
    let scaled = judge.put(&format!("{one}/scale"), &four).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 4);
    let now = judge.get(&one).await.ok();
    assert_eq!(now["spec"]["replicas"], 4);
    assert!(number(&now) > number(&made));
    judge
        .put(&format!("{one}/scale"), &four)
        .await
        .refused(409, "Conflict");
}

#[tokio::test]
async fn rule_30_tables_have_columns_by_path_priority_and_type() {
    let columns = json!([
        {"name": "Colour", "type": "string", "jsonPath": ".spec.colour"},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1, "description": "How big."},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]);
    let (judge, path, definition) =
        judge(&[("/spec/versions/0/additionalPrinterColumns", columns)]).await;
    judge
        .create(&path, &a_box(&definition, "a", json!({"colour": "red"})))
        .await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = judge.call("GET", &path).accept(accept).send().await.ok();
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

#[tokio::test]
async fn rule_30_kinds_may_be_cluster_wide() {
    let judge = Judge::start().await;
    let definition = with(definition(&judge), &[("/spec/scope", json!("Cluster"))]);
    judge.create(DEFINITIONS, &definition).await;
    let group = definition["spec"]["group"].as_str().unwrap();
    let path = judge.wide(&format!("{group}/v1"), "boxes");
    for _ in 0..600 {
        if judge.get(&path).await.code == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let object = a_box(&definition, "a", json!({"colour": "red"}));
    let mut answer = judge.post(&path, &object).await;
    for _ in 0..100 {
        if answer.code == 201 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        answer = judge.post(&path, &object).await;
    }
    assert_eq!(answer.is(201)["metadata"].get("namespace"), None);
    let inside = judge.path(&format!("{group}/v1"), "boxes");
    assert_eq!(judge.get(&inside).await.code, 404);
}

#[tokio::test]
async fn rule_30_a_definition_that_goes_takes_its_objects_along() {
    let (judge, path, definition) = judge(&[]).await;
    judge
        .create(&path, &a_box(&definition, "a", json!({"colour": "red"})))
        .await;
    let name = definition["metadata"]["name"].as_str().unwrap();
    let one = format!("{DEFINITIONS}/{name}");
    judge.delete(&one).await.ok();
    for _ in 0..600 {
        if judge.get(&one).await.code == 404 && judge.get(&path).await.code == 404 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    judge.get(&one).await.refused(404, "NotFound");
    assert_eq!(judge.get(&path).await.code, 404);
    // It can come again, empty.
    let path = define(&judge, &definition).await;
    let list = judge.get(&path).await.ok();
    assert_eq!(list["items"], json!([]));
}
