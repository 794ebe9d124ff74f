//! The condition `Available`, and the responses while it is not true.

use serde_json::json;

use crate::{
    API_SERVICES, FISH, MERGE, SERVICES, SLICES, api_service,
    common::{PODS, Server},
    condition, create, register, service, slice, start, start_available, until_reason,
};

async fn unavailable(server: &Server) {
    let answer = server.get(FISH).await;
    assert_eq!(
        (answer.code, answer.text().as_str()),
        (503, "service unavailable\n")
    );
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
}

#[tokio::test]
async fn the_service_and_its_endpoints_are_checked() {
    let (server, backend) = start().await;
    create(&server, API_SERVICES, &api_service(&backend)).await;
    let message = until_reason(&server, "ServiceNotFound").await;
    assert_eq!(message, r#"service/backend in "default" is not present"#);
    unavailable(&server).await;

    let mut other = service();
    other["spec"]["ports"][0]["port"] = json!(444);
    create(&server, SERVICES, &other).await;
    let message = until_reason(&server, "ServicePortError").await;
    assert_eq!(
        message,
        r#"service/backend in "default" is not listening on port 443"#
    );

    let ports = r#"{"spec": {"ports": [{"port": 443}]}}"#;
    server
        .patch(&format!("{SERVICES}/backend"), MERGE, ports)
        .await;
    let message = until_reason(&server, "EndpointsNotFound").await;
    assert_eq!(
        message,
        r#"cannot find endpointslices for service/backend in "default""#
    );

    create(&server, SLICES, &slice(&backend, false)).await;
    let message = until_reason(&server, "MissingEndpoints").await;
    assert_eq!(
        message,
        r#"endpointslices for service/backend in "default" have no addresses with port name """#
    );
    unavailable(&server).await;

    backend.answer("/apis/fish.example.com/v1", 404, &json!({}));
    let slice_path = format!("{SLICES}/backend-a");
    let ready = slice(&backend, true).to_string();
    server.patch(&slice_path, MERGE, &ready).await;
    let message = until_reason(&server, "FailedDiscoveryCheck").await;
    let service = server.get(&format!("{SERVICES}/backend")).await.json();
    let url = format!(
        "https://{}:443/apis/fish.example.com/v1",
        service["spec"]["clusterIP"].as_str().unwrap()
    );
    assert_eq!(
        message,
        format!("failing or missing response from {url}: bad status from {url}: 404")
    );
    unavailable(&server).await;

    backend.answer("/apis/fish.example.com/v1", 200, &json!({"resources": []}));
    let message = until_reason(&server, "Passed").await;
    assert_eq!(message, "all checks passed");
    assert_eq!(server.get(FISH).await.code, 200);
    // Another pass after the endpoints are gone.
    server.call("DELETE", &slice_path, &[], "").await;
    until_reason(&server, "EndpointsNotFound").await;
    unavailable(&server).await;
}

#[tokio::test]
async fn ready_pods_are_used_while_there_are_no_endpoint_slices() {
    let (server, backend) = start().await;
    let mut selecting = service();
    selecting["spec"]["selector"] = json!({"app": "backend"});
    selecting["spec"]["ports"][0]["targetPort"] = backend.address.port().into();
    create(&server, SERVICES, &selecting).await;
    create(&server, API_SERVICES, &api_service(&backend)).await;
    until_reason(&server, "EndpointsNotFound").await;
    let pod = json!({
        "metadata": {"name": "p", "labels": {"app": "backend"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    create(&server, PODS, &pod).await;
    let status = json!({"status": {
        "podIP": backend.address.ip(), "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
    }});
    let path = format!("{PODS}/p/status");
    let patched = server.patch(&path, MERGE, &status.to_string()).await;
    assert_eq!(patched.code, 200, "{}", patched.text());
    until_reason(&server, "Passed").await;
    assert_eq!(server.get(FISH).await.code, 200);
}

#[tokio::test]
async fn the_certificate_of_the_server_is_verified() {
    let (server, backend) = start().await;
    let other = crate::backend::Backend::start(&crate::proxy_authority(&server)).await;
    create(&server, SERVICES, &service()).await;
    create(&server, SLICES, &slice(&backend, true)).await;
    let mut object = api_service(&backend);
    object["spec"]["caBundle"] = other.bundle.clone().into();
    create(&server, API_SERVICES, &object).await;
    let message = until_reason(&server, "FailedDiscoveryCheck").await;
    let expected =
        "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert!(message.ends_with(expected), "{message}");
    unavailable(&server).await;
    let path = format!("{API_SERVICES}/v1.fish.example.com");
    let insecure = r#"{"spec": {"caBundle": null, "insecureSkipTLSVerify": true}}"#;
    let patched = server.patch(&path, MERGE, insecure).await;
    assert_eq!(patched.code, 200, "{}", patched.text());
    until_reason(&server, "Passed").await;
    assert_eq!(server.get(FISH).await.code, 200);
}

#[tokio::test]
async fn a_server_that_does_not_know_the_proxy_is_not_available() {
    let server = crate::server();
    let own = crate::server();
    let backend = crate::backend::Backend::start(&crate::proxy_authority(&own)).await;
    register(&server, &backend).await;
    until_reason(&server, "FailedDiscoveryCheck").await;
    unavailable(&server).await;
}

#[tokio::test]
async fn without_checks_no_server_is_available() {
    let server = Server::new();
    let backend = crate::backend::Backend::start(&crate::proxy_authority(&server)).await;
    register(&server, &backend).await;
    unavailable(&server).await;
    assert_eq!(condition(&server, "v1.fish.example.com").await, None);
}

#[tokio::test]
async fn a_local_api_service_is_always_available() {
    let (server, _backend) = start_available().await;
    let path = format!("{API_SERVICES}/v1.fish.example.com");
    let local = r#"{"spec": {"caBundle": null, "service": null}}"#;
    let patched = server.patch(&path, MERGE, local).await;
    assert_eq!(patched.code, 200, "{}", patched.text());
    // The condition is already true, and servers are no longer asked.
    assert_eq!(server.get(FISH).await.code, 404);
    let built_in = condition(&server, "v1.apps").await.unwrap();
    assert_eq!(
        (&built_in["status"], &built_in["reason"]),
        (&json!("True"), &json!("Local"))
    );
}
