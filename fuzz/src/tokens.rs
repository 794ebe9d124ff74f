//! `continue` tokens: the input as it is, and as what a token holds. A page
//! goes on behind the place the token names, in order, and ends.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::server::Server;

const PLACE: &str = "/api/v1/namespaces/default/configmaps";

thread_local! {
    static SERVER: Server = {
        let server = Server::new();
        for name in ["a", "b", "b.c", "c", "d"] {
            let body = format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}");
            let made = server.call("POST", PLACE, "application/json", body.as_bytes());
            assert_eq!(made.code, 201, "{}", made.text());
        }
        server
    };
}

pub fn check(data: &[u8]) {
    SERVER.with(|server| {
        for place in [PLACE, "/api/v1/configmaps"] {
            pages(server, place, &String::from_utf8_lossy(data));
            pages(server, place, &URL_SAFE_NO_PAD.encode(data));
        }
    });
}

fn pages(server: &Server, place: &str, token: &str) {
    let mut token = token.to_owned();
    let mut last = String::new();
    for _ in 0..8 {
        let escaped = utf8_percent_encode(&token, NON_ALPHANUMERIC);
        let path = format!("{place}?limit=2&continue={escaped}");
        let answer = server.call("GET", &path, "application/json", b"");
        let value = answer.value();
        if !answer.is_success() {
            assert!(matches!(answer.code, 400 | 410 | 504), "{token:?}: {value}");
            return;
        }
        for item in value["items"].as_array().into_iter().flatten() {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            assert!(name > last.as_str(), "{token:?}: {name} behind {last}");
            name.clone_into(&mut last);
        }
        match &value["metadata"]["continue"] {
            Value::String(next) if !next.is_empty() => next.clone_into(&mut token),
            _ => return,
        }
    }
    panic!("the pages of {token:?} have no end");
}
