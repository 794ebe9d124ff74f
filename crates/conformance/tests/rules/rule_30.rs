//! Rule 30: CustomResourceDefinitions and the kinds they make.

use std::time::Duration;

use longshore_conformance::{Judge, PatchType};
use serde_json::{Value, json};

use crate::common::items;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A kind of a group that no other test has.
struct Shoes<'a> {
    judge: &'a Judge,
    group: String,
}

fn version(name: &str, storage: bool) -> Value {
    json!({"name": name, "served": true, "storage": storage,
    "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
    "additionalPrinterColumns": [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
        {"name": "Old", "type": "date", "jsonPath": ".metadata.creationTimestamp"}],
    "schema": {"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1},
            "colour": {"type": "string", "default": "red", "enum": ["red", "blue"]},
            "note": {"type": "string", "nullable": true},
            "replicas": {"type": "integer"},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        }},
        "status": {"type": "object", "properties": {
            "replicas": {"type": "integer"}, "selector": {"type": "string"}}},
    }}}})
}

impl<'a> Shoes<'a> {
    fn new(judge: &'a Judge) -> Self {
        let group = format!("{}.example.com", judge.namespace());
        Self { judge, group }
    }

    fn name(&self) -> String {
        format!("shoes.{}", self.group)
    }

    fn definition(&self, versions: Value) -> Value {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name()},
            "spec": {"group": self.group, "scope": "Namespaced", "versions": versions,
                "names": {"plural": "shoes", "kind": "Shoe", "shortNames": ["sh"]}}})
    }

    /// Makes the definition and waits until its kind is served.
    async fn serve(judge: &'a Judge, versions: Value) -> Self {
        let shoes = Self::new(judge);
        judge.create(DEFINITIONS, &shoes.definition(versions)).await;
        shoes.until_served().await;
        shoes
    }

    async fn until_served(&self) {
        for _ in 0..200 {
            let crd = self
                .judge
                .get(&format!("{DEFINITIONS}/{}", self.name()))
                .await
                .ok();
            let conditions = crd["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let established = conditions
                .iter()
                .any(|c| c["type"] == "Established" && c["status"] == "True");
            if established && self.judge.get(&self.path("v1")).await.code == 200 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the kind is not served");
    }

    fn path(&self, version: &str) -> String {
        self.judge
            .path(&format!("{}/{version}", self.group), "shoes")
    }

    fn shoe(&self, version: &str, name: &str, spec: Value) -> Value {
        json!({"apiVersion": format!("{}/{version}", self.group), "kind": "Shoe",
            "metadata": {"name": name}, "spec": spec})
    }

    async fn forget(&self) {
        self.judge
            .delete(&format!("{DEFINITIONS}/{}", self.name()))
            .await
            .ok();
    }
}

#[tokio::test]
async fn rule_30_a_definition_has_its_names_accepted_and_is_established() {
    let judge = Judge::start().await;
    let shoes = Shoes::new(&judge);
    let made = judge
        .create(DEFINITIONS, &shoes.definition(json!([version("v1", true)])))
        .await;
    assert_eq!(made["spec"]["names"]["singular"], "shoe");
    assert_eq!(made["spec"]["names"]["listKind"], "ShoeList");
    assert_eq!(made["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(
        made["status"]["acceptedNames"],
        json!({"kind": "", "plural": ""})
    );
    assert_eq!(made["status"]["storedVersions"], json!(["v1"]));
    shoes.until_served().await;
    let crd = judge
        .get(&format!("{DEFINITIONS}/{}", shoes.name()))
        .await
        .ok();
    assert_eq!(crd["status"]["acceptedNames"], crd["spec"]["names"]);
    let conditions: Vec<_> = crd["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["type"].clone(), c["reason"].clone(), c["message"].clone()))
        .collect();
    assert_eq!(
        conditions,
        [
            (
                json!("NamesAccepted"),
                json!("NoConflicts"),
                json!("no conflicts found")
            ),
            (
                json!("Established"),
                json!("InitialNamesAccepted"),
                json!("the initial names have been accepted")
            ),
        ]
    );
    let list = judge.get(&format!("/apis/{}/v1", shoes.group)).await.ok();
    let mut names: Vec<_> = list["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["shoes", "shoes/scale", "shoes/status"]);
    let scale = list["resources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|r| r["name"] == "shoes/scale")
        .unwrap();
    assert_eq!(
        (&scale["group"], &scale["version"], &scale["kind"]),
        (&json!("autoscaling"), &json!("v1"), &json!("Scale"))
    );
    shoes.forget().await;
}

#[tokio::test]
async fn rule_30_definitions_must_follow_the_rules() {
    let judge = Judge::start().await;
    let shoes = Shoes::new(&judge);
    let definition = |version: Value| shoes.definition(json!([version]));
    let mut unstored = version("v1", true);
    unstored["storage"] = json!(false);
    judge
        .post(DEFINITIONS, &definition(unstored))
        .await
        .refused(422, "Invalid");
    let with = |property: Value| {
        let mut version = version("v1", true);
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["x"] = property;
        version
    };
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
        let answer = judge.post(DEFINITIONS, &definition(with(property))).await;
        answer.refused_for(422, "Invalid", &[(reason, &format!("{at}.{path}"))]);
    }
    let mut misnamed = definition(version("v1", true));
    misnamed["metadata"]["name"] = json!(format!("boots.{}", shoes.group));
    let answer = judge.post(DEFINITIONS, &misnamed).await;
    answer.refused_for(422, "Invalid", &[("FieldValueInvalid", "metadata.name")]);
}

#[tokio::test]
async fn rule_30_objects_are_pruned_filled_in_and_validated() {
    let judge = Judge::start().await;
    let shoes = Shoes::serve(&judge, json!([version("v1", true)])).await;
    let path = shoes.path("v1");
    let sent = shoes.shoe("v1", "a", json!({"size": 40, "laces": 2, "note": null}));
    let made = judge.create(&path, &sent).await;
    assert_eq!(
        made["spec"],
        json!({"size": 40, "colour": "red", "note": null})
    );
    for (spec, reason, field) in [
        (
            json!({"size": "x"}),
            judge.old_or_new(
                "FieldValueInvalid",
                "FieldValueTypeInvalid",
                "a wrong type has a reason of its own",
            ),
            "spec.size",
        ),
        (json!({"size": 0}), "FieldValueInvalid", "spec.size"),
        (
            json!({"size": 1.5}),
            judge.old_or_new(
                "FieldValueInvalid",
                "FieldValueTypeInvalid",
                "a wrong type has a reason of its own",
            ),
            "spec.size",
        ),
        (json!({}), "FieldValueRequired", "spec.size"),
        (
            json!({"size": 1, "colour": "green"}),
            "FieldValueNotSupported",
            "spec.colour",
        ),
        (
            json!({"size": 1, "tags": ["a", "b", "a"]}),
            "FieldValueDuplicate",
            "spec.tags[2]",
        ),
    ] {
        let answer = judge.post(&path, &shoes.shoe("v1", "b", spec)).await;
        answer.refused_for(422, "Invalid", &[(reason, field)]);
    }
    let answer = judge
        .post(&path, &shoes.shoe("v1", "b", json!({"size": "x"})))
        .await;
    let message = answer.json()["message"].as_str().unwrap().to_owned();
    assert!(message.ends_with(r#"is invalid: spec.size: Invalid value: "string": spec.size in body must be of type integer: "string""#), "{message}");
    let mut other = shoes.shoe("v1", "b", json!({"size": 1}));
    other["kind"] = json!("Boot");
    judge
        .post(&path, &other)
        .await
        .refused_for(422, "Invalid", &[("FieldValueInvalid", "kind")]);
    other["kind"] = json!("");
    judge.post(&path, &other).await.refused(400, "BadRequest");
    shoes.forget().await;
}

#[tokio::test]
async fn rule_30_status_generation_and_scale() {
    let judge = Judge::start().await;
    let shoes = Shoes::serve(&judge, json!([version("v1", true)])).await;
    let path = shoes.path("v1");
    let mut sent = shoes.shoe("v1", "a", json!({"size": 40}));
    sent["status"] = json!({"replicas": 9});
    let made = judge.create(&path, &sent).await;
    assert_eq!(
        (made.get("status"), &made["metadata"]["generation"]),
        (None, &json!(1))
    );
    let (one, status, scale) = (
        format!("{path}/a"),
        format!("{path}/a/status"),
        format!("{path}/a/scale"),
    );
    judge.get(&scale).await.refused(500, "InternalError");
    let both = json!({"spec": {"size": 41}, "status": {"replicas": 3, "selector": "a=b"}});
    let main = judge.patch(&one, PatchType::Merge, &both).await.ok();
    assert_eq!(
        (main.get("status"), &main["metadata"]["generation"]),
        (None, &json!(2))
    );
    let both = json!({"spec": {"size": 42}, "status": {"replicas": 3, "selector": "a=b"}});
    let part = judge.patch(&status, PatchType::Merge, &both).await.ok();
    assert_eq!(
        (&part["spec"]["size"], &part["metadata"]["generation"]),
        (&json!(41), &json!(2))
    );
    let set = json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": "a", "namespace": judge.namespace()}, "spec": {"replicas": 5}});
    let answer = judge.put(&scale, &set).await.ok();
    assert_eq!(answer["kind"], "Scale");
    assert_eq!(answer["spec"], json!({"replicas": 5}));
    assert_eq!(answer["status"], json!({"replicas": 3, "selector": "a=b"}));
    let answer = judge
        .patch(&scale, PatchType::Merge, &json!({"spec": {"replicas": 6}}))
        .await
        .ok();
    assert_eq!(answer["spec"]["replicas"], 6);
    let now = judge.get(&one).await.ok();
    assert_eq!(
        (&now["spec"]["replicas"], &now["metadata"]["generation"]),
        (&json!(6), &json!(4))
    );
    assert_eq!(
        now["metadata"]["resourceVersion"],
        answer["metadata"]["resourceVersion"]
    );
    let negative = json!({"spec": {"replicas": -1}});
    judge
        .patch(&scale, PatchType::Merge, &negative)
        .await
        .refused_for(422, "Invalid", &[("FieldValueInvalid", ".spec.replicas")]);
    judge
        .put(&one, &shoes.shoe("v1", "a", json!({"size": 1})))
        .await
        .refused_for(
            422,
            "Invalid",
            &[("FieldValueInvalid", "metadata.resourceVersion")],
        );
    judge
        .patch(&one, PatchType::Strategic, &json!({"spec": {"size": 1}}))
        .await
        .refused(415, "UnsupportedMediaType");
    shoes.forget().await;
}

#[tokio::test]
async fn rule_30_one_object_in_several_versions() {
    let judge = Judge::start().await;
    let shoes = Shoes::serve(
        &judge,
        json!([version("v1", true), version("v1beta1", false)]),
    )
    .await;
    judge
        .create(
            &shoes.path("v1beta1"),
            &shoes.shoe("v1beta1", "a", json!({"size": 40})),
        )
        .await;
    for version in ["v1", "v1beta1"] {
        let list = judge.get(&shoes.path(version)).await.ok();
        assert_eq!(list["kind"], "ShoeList");
        assert_eq!(
            list["items"][0]["apiVersion"],
            format!("{}/{version}", shoes.group)
        );
    }
    let group = judge.get(&format!("/apis/{}", shoes.group)).await.ok();
    assert_eq!(group["preferredVersion"]["version"], "v1");
    shoes.forget().await;
}

#[tokio::test]
async fn rule_30_tables_have_the_columns_of_the_definition() {
    let judge = Judge::start().await;
    let shoes = Shoes::serve(&judge, json!([version("v1", true)])).await;
    judge
        .create(
            &shoes.path("v1"),
            &shoes.shoe("v1", "a", json!({"size": 40})),
        )
        .await;
    let table = judge
        .call("GET", &shoes.path("v1"))
        .accept("application/json;as=Table;v=v1;g=meta.k8s.io")
        .send()
        .await
        .ok();
    let columns: Vec<_> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| {
            format!(
                "{} {} {}",
                c["name"].as_str().unwrap(),
                c["type"].as_str().unwrap(),
                c["priority"]
            )
        })
        .collect();
    assert_eq!(
        columns,
        [
            "Name string 0",
            "Size integer 0",
            "Colour string 1",
            "Old date 0"
        ]
    );
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells[..3], [json!("a"), json!(40), json!("red")]);
    assert!(cells[3].as_str().unwrap().ends_with('s'), "{cells:?}");
    shoes.forget().await;
}

#[tokio::test]
async fn rule_30_a_definition_takes_its_objects_along() {
    let judge = Judge::start().await;
    let shoes = Shoes::serve(&judge, json!([version("v1", true)])).await;
    let path = shoes.path("v1");
    let mut held = shoes.shoe("v1", "a", json!({"size": 40}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    judge.create(&path, &held).await;
    let mut watch = judge
        .watch(&format!("{path}?watch=true&resourceVersion=0"))
        .await;
    watch.event_of("ADDED", "a").await;
    let one = format!("{DEFINITIONS}/{}", shoes.name());
    let marked = judge.delete(&one).await.ok();
    assert_eq!(
        marked["metadata"]["finalizers"],
        json!(["customresourcecleanup.apiextensions.k8s.io"])
    );
    watch.event_of("MODIFIED", "a").await;
    let crd = judge.get(&one).await.ok();
    let terminating = crd["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["type"] == "Terminating")
        .unwrap()
        .clone();
    assert_eq!(terminating["status"], "True");
    judge
        .post(&path, &shoes.shoe("v1", "b", json!({"size": 1})))
        .await
        .refused(405, "MethodNotAllowed");
    let release = json!({"metadata": {"finalizers": null}});
    judge
        .patch(&format!("{path}/a"), PatchType::Merge, &release)
        .await
        .ok();
    watch.event_of("DELETED", "a").await;
    for _ in 0..400 {
        if judge.get(&one).await.code == 404 && judge.get(&path).await.code == 404 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the definition stays");
}

#[tokio::test]
async fn rule_30_names_of_another_are_not_accepted() {
    let judge = Judge::start().await;
    let shoes = Shoes::serve(&judge, json!([version("v1", true)])).await;
    let mut other = shoes.definition(json!([version("v1", true)]));
    other["metadata"]["name"] = json!(format!("boots.{}", shoes.group));
    other["spec"]["names"] = json!({"plural": "boots", "kind": "Boot", "shortNames": ["sh"]});
    judge.create(DEFINITIONS, &other).await;
    let one = format!("{DEFINITIONS}/boots.{}", shoes.group);
    let mut conditions = Value::Null;
    for _ in 0..100 {
        conditions = judge.get(&one).await.ok()["status"]["conditions"].clone();
        if conditions[0]["type"] == "NamesAccepted" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(
        (
            &conditions[0]["status"],
            &conditions[0]["reason"],
            &conditions[0]["message"]
        ),
        (
            &json!("False"),
            &json!("ShortNamesConflict"),
            &json!("\"sh\" is already in use")
        )
    );
    assert_eq!(
        (&conditions[1]["status"], &conditions[1]["reason"]),
        (&json!("False"), &json!("NotAccepted"))
    );
    assert_eq!(
        judge
            .get(&judge.path(&format!("{}/v1", shoes.group), "boots"))
            .await
            .code,
        404
    );
    judge.delete(&one).await.ok();
    shoes.forget().await;
}

#[tokio::test]
async fn rule_30_changes_of_a_definition_take_effect() {
    let judge = Judge::start().await;
    let shoes = Shoes::serve(&judge, json!([version("v1", true)])).await;
    judge
        .create(
            &shoes.path("v1"),
            &shoes.shoe("v1", "a", json!({"size": 40})),
        )
        .await;
    let one = format!("{DEFINITIONS}/{}", shoes.name());
    let add = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/width",
        "value": {"type": "string", "default": "wide"}}]);
    judge.patch(&one, PatchType::Json, &add).await.ok();
    let mut width = Value::Null;
    for _ in 0..200 {
        let list = judge.get(&shoes.path("v1")).await;
        if list.code == 200 {
            let list = list.ok();
            assert_eq!(items(&list), ["a"]);
            width = list["items"][0]["spec"]["width"].clone();
            if width == "wide" {
                break;
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(width, "wide", "defaults are filled in on reading, too");
    for (field, value) in [
        ("scope", json!("Cluster")),
        ("group", json!("else.example.com")),
    ] {
        let answer = judge
            .patch(&one, PatchType::Merge, &json!({"spec": {field: value}}))
            .await;
        let status = answer.refused(422, "Invalid");
        assert!(
            status["message"]
                .as_str()
                .unwrap()
                .contains(&format!("spec.{field}: Invalid value")),
            "{status}"
        );
    }
    shoes.forget().await;
}
