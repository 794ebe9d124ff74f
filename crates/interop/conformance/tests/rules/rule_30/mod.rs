//! Rule 30: CustomResourceDefinitions and custom objects.

mod definitions;
mod deletion;
mod objects;
mod subresources;
mod versions;

use std::time::Duration;

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

use crate::common::with;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The schema of the objects, without metadata.
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
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
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

/// A version of the kind, without subresources.
fn version(name: &str, served: bool, storage: bool) -> Value {
    json!({
        "name": name, "served": served, "storage": storage,
        "schema": {"openAPIV3Schema": schema()},
    })
}

/// A definition in the test's own group, with a version `v1`.
fn definition(test: &ApiTest) -> Value {
    let group = format!("{}.example.com", test.namespace());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("boxes.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "boxes", "singular": "box", "kind": "Box", "shortNames": ["bx"], "categories": ["all"]},
            "versions": [version("v1", true, true)],
        },
    })
}

fn is_true(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// Waits for a condition: definitions take effect with a delay.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what}");
}

/// A test with its own custom kind.
struct Boxes {
    test: ApiTest,
    definition: Value,
    group: String,
    /// The definition's path.
    one: String,
    /// The path of the objects in `v1`.
    path: String,
}

impl Boxes {
    /// A kind that does not exist yet; `changes` modifies its definition.
    async fn planned(changes: &[(&str, Value)]) -> Self {
        let test = ApiTest::start().await;
        let definition = with(definition(&test), changes);
        let group = definition["spec"]["group"].as_str().unwrap().to_owned();
        let path = test.path(&format!("{group}/v1"), "boxes");
        Self {
            one: format!("{DEFINITIONS}/boxes.{group}"),
            test,
            definition,
            group,
            path,
        }
    }

    /// Like `planned`, and creates the definition.
    async fn served(changes: &[(&str, Value)]) -> Self {
        let boxes = Self::planned(changes).await;
        boxes.serve().await;
        boxes
    }

    /// Creates the definition and waits until the kind is served. Returns the definition
    /// as first created.
    async fn serve(&self) -> Value {
        let made = self.test.create(DEFINITIONS, &self.definition).await;
        until("the kind is not served", async || {
            let now = self.test.get(&self.one).await.ok();
            let accepted = is_true(&now, "NamesAccepted") && is_true(&now, "Established");
            accepted && self.test.get(&self.path).await.code == 200
        })
        .await;
        made
    }

    /// Waits until the definition is deleted and the kind is no longer served.
    async fn wait_deleted(&self) {
        until("the definition is not deleted", async || {
            let gone = self.test.get(&self.one).await.code == 404;
            gone && self.test.get(&self.path).await.code == 404
        })
        .await;
    }

    /// The path of the objects in this version.
    fn via(&self, version: &str) -> String {
        self.test
            .path(&format!("{}/{version}", self.group), "boxes")
    }

    /// A box with this name.
    fn object(&self, name: &str, spec: Value) -> Value {
        json!({
            "apiVersion": format!("{}/v1", self.group), "kind": "Box",
            "metadata": {"name": name}, "spec": spec,
        })
    }

    /// Creates a red box.
    async fn make(&self, name: &str) -> Value {
        let object = self.object(name, json!({"colour": "red"}));
        self.test.create(&self.path, &object).await
    }

    /// Creates a red box with a finalizer.
    async fn make_held(&self, name: &str) -> Value {
        let object = self.object(name, json!({"colour": "red"}));
        let held = with(object, &[("/metadata/finalizers", json!(["e.x/hold"]))]);
        self.test.create(&self.path, &held).await
    }

    /// Sends a merge patch.
    async fn merge(&self, path: &str, patch: Value) -> Value {
        self.test.patch(path, PatchType::Merge, &patch).await.ok()
    }
}
