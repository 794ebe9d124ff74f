//! Every subresource is reviewed by webhooks: one table for all.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use longshore_model::kind::BUILTIN;
use serde_json::{Value, json};

use crate::{
    MERGE,
    common::{PODS, Server},
    configure,
    hook::Hook,
};

const NODE_SUMMARY: &str = "/api/v1/nodes/n/proxy/stats/summary";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const TOKEN: &str = "/api/v1/namespaces/default/serviceaccounts/default/token";

/// A request to a subresource, and the review that webhooks receive.
struct Case {
    method: &'static str,
    path: String,
    body: Value,
    operation: &'static str,
    resource: &'static str,
    kind: &'static str,
}

/// Reads, which admission does not review.
const READS: [&str; 1] = ["log"];

fn cases() -> Vec<Case> {
    let case = |method, path: &str, body, operation, resource, kind| Case {
        method,
        path: path.to_owned(),
        body,
        operation,
        resource,
        kind,
    };
    let pod = |rest: &str| format!("{PODS}/p/{rest}");
    let binding = json!({"metadata": {"name": "p"}, "target": {"name": "n"}});
    let ephemeral = json!({"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}});
    let resources = json!({"requests": {"cpu": "1"}});
    let resize =
        json!({"spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}});
    let status = json!({"status": {"message": "m"}});
    let approved = json!({"status": {"conditions": [
        {"type": "Approved", "status": "True", "reason": "r", "message": "m"}]}});
    let namespace = json!({"metadata": {"name": "default"}, "spec": {"finalizers": []}});
    let scale = json!({"spec": {"replicas": 2}});
    let mut all = vec![
        case(
            "PATCH",
            &pod("status"),
            status.clone(),
            "UPDATE",
            "pods/status",
            "Pod",
        ),
        case(
            "PATCH",
            &pod("ephemeralcontainers"),
            ephemeral,
            "UPDATE",
            "pods/ephemeralcontainers",
            "Pod",
        ),
        case(
            "PATCH",
            &pod("resize"),
            resize,
            "UPDATE",
            "pods/resize",
            "Pod",
        ),
        case(
            "POST",
            &pod("binding"),
            binding.clone(),
            "CREATE",
            "pods/binding",
            "Binding",
        ),
        case(
            "POST",
            "/api/v1/namespaces/default/bindings",
            binding,
            "CREATE",
            "bindings",
            "Binding",
        ),
        case(
            "POST",
            &pod("eviction"),
            json!({"metadata": {"name": "p"}}),
            "CREATE",
            "pods/eviction",
            "Eviction",
        ),
        case(
            "POST",
            TOKEN,
            json!({}),
            "CREATE",
            "serviceaccounts/token",
            "TokenRequest",
        ),
        case(
            "PATCH",
            &format!("{DEPLOYMENTS}/d/scale"),
            scale,
            "UPDATE",
            "deployments/scale",
            "Scale",
        ),
        case(
            "PATCH",
            &format!("{DEPLOYMENTS}/d/status"),
            status,
            "UPDATE",
            "deployments/status",
            "Deployment",
        ),
        case(
            "PATCH",
            &format!("{REQUESTS}/r/approval"),
            approved,
            "UPDATE",
            "certificatesigningrequests/approval",
            "CertificateSigningRequest",
        ),
        case(
            "PUT",
            "/api/v1/namespaces/default/finalize",
            namespace,
            "UPDATE",
            "namespaces/finalize",
            "Namespace",
        ),
        case(
            "GET",
            NODE_SUMMARY,
            Value::Null,
            "CONNECT",
            "nodes/proxy",
            "NodeProxyOptions",
        ),
    ];
    for (path, kind) in [
        ("exec?command=a&stdout=true", "PodExecOptions"),
        ("attach?stdin=true", "PodAttachOptions"),
        ("portforward?ports=80", "PodPortForwardOptions"),
    ] {
        let resource = match kind {
            "PodExecOptions" => "pods/exec",
            "PodAttachOptions" => "pods/attach",
            _ => "pods/portforward",
        };
        for method in ["GET", "POST"] {
            all.push(case(
                method,
                &pod(path),
                Value::Null,
                "CONNECT",
                resource,
                kind,
            ));
        }
    }
    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        for rest in ["proxy", "proxy/", "proxy/a/b?c=d"] {
            let path = pod(rest);
            all.push(case(
                method,
                &path,
                Value::Null,
                "CONNECT",
                "pods/proxy",
                "PodProxyOptions",
            ));
            let path = format!("{SERVICES}/https:s:web/{rest}");
            all.push(case(
                method,
                &path,
                Value::Null,
                "CONNECT",
                "services/proxy",
                "ServiceProxyOptions",
            ));
        }
    }
    all
}

async fn prepare(server: &Server) {
    let resources = json!({"requests": {"cpu": "2"}});
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i", "resources": resources}]}});
    let labels = json!({"a": "b"});
    let containers = json!([{"name": "c", "image": "i"}]);
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
    }});
    let service =
        json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1, "name": "web"}]}});
    let key = rcgen::KeyPair::generate().unwrap();
    let request = rcgen::CertificateParams::new(Vec::new()).unwrap();
    let request = request.serialize_request(&key).unwrap().pem().unwrap();
    let request = json!({"metadata": {"name": "r"}, "spec": {
        "request": STANDARD.encode(request), "signerName": "example.com/a", "usages": ["client auth"],
    }});
    for (path, body) in [
        (PODS, pod),
        (DEPLOYMENTS, deployment),
        (SERVICES, service),
        (REQUESTS, request),
        ("/api/v1/nodes", json!({"metadata": {"name": "n"}})),
    ] {
        let answer = server.post(path, &body).await;
        assert_eq!(answer.code, 201, "{}", answer.text());
    }
}

