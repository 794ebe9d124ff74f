//! Custom resources: a line with a structural schema, then one object of the kind per line.
//! The server returns a created object unchanged on reads. Sending the object again changes
//! nothing, because it is already pruned and has its defaults.

use serde_json::{Value, json};

use super::server::Server;

const JSON: &str = "application/json";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const COLLECTION: &str = "/apis/fuzz.example.com/v1/namespaces/default/things";
/// The maximum number of objects in one input.
const MAX_OBJECTS: usize = 4;

fn definition(schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.fuzz.example.com"},
        "spec": {
            "group": "fuzz.example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
            }],
        },
    })
}

pub fn check(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let Some(Ok(schema)) = lines.next().map(serde_json::from_slice::<Value>) else {
        return;
    };
    let server = Server::new();
    let definition = definition(&schema).to_string();
    let created = server.call("POST", CRDS, JSON, definition.as_bytes());
    if !created.is_success() {
        return;
    }
    for line in lines.take(MAX_OBJECTS) {
        object(&server, line);
    }
    // Requests the kind's description and its objects, and deletes the kind.
    server.call("GET", "/openapi/v3/apis/fuzz.example.com/v1", JSON, b"");
    server.call("GET", COLLECTION, JSON, b"");
    server.call(
        "DELETE",
        &format!("{CRDS}/things.fuzz.example.com"),
        JSON,
        b"",
    );
}

fn object(server: &Server, body: &[u8]) {
    let strict = format!("{COLLECTION}?dryRun=All&fieldValidation=Strict");
    server.call("POST", &strict, JSON, body);
    let created = server.call("POST", COLLECTION, JSON, body);
    if !created.is_success() {
        return;
    }
    let object = created.value();
    let name = object["metadata"]["name"]
        .as_str()
        .expect("an object has a name");
    let path = format!("{COLLECTION}/{name}");
    let read = server.call("GET", &path, JSON, b"");
    assert_eq!(
        read.value(),
        object,
        "the stored object differs from the response"
    );
    let body = object.to_string();
    for (method, media_type) in [("PUT", JSON), ("PATCH", "application/merge-patch+json")] {
        // In a merge patch, null deletes a field.
        if method == "PATCH" && body.contains("null") {
            continue;
        }
        let again = server.call(method, &path, media_type, body.as_bytes());
        assert!(
            again.is_success(),
            "{method} rejects an object that POST accepted: {}\n{body}",
            again.text()
        );
        assert_eq!(
            again.value(),
            object,
            "{method} of the same object changes it"
        );
    }
    server.call("PUT", &format!("{path}/status"), JSON, body.as_bytes());
    server.remove(&path);
}
