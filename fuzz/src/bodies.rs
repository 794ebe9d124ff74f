//! Bodies of objects, as JSON or YAML: a line with the kind (`pods`,
//! `jobs.batch`), then the body. What is taken reads back as it was answered;
//! sending it again changes nothing, so defaults are filled in once and for all.

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
        let place = server::collection(&kind);
        for validation in ["Strict", "Ignore"] {
            let path = format!("{place}?dryRun=All&fieldValidation={validation}");
            server.call("POST", &path, JSON, body);
        }
        server.call(
            "POST",
            &format!("{place}?dryRun=All"),
            "application/yaml",
            body,
        );
        server.call("DELETE", &format!("{place}/none"), JSON, body);
        // A namespace needs others to end.
        if word == "namespaces" {
            return;
        }
        let before = server.engine.revision();
        let made = server.call("POST", &place, JSON, body);
        if made.is_success() {
            kept(server, &place, made.value());
        } else {
            assert_eq!(
                server.engine.revision(),
                before,
                "a refused write was kept: {}",
                made.text()
            );
        }
    });
}

fn kept(server: &Server, place: &str, made: Value) {
    let name = made["metadata"]["name"]
        .as_str()
        .expect("an object has a name");
    // Names of some kinds may hold what means something in a path.
    let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
    let path = format!("{place}/{name}");
    let read = server.call("GET", &path, JSON, b"");
    assert_eq!(read.value(), made, "what was answered is not what is kept");
    let body = made.to_string();
    for (method, media_type) in [("PUT", JSON), ("PATCH", "application/merge-patch+json")] {
        let again = server.call(method, &path, media_type, body.as_bytes());
        assert!(
            again.is_success(),
            "{method} refuses what POST took: {}\n{body}",
            again.text()
        );
        assert_eq!(
            again.value(),
            made,
            "{method} {media_type} of the same changes it"
        );
    }
    // Lists may hold one merge key twice, or lack it: then it says otherwise.
    let strategic = "application/strategic-merge-patch+json";
    server.call(
        "PATCH",
        &format!("{path}?dryRun=All"),
        strategic,
        body.as_bytes(),
    );
    // Another version, other labels: all is decoded and validated anew.
    let mut other = made.clone();
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

/// The object's row, as kubectl asks for it.
fn table(server: &Server, path: &str) {
    let request = http::Request::get(path)
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(http_body_util::Full::default())
        .expect("a request made here is one");
    let table = server.send(request).value();
    let columns = table["columnDefinitions"].as_array().map(Vec::len);
    let cells = table["rows"][0]["cells"].as_array().map(Vec::len);
    assert_eq!(columns, cells, "{table}");
}
