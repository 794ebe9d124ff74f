//! Protobuf bodies. A decoded body is a JSON object that names its kind, and the server
//! treats the body like the same object in JSON.

use serde_json::Value;

use super::server;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

pub fn check(data: &[u8]) {
    let decoded = longshore_schema::protobuf::decode(data);
    let word = decoded
        .as_ref()
        .ok()
        .and_then(|value| value["kind"].as_str())
        .unwrap_or("Pod");
    if let Ok(value) = &decoded {
        assert!(value.is_object(), "{value}");
        assert!(
            value["kind"].is_string() && value["apiVersion"].is_string(),
            "{value}"
        );
    }
    server::with(|server| {
        let kinds = server.engine.kinds();
        let Some(kind) = kinds.iter().find(|info| info.gvk.kind == word) else {
            return;
        };
        let path = format!("{}?dryRun=All", server::collection(kind));
        let ours = server.call("POST", &path, PROTOBUF, data);
        server.call(
            "DELETE",
            &format!("{}/none?dryRun=All", server::collection(kind)),
            PROTOBUF,
            data,
        );
        if let Ok(value) = &decoded {
            let same = server.call(
                "POST",
                &path,
                "application/json",
                value.to_string().as_bytes(),
            );
            assert_eq!(
                ours.code,
                same.code,
                "{}\n{}\n{value}",
                ours.text(),
                same.text()
            );
            if ours.is_success() {
                assert_eq!(stable(ours.value()), stable(same.value()));
            }
        }
    });
}

/// The object without the values that differ for each creation.
fn stable(mut object: Value) -> Value {
    for path in [
        "/metadata/uid",
        "/metadata/name",
        "/spec/clusterIP",
        "/spec/clusterIPs",
    ] {
        if let Some(value) = object.pointer_mut(path) {
            *value = Value::Null;
        }
    }
    // Labels and selectors may contain the UID.
    let object = object.to_string();
    let mut text = String::with_capacity(object.len());
    let mut rest = object.as_str();
    while let Some(at) = rest.find("00000000-0000-4000-8000-") {
        text.push_str(&rest[..at]);
        rest = rest.get(at + 36..).unwrap_or_default();
    }
    text.push_str(rest);
    text.into()
}
