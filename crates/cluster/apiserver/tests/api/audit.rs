//! The audit log: the events that requests create, and their content.

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use http_body_util::BodyExt as _;
use longshore_apiserver::AuditLog;
use serde_json::{Value, json};

use crate::{
    common::{CONFIG_MAPS, Server},
    http1_bytes, network,
};

/// A file in memory, which can fail.
#[derive(Clone, Default)]
struct File {
    bytes: Arc<Mutex<Vec<u8>>>,
    fails: Arc<AtomicBool>,
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A log and its file.
struct Audit {
    log: AuditLog,
    file: File,
}

impl Audit {
    /// Records the requests of a server by rules of a policy.
    fn of(server: &longshore_apiserver::ApiServer, rules: &str) -> Self {
        let policy = match rules {
            "" => longshore_apiserver::AuditPolicy::default(),
            rules => format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n{rules}")
                .parse()
                .unwrap(),
        };
        let file = File::default();
        let log = AuditLog::start(policy, file.clone()).unwrap();
        server.record_to(log.clone());
        Self { log, file }
    }

    /// The events so far.
    async fn events(&self) -> Vec<Value> {
        self.log.flush().await;
        let bytes = self.file.bytes.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        let lines = text.lines().filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    async fn one(&self) -> Value {
        let mut events = self.events().await;
        assert_eq!(events.len(), 1, "{events:#?}");
        events.remove(0)
    }

    async fn stages(&self) -> Vec<String> {
        let events = self.events().await;
        let stages = events.iter().map(|event| event["stage"].as_str().unwrap());
        stages.map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn by_default_the_metadata_of_each_request_is_recorded() {
    let server = Server::new();
    let audit = Audit::of(&server.api, "");
    let headers = [
        ("content-type", "application/json"),
        ("user-agent", "test/1"),
        ("x-forwarded-for", "10.1.2.3"),
    ];
    let body = json!({"metadata": {"name": "a"}, "data": {"key": "value"}}).to_string();
    let path = format!("{CONFIG_MAPS}?fieldManager=me");
    let answer = server.call("POST", &path, &headers, body).await;
    assert_eq!(answer.code, 201);

    let mut event = audit.one().await;
    let id = event["auditID"].take();
    assert_eq!(id.as_str().unwrap().len(), 36);
    assert_eq!(answer.header("audit-id"), id);
    for field in ["requestReceivedTimestamp", "stageTimestamp"] {
        let at = event[field].take();
        let at = at.as_str().unwrap().to_owned();
        assert_eq!(
            at.len(),
            "2026-01-02T03:04:05.678901Z".len(),
            "{field}: {at}"
        );
    }
    assert_eq!(
        event,
        json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
            "auditID": null, "stage": "ResponseComplete", "requestURI": path, "verb": "create",
            "user": {
                "username": "longshore-admin",
                "groups": ["system:masters", "system:authenticated"],
            },
            "sourceIPs": ["10.1.2.3"], "userAgent": "test/1",
            "objectRef": {
                "resource": "configmaps", "namespace": "default", "name": "a",
                "apiVersion": "v1",
            },
            "responseStatus": {"metadata": {}, "code": 201},
            "requestReceivedTimestamp": null, "stageTimestamp": null,
            "annotations": {
                "authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": "",
            },
        })
    );
}

#[tokio::test]
async fn decisions_and_impersonated_users_are_recorded() {
    let server = Server::new();
    server.api.ensure_default_policy().await.unwrap();
    let audit = Audit::of(&server.api, "");
    let ana = [("impersonate-user", "ana"), ("impersonate-group", "team")];
    let answer = server.call("GET", CONFIG_MAPS, &ana, "").await;
    assert_eq!(answer.code, 403);
    server.call("GET", "/version", &ana, "").await;
    let events = audit.events().await;
    let refused = &events[0];
    assert_eq!(refused["user"]["username"], "longshore-admin");
    assert_eq!(
        refused["impersonatedUser"],
        json!({"username": "ana", "groups": ["team", "system:authenticated"]})
    );
    assert_eq!(refused["verb"], "list");
    assert_eq!(
        refused["annotations"]["authorization.k8s.io/decision"],
        "forbid"
    );
    let status = &refused["responseStatus"];
    assert_eq!(
        (&status["status"], &status["reason"], &status["code"]),
        (&json!("Failure"), &json!("Forbidden"), &json!(403))
    );
    assert_eq!(status["message"], answer.message());
    let allowed = &events[1];
    assert_eq!(allowed["objectRef"], Value::Null);
    let reason = allowed["annotations"]["authorization.k8s.io/reason"].as_str();
    let reason = reason.unwrap();
    let binding = "RBAC: allowed by ClusterRoleBinding \"system:";
    assert!(reason.starts_with(binding), "{reason}");
}

#[tokio::test]
async fn the_response_contains_the_id_of_the_request() {
    let server = Server::new();
    let own = server
        .call("GET", "/version", &[("audit-id", "mine")], "")
        .await;
    assert_eq!(own.header("audit-id"), "mine");
    let (first, second) = (server.get("/nonsense").await, server.get("/version").await);
    assert_eq!(first.header("audit-id").len(), 36);
    assert_ne!(first.header("audit-id"), second.header("audit-id"));
}

#[tokio::test]
async fn a_watch_is_recorded_when_it_starts_and_ends() {
    let server = Server::new();
    let audit = Audit::of(&server.api, "");
    let request = http::Request::get(format!("{CONFIG_MAPS}?watch=1"));
    let request = request.body(http_body_util::Full::default()).unwrap();
    let mut response = server.send(request).await;
    assert_eq!(audit.stages().await, ["ResponseStarted"]);
    server.config_map("a").await;
    response.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(
        audit.stages().await,
        ["ResponseStarted", "ResponseComplete"],
        "the create"
    );
    drop(response);
    let events = audit.events().await;
    assert_eq!(events[2]["stage"], "ResponseComplete");
    assert_eq!(events[2]["verb"], "watch");
    assert_eq!(events[2]["auditID"], events[0]["auditID"]);
}

#[tokio::test]
async fn a_policy_selects_requests_stages_and_bodies() {
    let server = Server::new();
    let rules = "
        - {level: None, verbs: [get]}
        - {level: Request, verbs: [create], omitStages: [RequestReceived]}
        - {level: RequestResponse, omitManagedFields: true, verbs: [patch]}
        - {level: RequestResponse, verbs: [delete], omitStages: [RequestReceived]}";
    let audit = Audit::of(&server.api, rules);
    server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}/a");
    server.get(&path).await;
    let patch = r#"{"data":{"key":"other"}}"#;
    server
        .patch(&path, "application/merge-patch+json", patch)
        .await;
    server.call("DELETE", &path, &[], "").await;
    server.get(CONFIG_MAPS).await;
    let events = audit.events().await;
    let stages: Vec<_> = events.iter().map(|event| event["stage"].clone()).collect();
    assert_eq!(
        stages,
        [
            "ResponseComplete",
            "RequestReceived",
            "ResponseComplete",
            "ResponseComplete"
        ]
    );
    assert_eq!(events[0]["requestObject"]["data"]["key"], "value");
    assert_eq!(events[0]["responseObject"], Value::Null);
    assert_eq!(events[1]["requestObject"], Value::Null);
    assert_eq!(
        events[2]["requestObject"],
        json!({"data": {"key": "other"}})
    );
    let patched = &events[2]["responseObject"];
    assert_eq!(patched["data"]["key"], "other");
    assert_eq!(patched["metadata"]["managedFields"], Value::Null);
    assert_eq!(events[3]["responseStatus"]["status"], "Success");
    assert_eq!(events[3]["responseStatus"]["details"]["name"], "a");
    assert_eq!(events[3]["responseObject"]["kind"], "Status");
}

#[tokio::test]
async fn large_and_yaml_bodies_are_recorded_whole() {
    let server = Server::new();
    let audit = Audit::of(
        &server.api,
        "- {level: RequestResponse, omitStages: [RequestReceived]}",
    );
    let data = "x".repeat(200_000);
    let yaml = format!("metadata: {{name: a}}\ndata:\n  key: {data}");
    let headers = [
        ("content-type", "application/yaml"),
        ("accept-encoding", "gzip"),
    ];
    let answer = server.call("POST", CONFIG_MAPS, &headers, yaml).await;
    assert_eq!(
        (answer.code, answer.header("content-encoding")),
        (201, "gzip")
    );
    let event = audit.one().await;
    assert_eq!(event["requestObject"]["data"]["key"], data.as_str());
    assert_eq!(event["responseObject"]["data"]["key"], data.as_str());
}

#[tokio::test]
async fn secrets_and_tokens_are_never_recorded() {
    let server = Server::new();
    let audit = Audit::of(&server.api, "- {level: RequestResponse}");
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "p4ssw0rd"}});
    let made = server
        .post("/api/v1/namespaces/default/secrets", &secret)
        .await;
    assert_eq!(made.code, 201);
    let account = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let token = server.post(account, &json!({"spec": {}})).await;
    assert_eq!(token.code, 201, "{}", token.text());
    let token = token.json()["status"]["token"].as_str().unwrap().to_owned();
    let review = json!({"spec": {"token": token}});
    server
        .post("/apis/authentication.k8s.io/v1/tokenreviews", &review)
        .await;
    server.get("/api/v1/secrets").await;
    let events = audit.events().await;
    assert_eq!(events.len(), 8);
    assert_eq!(events[1]["objectRef"]["name"], "s");
    let text = json!(events).to_string();
    for private in ["p4ssw0rd", "cDRzc3cwcmQ", token.as_str()] {
        assert!(!text.contains(private), "{private}");
    }
}