#[tokio::test]
async fn each_subresource_is_reviewed() {
    let (server, hook) = (Server::new(), Hook::start().await);
    prepare(&server).await;
    let operations = ["CREATE", "UPDATE", "DELETE", "CONNECT"];
    let all = ["*/*"];
    let webhook = |path: &str| hook.webhook(path, &operations, &all);
    configure(&server, "Mutating", "a", &[webhook("/m")]).await;
    configure(&server, "Validating", "a", &[webhook("/v")]).await;
    hook.on(
        "/v",
        |_| json!({"allowed": false, "status": {"message": "no", "code": 403}}),
    );
    let mut reviewed = BTreeSet::from(READS.map(str::to_owned));
    for case in cases() {
        let Case { method, path, .. } = &case;
        let name = format!("{method} {path}");
        hook.clear();
        let content_type = if *method == "PATCH" {
            MERGE
        } else {
            "application/json"
        };
        let body = match &case.body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let answer = server
            .call(method, path, &[("content-type", content_type)], body)
            .await;
        assert_eq!(answer.code, 403, "{name}: {}", answer.text());
        assert_eq!(hook.paths(), ["/m", "/v"], "{name}");
        for call in hook.calls() {
            let request = &call.request;
            let resource = request["resource"]["resource"].as_str().unwrap();
            let resource = match request["subResource"].as_str() {
                Some(subresource) => format!("{resource}/{subresource}"),
                None => resource.to_owned(),
            };
            let seen = (
                request["operation"].as_str().unwrap(),
                resource.as_str(),
                request["kind"]["kind"].as_str().unwrap(),
            );
            assert_eq!(seen, (case.operation, case.resource, case.kind), "{name}");
        }
        let subresource = case.resource.split_once('/');
        reviewed.extend(subresource.map(|(_, subresource)| subresource.to_owned()));
    }
    let served = BUILTIN.iter().flat_map(|kind| kind.subresources.iter());
    let served: BTreeSet<String> = served.map(ToString::to_string).collect();
    assert_eq!(served, reviewed, "the table names every subresource");
}

#[tokio::test]
async fn the_path_of_a_proxied_request_is_reviewed() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = hook.webhook("/v", &["CONNECT"], &["pods/proxy", "services/proxy"]);
    configure(&server, "Validating", "a", &[webhook]).await;
    server.pod("p", &["c"]).await;
    for (rest, expected) in [
        ("proxy/a%20b/?c=d", json!("/a b/")),
        ("proxy/", json!("/")),
        ("proxy", Value::Null),
    ] {
        hook.clear();
        server.get(&format!("{PODS}/http:p:80/{rest}")).await;
        let request = &hook.calls()[0].request;
        assert_eq!(request["object"]["path"], expected, "{rest}");
        assert_eq!(request["name"], "http:p:80");
        assert_eq!(
            (&request["oldObject"], &request["options"]),
            (&Value::Null, &Value::Null)
        );
    }
}
