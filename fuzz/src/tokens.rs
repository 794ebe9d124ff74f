//! `continue` tokens: the input as a token, and as the decoded content of a token. A page
//! continues in order after the position in the token, and the pages end.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::server::Server;

const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";

thread_local! {
    static SERVER: Server = {
        let server = Server::new();
        for name in ["a", "b", "b.c", "c", "d"] {
            let body = format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}");
            let created = server.call("POST", COLLECTION, "application/json", body.as_bytes());
            assert_eq!(created.code, 201, "{}", created.text());
        }
        server
    };
}

pub fn check(data: &[u8]) {
    SERVER.with(|server| {
        for path in [COLLECTION, "/api/v1/configmaps"] {
            pages(server, path, &String::from_utf8_lossy(data));
            pages(server, path, &URL_SAFE_NO_PAD.encode(data));
        }
    });
}

fn pages(server: &Server, collection: &str, token: &str) {
    let mut token = token.to_owned();
    let mut last = String::new();
    for _ in 0..8 {
        let escaped = utf8_percent_encode(&token, NON_ALPHANUMERIC);
        let path = format!("{collection}?limit=2&continue={escaped}");
        let response = server.call("GET", &path, "application/json", b"");
        let value = response.value();
        if !response.is_success() {
            assert!(
                matches!(response.code, 400 | 410 | 504),
                "{token:?}: {value}"
            );
            return;
        }
        for item in value["items"].as_array().into_iter().flatten() {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            assert!(name > last.as_str(), "{token:?}: {name} after {last}");
            name.clone_into(&mut last);
        }
        match &value["metadata"]["continue"] {
            Value::String(next) if !next.is_empty() => next.clone_into(&mut token),
            _ => return,
        }
    }
    panic!("the pages of {token:?} do not end");
}
