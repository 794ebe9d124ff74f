//! Webhooks whose server no longer exists, and policies that refuse all requests, do not prevent a
//! cluster from starting: its API answers, and its nodes register as soon as they are permitted to.
#![allow(clippy::unwrap_used)]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use longshore_client::Cluster;
use longshore_embedded::{EmbeddedCluster, Options};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);

async fn start(folder: &Path) -> EmbeddedCluster {
    let options = Options {
        ephemeral: false,
        data_dir: Some(folder.to_owned()),
        listen: Some(([127, 0, 0, 1], 0).into()),
        nodes: 1,
        ..Options::default()
    };
    EmbeddedCluster::start(options).await.unwrap()
}

/// The address of a server that does not exist.
const GONE: &str = "https://127.0.0.1:9/";

/// A webhook without a server.
fn webhook(kind: &str, url: &str, resources: &[&str]) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": "gone"},
        "webhooks": [{
            "name": "gone.example.com", "failurePolicy": "Fail", "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": url}, "timeoutSeconds": 1,
            "rules": [{
                "operations": ["CREATE", "UPDATE", "DELETE"], "apiGroups": ["*"],
                "apiVersions": ["*"], "resources": resources,
            }],
        }],
    })
}

/// A policy and its binding that refuse all requests.
fn policy() -> [(&'static str, Value); 2] {
    let of = |kind: &str, spec: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "gone"}, "spec": spec,
        })
    };
    let constraints = json!({"resourceRules": [{
        "operations": ["CREATE", "UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"],
        "resources": ["*/*"]}]});
    [
        (
            "validatingadmissionpolicies",
            of(
                "ValidatingAdmissionPolicy",
                json!({
            "matchConstraints": constraints, "validations": [{"expression": "false"}]}),
            ),
        ),
        (
            "validatingadmissionpolicybindings",
            of(
                "ValidatingAdmissionPolicyBinding",
                json!({
            "policyName": "gone", "validationActions": ["Deny"]}),
            ),
        ),
    ]
}

async fn write(cluster: &Cluster, word: &str, object: &Value) {
    cluster
        .kind(word)
        .await
        .unwrap()
        .create(object)
        .await
        .unwrap();
}

async fn remove(cluster: &Cluster, word: &str) {
    let view = cluster.kind(word).await.unwrap();
    view.delete("gone", &longshore_client::DeleteOptions::default())
        .await
        .unwrap();
}

async fn runs_pods(cluster: &Cluster) {
    let begin = Instant::now();
    let pods = cluster.pods().in_namespace("default").unwrap();
    let container = json!({"name": "c", "image": "any", "command": ["true"]});
    let pod = json!({"metadata": {"name": "p"}, "spec": {"restartPolicy": "Never", "containers": [container]}});
    while let Err(error) = pods.create(&pod).await {
        assert!(begin.elapsed() < TIMEOUT, "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    loop {
        let pod = pods.fetch("p").await.unwrap().raw().unwrap();
        if pod["status"]["phase"] == "Succeeded" {
            return;
        }
        assert!(begin.elapsed() < TIMEOUT, "{}", pod["status"]);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_starts_despite_webhooks_and_policies() {
    let nodes: &[&str] = &["nodes", "nodes/status"];
    let all: &[&str] = &["*/*"];
    let validating = "validatingwebhookconfigurations";
    // The webhook's server accepts connections, but never responds.
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let silent = format!("https://{}/", silent.local_addr().unwrap());
    let cases = [
        vec![(
            validating,
            webhook("ValidatingWebhookConfiguration", GONE, nodes),
        )],
        vec![(
            validating,
            webhook("ValidatingWebhookConfiguration", GONE, all),
        )],
        vec![(
            validating,
            webhook("ValidatingWebhookConfiguration", &silent, nodes),
        )],
        vec![(
            "mutatingwebhookconfigurations",
            webhook("MutatingWebhookConfiguration", GONE, all),
        )],
        policy().to_vec(),
    ];
    for objects in cases {
        let folder = tempfile::tempdir().unwrap();
        let cluster = start(folder.path()).await;
        for (word, object) in &objects {
            write(&cluster.cluster(), word, object).await;
        }
        cluster.stop().await;
        let cluster = start(folder.path()).await;
        let client = cluster.cluster();
        assert!(client.namespaces().find("default").await.unwrap().is_some());
        for (word, _) in objects.iter().rev() {
            remove(&client, word).await;
        }
        runs_pods(&client).await;
        cluster.stop().await;
    }
}
