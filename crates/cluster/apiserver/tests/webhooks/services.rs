//! Webhooks behind Services of the cluster.

use serde_json::{Value, json};

use crate::{
    MERGE,
    common::{CONFIG_MAPS, PODS, Server},
    config_map, configure,
    hook::Hook,
    with,
};

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn webhook(hook: &Hook) -> Value {
    let service = json!({"namespace": "default", "name": "hook", "path": "/v"});
    let config = json!({"service": service, "caBundle": hook.bundle});
    let webhook = hook.webhook("/v", &["*"], &["configmaps"]);
    with(webhook, json!({"clientConfig": config}))
}

async fn problem(server: &Server) -> String {
    let refused = server.post(CONFIG_MAPS, &config_map("refused")).await;
    assert_eq!(refused.code, 500, "{}", refused.text());
    let prefix = r#"Internal error occurred: failed calling webhook "v.example.com": failed to call webhook: Post "https://hook.default.svc:443/v?timeout=10s": "#;
    refused.message().strip_prefix(prefix).unwrap().to_owned()
}

#[tokio::test]
async fn ready_pods_of_the_service_are_called() {
    let (server, hook) = (Server::new(), Hook::start().await);
    configure(&server, "Validating", "a", &[webhook(&hook)]).await;
    assert_eq!(problem(&server).await, r#"service "hook" not found"#);
    let service = json!({"metadata": {"name": "hook"}, "spec": {
        "selector": {"app": "hook"}, "ports": [{"port": 444, "targetPort": "https"}],
    }});
    assert_eq!(server.post(SERVICES, &service).await.code, 201);
    assert_eq!(
        problem(&server).await,
        r#"no service port 443 found for service "hook""#
    );
    let ports = r#"{"spec": {"ports": [{"port": 443, "targetPort": "https"}]}}"#;
    let patched = server
        .patch(&format!("{SERVICES}/hook"), MERGE, ports)
        .await;
    assert_eq!(patched.code, 200, "{}", patched.text());
    let unavailable = r#"no endpoints available for service "hook""#;
    assert_eq!(problem(&server).await, unavailable);
    let port = json!({"name": "https", "containerPort": hook.address.port()});
    let pod = json!({"metadata": {"name": "p", "labels": {"app": "hook"}}, "spec": {
        "containers": [{"name": "c", "image": "i", "ports": [port]}],
    }});
    assert_eq!(server.post(PODS, &pod).await.code, 201);
    assert_eq!(problem(&server).await, unavailable);
    let status = json!({"status": {
        "podIP": "127.0.0.1", "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
    }});
    let path = format!("{PODS}/p/status");
    let patched = server.patch(&path, MERGE, &status.to_string()).await;
    assert_eq!(patched.code, 200, "{}", patched.text());
    server.config_map("a").await;
    assert_eq!(hook.calls()[0].path, "/v?timeout=10s");
}

#[tokio::test]
async fn a_service_without_a_selector_needs_endpoints() {
    let (server, hook) = (Server::new(), Hook::start().await);
    configure(&server, "Validating", "a", &[webhook(&hook)]).await;
    let service = json!({"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443}]}});
    assert_eq!(server.post(SERVICES, &service).await.code, 201);
    let slice = json!({
        "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "FQDN", "endpoints": [], "ports": [],
    });
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let made = server.post(slices, &slice).await;
    assert_eq!(made.code, 201, "{}", made.text());
    assert_eq!(
        problem(&server).await,
        r#"no endpoints available for service "hook""#
    );
}
