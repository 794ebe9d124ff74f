//! CustomResourceDefinitions: validation, status, and effect.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

use super::{Boxes, DEFINITIONS, definition, until, version};
use crate::common::{items, names, with};

const SCALE: &str = "/spec/versions/0/subresources";

#[tokio::test]
async fn rule_30_a_definition_is_accepted_established_and_served() {
    let scale = json!({"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}});
    let boxes = Boxes::planned(&[(SCALE, scale)]).await;
    let made = boxes.serve().await;
    assert_eq!(made["spec"]["names"]["listKind"], "BoxList");
    assert_eq!(made["spec"]["conversion"], json!({"strategy": "None"}));
    let accepted = &made["status"]["acceptedNames"];
    assert_eq!(*accepted, json!({"kind": "", "plural": ""}));
    assert_eq!(made["status"]["storedVersions"], json!(["v1"]));
    let test = &boxes.test;
    let now = test.get(&boxes.one).await.ok();
    assert_eq!(now["status"]["acceptedNames"], now["spec"]["names"]);
    let conditions = now["status"]["conditions"].as_array().unwrap();
    let shown = conditions
        .iter()
        .map(|c| json!([c["type"], c["reason"], c["message"]]));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            json!(["NamesAccepted", "NoConflicts", "no conflicts found"]),
            json!([
                "Established",
                "InitialNamesAccepted",
                "the initial names have been accepted"
            ]),
        ]
    );
    let list = test.get(&boxes.path).await.ok();
    assert_eq!(
        (&list["kind"], &list["items"]),
        (&json!("BoxList"), &json!([]))
    );
    let found = test.get(&format!("/apis/{}", boxes.group)).await.ok();
    assert_eq!(found["preferredVersion"]["version"], "v1");
}

#[tokio::test]
async fn rule_30_the_kind_is_discovered_with_its_subresources() {
    let scale = json!({"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}});
    let boxes = Boxes::served(&[(SCALE, scale)]).await;
    let found = boxes
        .test
        .get(&format!("/apis/{}/v1", boxes.group))
        .await
        .ok();
    let of = |name: &str| {
        let all = found["resources"].as_array().unwrap();
        let one = all.iter().find(|resource| resource["name"] == name);
        one.unwrap_or_else(|| panic!("no {name}: {found}"))
    };
    assert_eq!(found["resources"].as_array().unwrap().len(), 3);
    let resource = of("boxes");
    assert_eq!(
        json!([resource["kind"], resource["singularName"]]),
        json!(["Box", "box"])
    );
    assert_eq!(
        json!([resource["shortNames"], resource["categories"]]),
        json!([["bx"], ["all"]])
    );
    assert_eq!(of("boxes/status")["kind"], "Box");
    let scale = of("boxes/scale");
    assert_eq!(
        json!([scale["group"], scale["version"], scale["kind"]]),
        json!(["autoscaling", "v1", "Scale"])
    );
}

#[tokio::test]
async fn rule_30_openapi_v2_describes_the_kind() {
    let boxes = Boxes::served(&[]).await;
    let test = &boxes.test;
    let mut group: Vec<&str> = boxes.group.split('.').collect();
    group.reverse();
    let name = format!("{}.v1.Box", group.join("."));
    let mut found = json!(null);
    until("OpenAPI does not contain the kind", async || {
        for accept in ["application/json", "*/*"] {
            let response = test
                .request("GET", "/openapi/v2")
                .accept(accept)
                .send()
                .await;
            found = response.ok()["definitions"][&name].take();
        }
        !found.is_null()
    })
    .await;
    let mut spec =
        boxes.definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
            .clone();
    // v2 supports neither nullable fields nor defaults. Without
    // `x-kubernetes-preserve-unknown-fields`, kubectl would reject unknown fields.
    spec["properties"]["size"] = json!({"type": "integer", "minimum": 1});
    spec["properties"]["maybe"] = json!({});
    spec["properties"]["free"] = json!({"x-kubernetes-preserve-unknown-fields": true});
    assert_eq!(found["properties"]["spec"], spec);
    let metadata = test.old_or_new(
        "ObjectMeta_v2",
        "ObjectMeta",
        "the metadata of custom kinds has a separate definition",
    );
    assert_eq!(
        found["properties"]["metadata"]["$ref"],
        format!("#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.{metadata}")
    );
    assert_eq!(
        found["x-kubernetes-group-version-kind"],
        json!([{"group": boxes.group, "version": "v1", "kind": "Box"}])
    );
}

#[tokio::test]
async fn rule_30_an_invalid_definition_is_rejected() {
    let test = ApiTest::start().await;
    let good = definition(&test);
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
        let status = test.post(DEFINITIONS, &wrong).await.refused(422, "Invalid");
        let causes = status["details"]["causes"].as_array().unwrap();
        let about = |cause: &Value| cause["field"].as_str().unwrap().ends_with(field);
        assert!(causes.iter().any(about), "{pointer}: {status}");
        if pointer.ends_with("/schema") {
            let old = "Required value: schemas are required";
            let expected = test.old_or_new(
                old,
                "Required value",
                "the message does not say what is missing",
            );
            assert_eq!(causes[0]["message"], expected);
        }
    }
    for part in ["/status", "/scale"] {
        let pointer = format!("/spec/versions/0/subresources{part}");
        let wrong = with(good.clone(), &[(&pointer, json!("x"))]);
        let response = test.post(DEFINITIONS, &wrong).await;
        response.refused(400, "BadRequest");
    }
}

#[tokio::test]
async fn rule_30_a_schema_must_be_structural() {
    let test = ApiTest::start().await;
    let good = definition(&test);
    let x = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/x";
    let at = "spec.validation.openAPIV3Schema.properties[spec].properties[x]";
    for (property, reason, path) in [
        (json!({}), "FieldValueRequired", "type"),
        (json!({"type": "array"}), "FieldValueRequired", "items"),
        (
            json!({"type": "string", "uniqueItems": true}),
            "FieldValueForbidden",
            "uniqueItems",
        ),
        (
            json!({"type": "string", "pattern": "("}),
            "FieldValueInvalid",
            "pattern",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}),
            "FieldValueRequired",
            "x-kubernetes-list-map-keys",
        ),
    ] {
        let wrong = with(good.clone(), &[(x, property)]);
        let response = test.post(DEFINITIONS, &wrong).await;
        response.refused_for(422, "Invalid", &[(reason, &format!("{at}.{path}"))]);
    }
}

