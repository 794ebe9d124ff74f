//! Rule 18, recorded: a sequence of writes by several managers, and the results of a real
//! kube-apiserver 1.20. Every server must return the same: the status code, conflicts,
//! the selected parts of the object, and the managed fields.
//!
//! `crates/interop/conformance/recorded/apply.json` has one step per line. Where newer servers differ,
//! the field `newer` contains their results: until 1.22, owning a map included its contents.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

/// The entries of `managedFields` without times.
fn managers(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array();
    let mut entries: Vec<_> = entries
        .into_iter()
        .flatten()
        .map(|entry| {
            let word = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            (word("operation"), word("manager"), &entry["fieldsV1"])
        })
        .collect();
    entries.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    entries
        .into_iter()
        .map(|(operation, manager, fields)| json!([manager, operation, fields]))
        .collect()
}

/// Field and message of each cause, in order.
fn causes(status: &Value) -> Value {
    let causes = status["details"]["causes"].as_array();
    let mut causes: Vec<_> = causes
        .into_iter()
        .flatten()
        .map(|cause| (cause["field"].to_string(), cause))
        .map(|(field, cause)| (field, cause["message"].to_string(), cause))
        .collect();
    causes.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    causes
        .into_iter()
        .map(|(.., cause)| json!([cause["field"], cause["message"]]))
        .collect()
}

/// A step with the results expected of this server.
fn expected_step(test: &ApiTest, step: &Value) -> Value {
    let mut step = step.clone();
    let newer = step["newer"].as_object().cloned().unwrap_or_default();
    if !newer.is_empty() && test.is_newer("since 1.22, owning a map does not include its contents")
    {
        for (key, value) in newer {
            step[key] = value;
        }
    }
    step
}

#[tokio::test]
async fn rule_18_a_recorded_sequence_of_applies_and_other_writes() {
    let test = ApiTest::start().await;
    let steps: Vec<Value> =
        serde_json::from_str(include_str!("../../recorded/apply.json")).unwrap();
    for step in &steps {
        let step = &expected_step(&test, step);
        let word = |name: &str| step[name].as_str().unwrap_or_default();
        let name = word("name");
        let mut path = word("path").replace("{ns}", test.namespace());
        if !word("manager").is_empty() {
            path = format!("{path}?fieldManager={}", word("manager"));
        }
        if step["force"] == true {
            path.push_str("&force=true");
        }
        let body = &step["body"];
        let request = match word("method") {
            "apply" => test.request("PATCH", &path).patch(PatchType::Apply, body),
            "json" => test.request("PATCH", &path).patch(PatchType::Json, body),
            "merge" => test.request("PATCH", &path).patch(PatchType::Merge, body),
            "strategic" => test
                .request("PATCH", &path)
                .patch(PatchType::Strategic, body),
            "DELETE" => test.request("DELETE", &path),
            method => test.request(method, &path).json(body),
        };
        let response = request.send().await;
        let code = u16::try_from(step["code"].as_u64().unwrap()).unwrap();
        let given = response.is(code);
        if given["kind"] == "Status" {
            assert_eq!(
                given["reason"].as_str().unwrap_or_default(),
                word("reason"),
                "{name}"
            );
            let recorded = step.get("causes").cloned().unwrap_or_else(|| json!([]));
            assert_eq!(causes(&given), recorded, "{name}");
            if let Some(message) = step.get("message") {
                assert_eq!(&given["message"], message, "{name}");
            }
            continue;
        }
        assert_eq!(managers(&given), step["managers"], "{name}");
        for pointer in step["see"].as_array().into_iter().flatten() {
            let pointer = pointer.as_str().unwrap();
            assert_eq!(
                given.pointer(pointer),
                step["seen"].get(pointer),
                "{name}: {pointer}"
            );
        }
    }
}
