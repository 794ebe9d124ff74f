//! Requests that validating policies check.

use serde_json::{Value, json};

use crate::{
    MERGE, binding,
    common::{CONFIG_MAPS, Server},
    config_map, enforce, make, policy, rules, warnings,
};

fn replicas(expression: &str) -> serde_json::Value {
    json!({
        "matchConstraints": rules("apps", "deployments", &["CREATE", "UPDATE"]),
        "validations": [{"expression": expression,
            "messageExpression": "'wants replicas > 1, got ' + string(object.spec.replicas)"}],
    })
}

fn deployment(name: &str, replicas: u32) -> serde_json::Value {
    json!({"metadata": {"name": name}, "spec": {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "a", "image": "i"}]},
        },
    }})
}

#[tokio::test]
async fn a_failed_validation_denies_the_request() {
    let server = Server::new();
    enforce(
        &server,
        "replicas",
        replicas("object.spec.replicas > 1"),
        json!({}),
    )
    .await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    make(&server, path, &deployment("two", 2)).await;
    let answer = server.post(path, &deployment("one", 1)).await;
    let message = "ValidatingAdmissionPolicy 'replicas' with binding 'replicas-binding' denied request: wants replicas > 1, got 1";
    assert_eq!(answer.code, 422);
    assert_eq!(
        answer.json(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("deployments.apps \"one\" is forbidden: {message}"),
            "reason": "Invalid", "code": 422,
            "details": {"group": "apps", "kind": "deployments", "name": "one",
                "causes": [{"message": message}]},
        })
    );
    // A patch is checked like an update.
    let patch = json!({"spec": {"replicas": 1}}).to_string();
    let answer = server.patch(&format!("{path}/two"), MERGE, &patch).await;
    assert_eq!(answer.code, 422, "{}", answer.text());
    // Replica sets are not matched.
    assert_eq!(
        server.get(&format!("{path}/two")).await.json()["spec"]["replicas"],
        2
    );
}

#[tokio::test]
async fn dry_runs_are_checked() {
    let server = Server::new();
    let validations = json!({"validations": [{"expression": "has(object.data.a) && !request.dryRun", "reason": "Forbidden"}]});
    enforce(&server, "dry", validations, json!({})).await;
    let answer = server
        .post(
            &format!("{CONFIG_MAPS}?dryRun=All"),
            &config_map("a", json!({"a": "b"})),
        )
        .await;
    assert_eq!(
        (answer.code, &*answer.json()["reason"].to_string()),
        (403, "\"Forbidden\"")
    );
    make(&server, CONFIG_MAPS, &config_map("a", json!({"a": "b"}))).await;
}