#[tokio::test]
async fn rule_30_names_of_another_definition_are_not_accepted() {
    let boxes = Boxes::served(&[]).await;
    let (test, group) = (&boxes.test, &boxes.group);
    let names = json!({"plural": "boots", "kind": "Boot", "shortNames": ["bx"]});
    let changes = [
        ("/metadata/name", json!(format!("boots.{group}"))),
        ("/spec/names", names),
    ];
    let other = with(boxes.definition.clone(), &changes);
    test.create(DEFINITIONS, &other).await;
    let one = format!("{DEFINITIONS}/boots.{group}");
    let mut conditions = Value::Null;
    until("the names are not checked", async || {
        conditions = test.get(&one).await.ok()["status"]["conditions"].take();
        conditions[0]["type"] == "NamesAccepted"
    })
    .await;
    let shown = |c: &Value| json!([c["status"], c["reason"]]);
    assert_eq!(
        shown(&conditions[0]),
        json!(["False", "ShortNamesConflict"])
    );
    assert_eq!(conditions[0]["message"], "\"bx\" is already in use");
    assert_eq!(shown(&conditions[1]), json!(["False", "NotAccepted"]));
    let path = test.path(&format!("{group}/v1"), "boots");
    assert_eq!(test.get(&path).await.code, 404);
    test.delete(&one).await.ok();
}

#[tokio::test]
async fn rule_30_changes_of_a_definition_take_effect() {
    let boxes = Boxes::served(&[]).await;
    let test = &boxes.test;
    boxes.make("a").await;
    let width = json!({"type": "string", "default": "wide"});
    let add = json!([{"op": "add", "value": width,
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/width"}]);
    test.patch(&boxes.one, PatchType::Json, &add).await.ok();
    until("defaults are not applied on reading", async || {
        let list = test.get(&boxes.path).await;
        if list.code != 200 {
            return false;
        }
        let list = list.ok();
        assert_eq!(items(&list), ["a"]);
        list["items"][0]["spec"]["width"] == "wide"
    })
    .await;
    for (field, value) in [("scope", "Cluster"), ("group", "else.example.com")] {
        let change = json!({"spec": {field: value}});
        let response = test.patch(&boxes.one, PatchType::Merge, &change).await;
        let status = response.refused(422, "Invalid");
        let message = status["message"].as_str().unwrap();
        let part = format!("spec.{field}: Invalid value");
        assert!(message.contains(&part), "{status}");
    }
}

#[tokio::test]
async fn rule_30_validation_rules_in_the_common_expression_language() {
    let test = ApiTest::start().await;
    if test
        .skip_on_old("validation rules in the Common Expression Language require Kubernetes 1.25")
    {
        return;
    }
    let rules = json!([{"rule": "self.size >= 2", "message": "too small"}]);
    let pointer =
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations";
    let definition = with(definition(&test), &[(pointer, rules)]);
    // The definition contains the rules; the evaluation is not tested here.
    let made = test.create(DEFINITIONS, &definition).await;
    let spec = &made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(
        spec["x-kubernetes-validations"][0]["rule"],
        "self.size >= 2"
    );
}

#[tokio::test]
async fn rule_30_kinds_may_be_cluster_scoped() {
    let test = ApiTest::start().await;
    let definition = with(definition(&test), &[("/spec/scope", json!("Cluster"))]);
    test.create(DEFINITIONS, &definition).await;
    let group = definition["spec"]["group"].as_str().unwrap();
    let path = test.cluster_path(&format!("{group}/v1"), "boxes");
    let object = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Box",
        "metadata": {"name": "a"}, "spec": {"colour": "red"},
    });
    let mut made = Value::Null;
    until("no box can be created", async || {
        let response = test.post(&path, &object).await;
        let is_made = response.code == 201;
        if is_made {
            made = response.is(201);
        }
        is_made
    })
    .await;
    assert_eq!(made["metadata"].get("namespace"), None);
    assert_eq!(names([&made]), ["a"]);
    let inside = test.path(&format!("{group}/v1"), "boxes");
    assert_eq!(test.get(&inside).await.code, 404);
}

#[tokio::test]
async fn rule_30_an_unserved_version_is_not_found() {
    let versions = json!([version("v1", true, true), version("v2", false, false)]);
    let boxes = Boxes::served(&[("/spec/versions", versions)]).await;
    assert_eq!(boxes.test.get(&boxes.via("v2")).await.code, 404);
    let serve = json!([{"op": "replace", "path": "/spec/versions/1/served", "value": true}]);
    boxes
        .test
        .patch(&boxes.one, PatchType::Json, &serve)
        .await
        .ok();
    until("the version is not served", async || {
        boxes.test.get(&boxes.via("v2")).await.code == 200
    })
    .await;
}
