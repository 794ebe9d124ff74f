//! The requests that webhooks receive, the order of the calls, and the effects of the answers that
//! clients see.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use longshore_apiserver::limits;
use serde_json::{Value, json};

use crate::{
    common::{CONFIG_MAPS, Server},
    config_map, configure,
    hook::{Hook, patch, review},
    warnings, with,
};

#[tokio::test]
async fn reviews_describe_the_request() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = hook.webhook("/check", &["CREATE"], &["configmaps"]);
    configure(&server, "Validating", "a", &[webhook]).await;
    let path = format!("{CONFIG_MAPS}?fieldManager=me");
    let made = server.post(&path, &config_map("a")).await;
    assert_eq!(made.code, 201, "{}", made.text());
    let calls = hook.calls();
    assert_eq!(calls[0].path, "/check?timeout=10s");
    let mut request = calls[0].request.clone();
    assert_eq!(request["uid"].as_str().unwrap().len(), 36);
    request["uid"] = "u".into();
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    let mut object = made.json();
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion");
    assert_eq!(
        request,
        json!({
            "uid": "u", "kind": kind, "resource": resource, "requestKind": kind,
            "requestResource": resource, "name": "a", "namespace": "default",
            "operation": "CREATE",
            "userInfo": {
                "username": "longshore-admin",
                "groups": ["system:masters", "system:authenticated"],
            },
            "object": object, "oldObject": null, "dryRun": false,
            "options": {
                "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me",
            },
        })
    );
}

#[tokio::test]
async fn webhooks_are_called_by_name_of_their_configuration_and_position() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = |path: &str| hook.webhook(path, &["CREATE"], &["configmaps"]);
    configure(&server, "Mutating", "b", &[webhook("/b1"), webhook("/b2")]).await;
    configure(&server, "Validating", "a", &[webhook("/v")]).await;
    configure(&server, "Mutating", "a", &[webhook("/a2"), webhook("/a1")]).await;
    server.config_map("x").await;
    assert_eq!(hook.paths(), ["/a2", "/a1", "/b1", "/b2", "/v"]);
}

#[tokio::test]
async fn webhooks_are_called_again_after_later_changes_if_needed() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = |path: &str, policy: &str| {
        let webhook = hook.webhook(path, &["CREATE"], &["configmaps"]);
        with(webhook, json!({"reinvocationPolicy": policy}))
    };
    let webhooks = [
        webhook("/first", "IfNeeded"),
        webhook("/never", "Never"),
        webhook("/change", "IfNeeded"),
        webhook("/last", "IfNeeded"),
    ];
    configure(&server, "Mutating", "a", &webhooks).await;
    server.config_map("unchanged").await;
    assert_eq!(hook.paths(), ["/first", "/never", "/change", "/last"]);
    hook.clear();
    hook.on("/change", |_| {
        patch(&json!([{"op": "add", "path": "/data/added", "value": "1"}]))
    });
    server.config_map("changed").await;
    assert_eq!(
        hook.paths(),
        ["/first", "/never", "/change", "/last", "/first"]
    );
    let calls = hook.calls();
    assert_eq!(calls[0].request["object"]["data"]["added"], Value::Null);
    assert_eq!(calls[4].request["object"]["data"]["added"], "1");
}

