//! Objects in request bodies, as JSON or YAML: a line with the kind (`pods`,
//! `jobs.batch`), then the body. The server returns a created object unchanged on reads.
//! Sending the object again changes nothing, because it already has its defaults.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::server::{self, Server};

const JSON: &str = "application/json";

pub fn check(data: &[u8]) {
    let Some((word, body)) = server::first_line(data) else {
        return;
    };
    server::with(|server| {
        let Some(kind) = server::kind(server, word) else {
            return;
        };
        let collection = server::collection(&kind);
        for validation in ["Strict", "Ignore"] {
            let path = format!("{collection}?dryRun=All&fieldValidation={validation}");
            server.call("POST", &path, JSON, body);
        }
        server.call(
            "POST",
            &format!("{collection}?dryRun=All"),
            "application/yaml",
            body,
        );
        server.call("DELETE", &format!("{collection}/none"), JSON, body);
        // Deleting a namespace requires a controller.
        if word == "namespaces" {
            return;
        }
        let before = server.engine.revision();
        let created = server.call("POST", &collection, JSON, body);
        if created.is_success() {
            check_stored(server, &collection, created.value());
        } else {
            assert_eq!(
                server.engine.revision(),
                before,
                "a rejected write was stored: {}",
                created.text()
            );
        }
    });
}

fn check_stored(server: &Server, collection: &str, created: Value) {
    let name = created["metadata"]["name"]
        .as_str()
        .expect("an object has a name");
    // Names of some kinds may contain characters that are special in a path.
    let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
    let path = format!("{collection}/{name}");
    let read = server.call("GET", &path, JSON, b"");
    assert_eq!(
        read.value(),
        created,
        "the stored object differs from the response"
    );
    let body = created.to_string();
    for (method, media_type) in [("PUT", JSON), ("PATCH", "application/merge-patch+json")] {
        let again = server.call(method, &path, media_type, body.as_bytes());
        assert!(
            again.is_success(),
            "{method} rejects an object that POST accepted: {}\n{body}",
            again.text()
        );
        assert_eq!(
            again.value(),
            created,
            "{method} {media_type} of the same object changes it"
        );
    }
    // A strategic merge may fail or change the object, because list items may have duplicate
    // merge keys or none. The response must still be well-formed.
    let strategic = "application/strategic-merge-patch+json";
    server.call(
        "PATCH",
        &format!("{path}?dryRun=All"),
        strategic,
        body.as_bytes(),
    );
    // A changed label makes the server decode and validate the whole object again.
    let mut other = created.clone();
    other["metadata"]["labels"]["fuzz"] = json!("yes");
    if other["metadata"]["labels"].is_object() {
        let changed = server.call("PUT", &path, JSON, other.to_string().as_bytes());
        assert!(
            changed.is_success(),
            "a label cannot be added: {}\n{body}",
            changed.text()
        );
    }
    server.call("PUT", &format!("{path}/status"), JSON, body.as_bytes());
    table(server, &path);
    server.remove(&path);
}

/// Requests the object as a table, like kubectl.
fn table(server: &Server, path: &str) {
    let request = http::Request::get(path)
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(http_body_util::Full::default())
        .expect("the request is valid");
    let table = server.send(request).value();
    let columns = table["columnDefinitions"].as_array().map(Vec::len);
    let cells = table["rows"][0]["cells"].as_array().map(Vec::len);
    assert_eq!(columns, cells, "{table}");
}