#[tokio::test]
async fn reasons_decide_the_code_and_messages_fall_back() {
    let server = Server::new();
    for (index, (validation, code, message)) in [
        (json!({"expression": " false "}), 422, "failed expression: false"),
        (json!({"expression": "false", "message": " no "}), 422, "no"),
        (json!({"expression": "false", "message": "no", "messageExpression": "string(object.data.missing)"}), 422, "no"),
        (json!({"expression": "false", "messageExpression": "'a\\nb'"}), 422, "failed expression: false"),
        (json!({"expression": "false", "message": "no", "messageExpression": "'  yes '"}), 422, "yes"),
        (json!({"expression": "false", "reason": "RequestEntityTooLarge"}), 413, "failed expression: false"),
        (json!({"expression": "object.data.missing == ''"}), 422, "expression 'object.data.missing == ''' resulted in error: no such key: missing"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("p{index}");
        enforce(&server, &name, json!({"validations": [validation]}), json!({})).await;
        let answer = server.post(CONFIG_MAPS, &config_map("a", json!({"a": "b"}))).await;
        let expected = format!("configmaps \"a\" is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}-binding' denied request: {message}");
        assert_eq!((answer.code, answer.message()), (code, expected));
        let bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
        let gone = server.call("DELETE", &format!("{bindings}/{name}-binding"), &[], "").await;
        assert_eq!(gone.code, 200);
    }
    // Without a binding, a policy has no effect.
    make(&server, CONFIG_MAPS, &config_map("a", json!({}))).await;
}

#[tokio::test]
async fn warnings_and_audits_let_requests_pass() {
    let server = Server::new();
    let spec = || json!({"validations": [{"expression": "object.data.a == 'b'", "message": "a must be b"}]});
    enforce(
        &server,
        "warn",
        spec(),
        json!({"validationActions": ["Warn", "Audit"]}),
    )
    .await;
    enforce(
        &server,
        "audit",
        spec(),
        json!({"validationActions": ["Audit"]}),
    )
    .await;
    let answer = server
        .post(CONFIG_MAPS, &config_map("a", json!({"a": "c"})))
        .await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    assert_eq!(
        warnings(&answer),
        [
            "299 - \"Validation failed for ValidatingAdmissionPolicy 'warn' with binding 'warn-binding': a must be b\""
        ]
    );
}

#[tokio::test]
async fn the_failure_policy_decides_about_errors() {
    let server = Server::new();
    let spec = json!({"failurePolicy": "Ignore", "validations": [
        {"expression": "object.data.missing == ''"}, {"expression": "object.data.a == 'b'"},
    ]});
    enforce(&server, "ignore", spec, json!({})).await;
    make(&server, CONFIG_MAPS, &config_map("a", json!({"a": "b"}))).await;
    let answer = server
        .post(CONFIG_MAPS, &config_map("b", json!({"a": "c"})))
        .await;
    assert_eq!(answer.code, 422);
    assert!(
        answer
            .message()
            .ends_with("failed expression: object.data.a == 'b'"),
        "{}",
        answer.message()
    );
}

#[tokio::test]
async fn deletes_and_connections_are_checked() {
    let server = Server::new();
    let spec = json!({
        "matchConstraints": rules("", "configmaps", &["DELETE"]),
        "validations": [{"expression": "object == null && oldObject.data.keep != 'yes'", "message": "kept"}],
    });
    enforce(&server, "keep", spec, json!({})).await;
    make(
        &server,
        CONFIG_MAPS,
        &config_map("a", json!({"keep": "yes"})),
    )
    .await;
    make(
        &server,
        CONFIG_MAPS,
        &config_map("b", json!({"keep": "no"})),
    )
    .await;
    let delete = |name: &str| format!("{CONFIG_MAPS}/{name}");
    let answer = server.call("DELETE", &delete("a"), &[], "").await;
    assert_eq!(answer.code, 422);
    assert_eq!(
        answer.message(),
        "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'keep-binding' denied request: kept"
    );
    assert_eq!(server.call("DELETE", &delete("b"), &[], "").await.code, 200);
    let spec = json!({
        "matchConstraints": rules("", "pods/exec", &["CONNECT"]),
        "validations": [{"expression": "object.command[0] != 'rm'", "message": "no rm"}],
    });
    enforce(&server, "exec", spec, json!({})).await;
    server.pod("p", &["c"]).await;
    let exec = "/api/v1/namespaces/default/pods/p/exec?command=rm&stdout=true";
    let answer = server.get(exec).await;
    assert_eq!(answer.code, 422, "{}", answer.text());
}

#[tokio::test]
async fn policies_cannot_prevent_changes_of_policies() {
    let server = Server::new();
    let everything = json!({"matchConstraints": {"resourceRules": [{
        "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"],
    }]}, "validations": [{"expression": "false"}]});
    enforce(&server, "all", everything, json!({})).await;
    let answer = server.post(CONFIG_MAPS, &config_map("a", json!({}))).await;
    assert_eq!(answer.code, 422);
    let group = "/apis/admissionregistration.k8s.io/v1";
    let webhooks = format!("{group}/validatingwebhookconfigurations");
    let answer = server
        .post(&webhooks, &json!({"metadata": {"name": "a"}}))
        .await;
    assert_eq!(answer.code, 422, "{}", answer.text());
    let other = policy("other", json!({"validations": [{"expression": "true"}]}));
    make(
        &server,
        &format!("{group}/validatingadmissionpolicies"),
        &other,
    )
    .await;
    make(
        &server,
        &format!("{group}/validatingadmissionpolicybindings"),
        &binding("other", json!({})),
    )
    .await;
    let path = format!("{group}/validatingadmissionpolicybindings/all-binding");
    assert_eq!(server.call("DELETE", &path, &[], "").await.code, 200);
    make(&server, CONFIG_MAPS, &config_map("a", json!({}))).await;
}

