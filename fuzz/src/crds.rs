//! Custom kinds: a line with a structural schema, then objects of the kind, a
//! line each. What is taken reads back as it was answered; sending it again
//! changes nothing, so pruning and defaults are done once and for all.

use serde_json::{Value, json};

use super::server::Server;

const JSON: &str = "application/json";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PLACE: &str = "/apis/fuzz.example.com/v1/namespaces/default/things";
/// Objects in one input, at most.
const MOST: usize = 4;

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
    let made = server.call("POST", CRDS, JSON, definition.as_bytes());
    if !made.is_success() {
        return;
    }
    for line in lines.take(MOST) {
        object(&server, line);
    }
    // Served, described, and taken away again with all its objects.
    server.call("GET", "/openapi/v3/apis/fuzz.example.com/v1", JSON, b"");
    server.call("GET", PLACE, JSON, b"");
    server.call(
        "DELETE",
        &format!("{CRDS}/things.fuzz.example.com"),
        JSON,
        b"",
    );
}

fn object(server: &Server, body: &[u8]) {
    let strict = format!("{PLACE}?dryRun=All&fieldValidation=Strict");
    server.call("POST", &strict, JSON, body);
    let made = server.call("POST", PLACE, JSON, body);
    if !made.is_success() {
        return;
    }
    let object = made.value();
    let name = object["metadata"]["name"]
        .as_str()
        .expect("an object has a name");
    let path = format!("{PLACE}/{name}");
    let read = server.call("GET", &path, JSON, b"");
    assert_eq!(
        read.value(),
        object,
        "what was answered is not what is kept"
    );
    let body = object.to_string();
    for (method, media_type) in [("PUT", JSON), ("PATCH", "application/merge-patch+json")] {
        // In a patch, null takes away.
        if method == "PATCH" && body.contains("null") {
            continue;
        }
        let again = server.call(method, &path, media_type, body.as_bytes());
        assert!(
            again.is_success(),
            "{method} refuses what POST took: {}\n{body}",
            again.text()
        );
        assert_eq!(again.value(), object, "{method} of the same changes it");
    }
    server.call("PUT", &format!("{path}/status"), JSON, body.as_bytes());
    server.remove(&path);
}
