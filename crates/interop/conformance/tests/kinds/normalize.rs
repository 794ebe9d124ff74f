//! Normalizes responses and compares them.

use longshore_conformance::Response;
use serde_json::{Map, Value, json};

/// A normalized response: the code, and the object or the error.
pub(crate) fn response(response: &Response, namespace: &str, place: &str) -> Value {
    let mut body: Value = serde_json::from_slice(&response.bytes).unwrap_or_default();
    if body["kind"] == "Status" {
        return json!({"code": response.code, "refused": error_of(&body, namespace)});
    }
    let uid = body["metadata"]["uid"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if let Some(metadata) = body["metadata"].as_object_mut() {
        for field in [
            "uid",
            "creationTimestamp",
            "resourceVersion",
            "managedFields",
            "namespace",
        ] {
            metadata.remove(field);
        }
    }
    body["apiVersion"] = place.split(' ').next().into();
    let mut text = body.to_string().replace(namespace, "$NS");
    if !uid.is_empty() {
        text = text.replace(&uid, "$UID");
    }
    let mut body = serde_json::from_str(&text).unwrap();
    mask_assigned(&mut body);
    json!({"code": response.code, "object": body})
}

/// Removes the volume of the service account and its mounts, which the same plugin adds.
fn remove_account_volume(fields: &mut Map<String, Value>) {
    for list in ["volumes", "volumeMounts"] {
        let Some(Value::Array(items)) = fields.get_mut(list) else {
            continue;
        };
        let is_other = |item: &Value| {
            let name = item["name"].as_str().unwrap_or_default();
            !name.starts_with("kube-api-access-")
        };
        items.retain(is_other);
        if items.is_empty() {
            fields.remove(list);
        }
    }
}

/// Masks assigned addresses and ports and timestamps. Removes the null timestamp that
/// older servers write into templates.
fn mask_assigned(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("creationTimestamp") == Some(&Value::Null) {
                fields.remove("creationTimestamp");
            }
            // The servers have different administrators.
            if fields.contains_key("signerName") {
                for field in ["username", "uid", "groups", "extra"] {
                    fields.remove(field);
                }
            }
            // This field is set by an admission plugin that requires the account to exist.
            for account in ["serviceAccount", "serviceAccountName"] {
                if fields.get(account).is_some_and(|name| name == "default") {
                    fields.remove(account);
                }
            }
            remove_account_volume(fields);
            for (name, inner) in fields.iter_mut() {
                let mask = match name.as_str() {
                    "clusterIP" if inner != "None" && inner != "" => Some(json!("$IP")),
                    "clusterIPs" if *inner != json!(["None"]) => Some(json!(["$IP"])),
                    "nodePort" | "healthCheckNodePort" if *inner != 0 => Some(json!("$PORT")),
                    "lastPhaseTransitionTime"
                    | "lastTransitionTime"
                    | "lastUpdateTime"
                    | "deletionTimestamp"
                        if !inner.is_null() =>
                    {
                        Some(json!("$TIME"))
                    }
                    _ => None,
                };
                match mask {
                    Some(mask) => *inner = mask,
                    None => mask_assigned(inner),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask_assigned),
        _ => {}
    }
}

fn error_of(status: &Value, namespace: &str) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().replace(namespace, "$NS");
    let causes = status["details"]["causes"].as_array();
    let mut causes: Vec<String> = causes
        .into_iter()
        .flatten()
        .map(|cause| {
            let message = text(&cause["message"]);
            let line = message.lines().next().unwrap_or_default();
            let (field, reason) = (text(&cause["field"]), text(&cause["reason"]));
            format!("{field}: {reason}: {}", mask(&mask_uids(line)))
        })
        .collect();
    causes.sort();
    causes.dedup();
    if causes.is_empty() {
        causes.push(text(&status["message"]));
    }
    json!({"reason": status["reason"], "causes": causes})
}

/// Replaces UIDs.
fn mask_uids(text: &str) -> String {
    let is_uid = |word: &str| {
        let dash = |at: usize, b: u8| (b == b'-') == matches!(at, 8 | 13 | 18 | 23);
        word.len() == 36
            && word
                .bytes()
                .enumerate()
                .all(|(at, b)| dash(at, b) && (b == b'-' || b.is_ascii_hexdigit()))
    };
    let words = text.split('"');
    let shown = words.map(|word| if is_uid(word) { "$UID" } else { word });
    shown.collect::<Vec<_>>().join("\"")
}

/// The placeholder for the contents of a Secret.
const REDACTED: &str = "\"<secret contents redacted>\"";

/// Masks structures, which the server shows with the fields of its internal types.
fn mask(message: &str) -> String {
    for word in [
        "Invalid value: ",
        "Unsupported value: ",
        "Duplicate value: ",
    ] {
        let Some(rest) = message.strip_prefix(word) else {
            continue;
        };
        // The message of a parser is specific to the parser.
        if rest.starts_with(REDACTED) {
            return format!("{word}{REDACTED}");
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        if values.next().and_then(Result::ok).is_some_and(is_structure) {
            return format!("{word}$VALUE{}", &rest[values.byte_offset()..]);
        }
    }
    message.to_owned()
}

fn is_structure(value: Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(items) => items.into_iter().any(is_structure),
        _ => false,
    }
}

/// The differences between two values, one line per path.
pub(crate) fn difference(expected: &Value, actual: &Value) -> String {
    let mut lines = Vec::new();
    compare("", expected, actual, &mut lines);
    lines.join("")
}

fn compare(path: &str, expected: &Value, actual: &Value, lines: &mut Vec<String>) {
    if expected == actual {
        return;
    }
    match (expected, actual) {
        (Value::Object(a), Value::Object(b)) => {
            let both: Map<String, Value> = a.clone().into_iter().chain(b.clone()).collect();
            for key in both.keys() {
                let nothing = json!("(absent)");
                let (a, b) = (
                    a.get(key).unwrap_or(&nothing),
                    b.get(key).unwrap_or(&nothing),
                );
                compare(&format!("{path}.{key}"), a, b, lines);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() && !path.ends_with("causes") => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{index}]"), a, b, lines);
            }
        }
        _ => lines.push(format!(
            "\n    {path}\n      expected {expected}\n      answered {actual}"
        )),
    }
}
