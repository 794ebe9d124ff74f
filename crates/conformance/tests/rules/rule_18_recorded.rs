//! Rule 18, as recorded: a sequence of writes by several managers, and what a
//! real kube-apiserver 1.20 made of each. Every server must answer the same:
//! code, conflicts, the parts of the object that a step looks at, and who
//! manages which fields after it.
//!
//! `crates/conformance/recorded/apply.json` has a step a line. Where newer ones answer otherwise, the
//! step says so under `newer`: who has a bare map had all that is in it until 1.22.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

/// The entries of `managedFields`, without times.
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

/// A step, as this server should answer it.
fn of_this(test: &ApiTest, step: &Value) -> Value {
    let mut step = step.clone();
    let newer = step["newer"].as_object().cloned().unwrap_or_default();
    if !newer.is_empty() && test.newer("a bare map is nothing of what is in it since 1.22") {
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
        let step = &of_this(&test, step);
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
        let call = match word("method") {
            "apply" => test.call("PATCH", &path).patch(PatchType::Apply, body),
            "json" => test.call("PATCH", &path).patch(PatchType::Json, body),
            "merge" => test.call("PATCH", &path).patch(PatchType::Merge, body),
            "strategic" => test.call("PATCH", &path).patch(PatchType::Strategic, body),
            "DELETE" => test.call("DELETE", &path),
            method => test.call(method, &path).json(body),
        };
        let answer = call.send().await;
        let code = u16::try_from(step["code"].as_u64().unwrap()).unwrap();
        let given = answer.is(code);
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