#[tokio::test]
async fn refusals_carry_the_status_and_warnings_of_the_webhook() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = hook.webhook("/check", &["*"], &["configmaps"]);
    configure(&server, "Validating", "a", &[webhook]).await;
    hook.on("/check", |_| {
        json!({
            "allowed": false, "warnings": ["be careful"],
            "status": {"code": 403, "reason": "Forbidden", "message": "not today"},
        })
    });
    let refused = server.post(CONFIG_MAPS, &config_map("a")).await;
    let message = r#"admission webhook "check.example.com" denied the request: not today"#;
    assert_eq!((refused.code, &*refused.message()), (403, message));
    assert_eq!(refused.json()["reason"], "Forbidden");
    assert_eq!(warnings(&refused), [r#"299 - "be careful""#]);
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await.code, 404);
    hook.on(
        "/check",
        |_| json!({"allowed": true, "warnings": ["w", "w", ""]}),
    );
    let made = server.post(CONFIG_MAPS, &config_map("a")).await;
    assert_eq!((made.code, warnings(&made)), (201, vec![r#"299 - "w""#]));
    hook.on("/check", |_| json!({"allowed": false}));
    let refused = server.post(CONFIG_MAPS, &config_map("b")).await;
    let message = r#"admission webhook "check.example.com" denied the request without explanation"#;
    assert_eq!((refused.code, &*refused.message()), (400, message));
}

#[tokio::test]
async fn dry_runs_are_reviewed_and_store_nothing() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let mutating = hook.webhook("/mutate", &["*"], &["configmaps"]);
    let validating = hook.webhook("/check", &["*"], &["configmaps"]);
    configure(&server, "Mutating", "a", &[mutating]).await;
    configure(&server, "Validating", "a", &[validating]).await;
    hook.on("/mutate", |_| {
        patch(&json!([{"op": "add", "path": "/data/added", "value": "1"}]))
    });
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    let made = server.post(&path, &config_map("a")).await;
    assert_eq!(
        (made.code, &made.json()["data"]["added"]),
        (201, &json!("1"))
    );
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await.code, 404);
    for call in hook.calls() {
        assert_eq!(call.request["dryRun"], true);
        assert_eq!(call.request["options"]["dryRun"], json!(["All"]));
    }
    server.config_map("a").await;
    hook.clear();
    let deleted = server
        .call("DELETE", &format!("{CONFIG_MAPS}/a?dryRun=All"), &[], "")
        .await;
    // A patch of a delete is an error.
    assert_eq!(deleted.code, 500, "{}", deleted.text());
    hook.on("/mutate", |_| json!({"allowed": true}));
    let deleted = server
        .call("DELETE", &format!("{CONFIG_MAPS}/a?dryRun=All"), &[], "")
        .await;
    assert_eq!(deleted.code, 200, "{}", deleted.text());
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await.code, 200);
}

#[tokio::test]
async fn configurations_are_exempt() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = hook.webhook("/all", &["*"], &["*/*"]);
    hook.on("/all", |_| json!({"allowed": false}));
    configure(&server, "Validating", "a", std::slice::from_ref(&webhook)).await;
    configure(&server, "Mutating", "a", &[webhook]).await;
    assert_eq!(server.post(CONFIG_MAPS, &config_map("a")).await.code, 400);
    for kind in ["validating", "mutating"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/a");
        let deleted = server.call("DELETE", &path, &[], "").await;
        assert_eq!(deleted.code, 200, "{}", deleted.text());
    }
    // Without configurations, no webhook is called.
    hook.clear();
    server.config_map("a").await;
    assert!(hook.calls().is_empty());
}

#[tokio::test]
async fn annotations_are_recorded_in_the_audit_log() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = hook.webhook("/check", &["CREATE"], &["configmaps"]);
    let name = webhook["name"].as_str().unwrap().to_owned();
    configure(&server, "Validating", "a", &[webhook]).await;
    hook.on(
        "/check",
        |_| json!({"allowed": true, "auditAnnotations": {"result": "fine", "number": 1}}),
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    let policy = longshore_apiserver::AuditPolicy::default();
    let log = longshore_apiserver::AuditLog::start(policy, file.reopen().unwrap()).unwrap();
    server.api.record_to(log.clone());
    server.config_map("x").await;
    log.flush().await;
    let line = std::fs::read_to_string(file.path()).unwrap();
    let event: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(event["annotations"][format!("{name}/result")], "fine");
    assert_eq!(event["annotations"][format!("{name}/number")], Value::Null);
}

/// Otherwise, each webhook would get a copy of the object at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_object_is_sent_to_a_limited_number_of_webhooks_at_a_time() {
    const SIZE: usize = 900_000;
    let most = limits::WEBHOOK_REVIEWS / (SIZE - limits::SMALL_BODY);
    let number = most + 40;
    let (server, hook) = (Server::new(), Hook::start().await);
    let (now, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut webhooks = Vec::new();
    for index in 0..number {
        let path = format!("/v{index}");
        let (now, peak) = (now.clone(), peak.clone());
        hook.on_async(&path, move |request| {
            let (now, peak) = (now.clone(), peak.clone());
            Box::pin(async move {
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Waits, so that the calls overlap.
                tokio::time::sleep(Duration::from_millis(300)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                review(&request, json!({"allowed": true}))
            })
        });
        let webhook = hook.webhook(&path, &["CREATE"], &["configmaps"]);
        webhooks.push(with(webhook, json!({"timeoutSeconds": 30})));
    }
    configure(&server, "Validating", "many", &webhooks).await;
    let mut large = config_map("large");
    large["data"]["key"] = "x".repeat(SIZE).into();
    let made = server.post(CONFIG_MAPS, &large).await;
    assert_eq!(made.code, 201, "{}", made.text());
    assert_eq!(hook.paths().len(), number);
    let peak = peak.load(Ordering::SeqCst);
    assert!(peak > 1 && peak <= most, "{peak} calls of {most}");
}