#[tokio::test]
async fn updates_of_a_policy_are_in_effect_at_once() {
    let server = Server::new();
    let spec = json!({"validations": [{"expression": "object.metadata.name == 'a'"}]});
    enforce(&server, "name", spec, json!({})).await;
    make(&server, CONFIG_MAPS, &config_map("a", json!({}))).await;
    assert_eq!(
        server
            .post(CONFIG_MAPS, &config_map("b", json!({})))
            .await
            .code,
        422
    );
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/name";
    let patch = json!({"spec": {"validations": [{"expression": "object.metadata.name == 'b'"}]}});
    let answer = server.patch(path, MERGE, &patch.to_string()).await;
    assert_eq!(
        (
            answer.code,
            answer.json()["metadata"]["generation"].as_i64()
        ),
        (200, Some(2))
    );
    make(&server, CONFIG_MAPS, &config_map("b", json!({}))).await;
}

#[tokio::test]
async fn audit_annotations_are_strings_or_null() {
    let server = Server::new();
    let spec = json!({"auditAnnotations": [
        {"key": "a", "valueExpression": "'name: ' + object.metadata.name"},
        {"key": "b", "valueExpression": "has(object.data.b) ? string(object.data.b) : string(object.data.missing)"},
    ]});
    enforce(
        &server,
        "notes",
        spec,
        json!({"validationActions": ["Audit"]}),
    )
    .await;
    make(&server, CONFIG_MAPS, &config_map("a", json!({"b": "c"}))).await;
    let answer = server
        .post(CONFIG_MAPS, &config_map("b", json!({"c": "d"})))
        .await;
    assert_eq!(answer.code, 422);
    assert!(
        answer
            .message()
            .ends_with("resulted in error: no such key: missing"),
        "{}",
        answer.message()
    );
}

#[tokio::test]
async fn failures_and_annotations_are_recorded_in_the_audit_log() {
    let server = Server::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, verbs: [create], resources: [{resources: [configmaps]}]}]"
        .parse()
        .unwrap();
    let log = longshore_apiserver::AuditLog::start(policy, file.reopen().unwrap()).unwrap();
    server.api.record_to(log.clone());
    let spec = json!({
        "validations": [{"expression": "true"}, {"expression": "false", "message": "never"}],
        "auditAnnotations": [
            {"key": "owner", "valueExpression": "'name: ' + object.metadata.name"},
            {"key": "nothing", "valueExpression": "null"},
        ],
    });
    let bound = json!({"validationActions": ["Warn", "Audit"]});
    enforce(&server, "notes", spec, bound).await;
    make(&server, CONFIG_MAPS, &config_map("a", json!({}))).await;
    log.flush().await;
    let text = std::fs::read_to_string(file.path()).unwrap();
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let annotations = &events.last().unwrap()["annotations"];
    assert_eq!(annotations["notes/owner"], "name: a", "{annotations}");
    assert_eq!(annotations["notes/nothing"], Value::Null, "{annotations}");
    let failures = &annotations["validation.policy.admission.k8s.io/validation_failure"];
    let failures: Value = serde_json::from_str(failures.as_str().unwrap()).unwrap();
    let expected = json!([{
        "message": "never", "policy": "notes", "binding": "notes-binding", "expressionIndex": 1,
        "validationActions": ["Warn", "Audit"],
    }]);
    assert_eq!(failures, expected);
}
