//! Validation of Secrets and ConfigMaps.

use longshore_model::CauseList;
use serde_json::Value;

use crate::{
    cause::Cause,
    json::{self, Object},
};

/// Maximum size of the decoded data of a Secret or ConfigMap in bytes.
const MAX_DATA_BYTES: usize = 1 << 20;
const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

pub(super) fn key(path: &str, key: &str, causes: &mut CauseList) {
    let path = format!("{path}[{key}]");
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(plain) {
        causes.push(Cause::invalid(&path, key, KEY));
    } else if key.len() > 253 {
        causes.push(Cause::invalid(
            &path,
            key,
            "must be no more than 253 characters",
        ));
    } else if key == "." || key == ".." {
        causes.push(Cause::invalid(&path, key, &format!("must not be '{key}'")));
    } else if key.starts_with("..") {
        causes.push(Cause::invalid(&path, key, "must not start with '..'"));
    }
}

fn entries<'a>(object: &'a Object, field: &str) -> impl Iterator<Item = (&'a String, &'a str)> {
    object
        .get(field)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| (key, value.as_str().unwrap_or_default()))
}

/// The decoded length of a base64 text.
fn decoded(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}

pub(crate) fn secret(secret: &Object, causes: &mut CauseList) {
    let mut size = 0;
    for (name, value) in entries(secret, "data") {
        key("data", name, causes);
        size += decoded(value);
    }
    if size > MAX_DATA_BYTES {
        causes.push(Cause::too_long("data", MAX_DATA_BYTES));
    }
    let data = |name: &str| entries(secret, "data").find(|(key, _)| *key == name);
    let mut require = |paths: &[&str]| {
        for path in paths {
            causes.push(Cause::required(path, ""));
        }
    };
    match json::text(secret, "type") {
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"] {
                if data(key).is_none() {
                    require(&[&format!("data[{key}]")]);
                }
            }
        }
        "kubernetes.io/ssh-auth"
            if data("ssh-privatekey").is_none_or(|(_, key)| key.is_empty()) =>
        {
            require(&["data[ssh-privatekey]"]);
        }
        "kubernetes.io/basic-auth" if data("username").or(data("password")).is_none() => {
            require(&["data[username]", "data[password]"]);
        }
        "kubernetes.io/service-account-token" => {
            const ACCOUNT: &str = "kubernetes.io/service-account.name";
            let annotations = json::at(secret, "metadata.annotations");
            if annotations.and_then(|all| all.get(ACCOUNT)).is_none() {
                require(&[&format!("metadata.annotations[{ACCOUNT}]")]);
            }
        }
        kind @ ("kubernetes.io/dockerconfigjson" | "kubernetes.io/dockercfg") => {
            let key = if kind.ends_with("json") {
                ".dockerconfigjson"
            } else {
                ".dockercfg"
            };
            let path = format!("data[{key}]");
            match data(key) {
                None => require(&[&path]),
                Some((_, text)) if !is_json(text) => {
                    let hidden = "<secret contents redacted>";
                    causes.push(Cause::invalid(&path, hidden, "must be JSON"));
                }
                Some(_) => {}
            }
        }
        _ => {}
    }
}

/// Returns true if a base64 text contains a JSON object.
fn is_json(text: &str) -> bool {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let bytes = STANDARD.decode(text).unwrap_or_default();
    serde_json::from_slice::<serde_json::Map<String, Value>>(&bytes).is_ok()
}

pub(crate) fn config_map(map: &Object, causes: &mut CauseList) {
    let mut size = 0;
    for (name, value) in entries(map, "data") {
        key("data", name, causes);
        size += value.len();
        if entries(map, "binaryData").any(|(other, _)| other == name) {
            let detail = "duplicate of key present in binaryData";
            causes.push(Cause::invalid(
                &format!("data[{name}]"),
                name.as_str(),
                detail,
            ));
        }
    }
    for (name, value) in entries(map, "binaryData") {
        key("binaryData", name, causes);
        size += decoded(value);
    }
    if size > MAX_DATA_BYTES {
        // Kubernetes reports this error without a field.
        causes.push(Cause::too_long("[]", MAX_DATA_BYTES));
    }
}

fn immutable(before: &Object, after: &Object, fields: &[&str], causes: &mut CauseList) {
    const FIXED: &str = "field is immutable when `immutable` is set";
    if before.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    if after.get("immutable") != Some(&Value::Bool(true)) {
        causes.push(Cause::forbidden("immutable", FIXED));
    }
    for field in fields {
        if before.get(*field) != after.get(*field) {
            causes.push(Cause::forbidden(field, FIXED));
        }
    }
}

pub(crate) fn secret_change(before: &Object, after: &Object, causes: &mut CauseList) {
    if before.get("type") != after.get("type") {
        causes.push(Cause::immutable("type", after.get("type")));
    }
    immutable(before, after, &["data"], causes);
}

pub(crate) fn config_map_change(before: &Object, after: &Object, causes: &mut CauseList) {
    immutable(before, after, &["data", "binaryData"], causes);
}