#[tokio::test]
async fn requests_without_credentials_are_recorded() {
    let mut running = network::start().await;
    let audit = Audit::of(&running.api, "");
    let request = b"GET /api/v1/pods HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer wrong\r\n\
        Connection: close\r\n\r\n";
    let answer = http1_bytes::exchange(&running, request).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.to_lowercase().contains("audit-id: "), "{answer}");
    let event = audit.one().await;
    assert_eq!(event["stage"], "ResponseStarted");
    assert_eq!(event["user"], json!({}));
    assert_eq!(event["sourceIPs"], json!(["127.0.0.1"]));
    assert_eq!(event["responseStatus"]["code"], 401);
    assert_eq!(
        event["responseStatus"]["message"],
        "Authentication failed, attempted: bearer"
    );
    assert!(!json!(event).to_string().contains("wrong"));
    running.end().await;
}

#[tokio::test]
async fn a_file_that_cannot_be_written_does_not_stop_requests() {
    let server = Server::new();
    let audit = Audit::of(&server.api, "");
    audit.file.fails.store(true, Ordering::SeqCst);
    assert_eq!(server.get("/version").await.code, 200);
    audit.log.flush().await;
    assert_eq!(audit.log.lost(), 1);
    let metrics = server.get("/metrics").await.text();
    let counter = "apiserver_audit_error_total{plugin=\"log\"} 1\n";
    assert!(metrics.contains(counter), "{metrics}");
    audit.log.flush().await;
    audit.file.fails.store(false, Ordering::SeqCst);
    server.get("/version").await;
    assert_eq!(audit.one().await["requestURI"], "/version");
    assert_eq!(audit.log.lost(), 2);
}
