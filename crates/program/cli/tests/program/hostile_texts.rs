//! Texts of other users in the tables, descriptions, errors and messages of all commands: they can
//! neither control the terminal nor change the direction of other texts.

use serde_json::{Value, json};

use crate::machine::Machine;

const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\u{1b}]8;;javascript:1\u{7}\u{9b}31m\r\u{8}\u{202e}a\u{2066}b\u{2028}c\u{7f}";

fn annotations() -> Value {
    json!({
        "longshore.dev/note": HOSTILE,
        "longshore.dev/owner": HOSTILE,
        "longshore.dev/command": json!(["sh", HOSTILE]).to_string(),
        "longshore.dev/roles": json!([{"name": "worker", "count": 1, "service": false}]).to_string(),
        "longshore.dev/metrics": json!([HOSTILE]).to_string(),
        "longshore.dev/bundle": HOSTILE,
        "longshore.dev/caller": HOSTILE,
        "longshore.dev/submitted": HOSTILE,
        "longshore.dev/outputs": HOSTILE,
        "longshore.dev/cause": HOSTILE,
        "longshore.dev/end": HOSTILE,
        "longshore.dev/webhook": HOSTILE,
        "batch.kubernetes.io/job-completion-index": "0",
    })
}

/// A run, its pod, an event of the pod, and a node, whose texts are hostile.
fn objects() -> Vec<Value> {
    let labels = json!({
        "app.kubernetes.io/managed-by": "longshore", "longshore.dev/run": "evil", "longshore.dev/role": "worker",
    });
    let container = json!({
        "name": "main", "image": "any", "command": ["sh", HOSTILE], "env": [{"name": "A", "value": HOSTILE}],
    });
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "evil-worker", "namespace": "default", "labels": labels, "annotations": annotations()},
        "spec": {
            "suspend": true, "completions": 1, "parallelism": 1, "completionMode": "Indexed",
            "template": {
                "metadata": {"labels": labels, "annotations": annotations()},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "evil-worker-0", "namespace": "default", "labels": labels, "annotations": annotations()},
        "spec": {"nodeName": "elsewhere", "restartPolicy": "Never", "containers": [container]},
    });
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": HOSTILE, "message": HOSTILE,
        "source": {"component": HOSTILE},
        "metadata": {"name": "odd", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "evil-worker-0", "namespace": "default"},
    });
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": HOSTILE},
        "metadata": {"name": "evil", "namespace": "default", "annotations": {"a": HOSTILE}},
    });
    vec![job, pod, event, config]
}

/// JSON whose texts have no characters that YAML refuses.
fn ascii(json: &str) -> String {
    let escaped = json.chars().map(|c| match u32::from(c) {
        0x20..0x7f => c.to_string(),
        code => format!("\\u{code:04x}"),
    });
    escaped.collect()
}

#[test]
fn texts_of_others_do_not_control_the_terminal() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    for object in objects() {
        machine.write("object.json", &ascii(&object.to_string()));
        machine
            .longshore(&["create", "-f", "object.json"])
            .expect(0);
    }
    let hostile_name = format!("{}x", &HOSTILE[..4]);
    let commands: &[&[&str]] = &[
        &["runs"],
        &["runs", "--all-users"],
        &["runs", "--all-users", "--output", "wide"],
        &["runs", "--all-users", "--output", "yaml"],
        &["runs", "--all-users", "--output", "csv"],
        &["why", "evil", "--all-users"],
        &["logs", "evil", "--all-users"],
        &["outputs", "evil", "--all-users"],
        &["sweep", "evil", "--all-users"],
        &["metrics", "evil", "--all-users"],
        &["diff", "evil", "evil", "--all-users"],
        &["note", "evil"],
        &["note", "evil", "--all-users"],
        &["tag", "evil", "--all-users"],
        &["cancel", "evil"],
        &["rm", "evil"],
        &["retry", "evil", "--all-users"],
        &["resume", "evil", "--all-users"],
        &["top", "evil"],
        &["resolve", "evil"],
        &["shell", "evil"],
        &["exec", "pod/evil-worker-0", "--", "true"],
        &["forward", "evil", "80"],
        &["status"],
        &["data", "list"],
        &["get", "jobs", "--output", "wide"],
        &["get", "pods", "--output", "wide"],
        &["get", "events"],
        &["get", "cm", "evil", "--output", "yaml"],
        &["describe", "job", "evil-worker"],
        &["describe", "pod", "evil-worker-0"],
        &["describe", "cm", "evil"],
        &["runs", &hostile_name],
        &["why", &hostile_name],
        &["get", &hostile_name],
        &["get", "pods", "--namespace", &hostile_name],
        &["run", "--name", &hostile_name, "--", "true"],
        &["run", "--context", &hostile_name, "--", "true"],
        &["zenml", "run", &hostile_name],
        &["apply", "-f", &hostile_name],
        &[&hostile_name],
    ];
    for words in commands {
        let answer = machine.longshore(words);
        for text in [&answer.out, &answer.err] {
            // YAML is data, as in a file.
            let is_data = words.contains(&"yaml");
            let turns = |c: char| matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            let acts =
                |c: char| c.is_control() && !matches!(c, '\n' | '\t') || !is_data && turns(c);
            assert!(!text.chars().any(acts), "{words:?}: {text:?}");
        }
    }
    // The texts are escaped, not omitted.
    let described = machine.longshore(&["describe", "cm", "evil"]).expect(0);
    assert!(described.out.contains("^[[2J"), "{}", described.out);
    assert!(described.out.contains("\\u{202e}"), "{}", described.out);
}
