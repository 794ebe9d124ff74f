//! Permissions of nodes: the node authorizer and the admission plugin NodeRestriction. The tests
//! impersonate the nodes `n1` and `n2`. The messages equal Kubernetes' (1.37).

mod credentials;
mod objects;
mod permissions;
mod pods;

use serde_json::{Value, json};

use crate::common::{Answer, Server};

const NODES: &str = "/api/v1/nodes";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const CSI_NODES: &str = "/apis/storage.k8s.io/v1/csinodes";
const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const POD_REQUESTS: &str = "/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// Checks the code, and the end of the message of a refused request.
#[track_caller]
fn check(answer: &Answer, (code, end): (u16, &str), what: &dyn std::fmt::Display) {
    assert_eq!(answer.code, code, "{what}: {}", answer.text());
    if code >= 400 {
        let message = answer.message();
        assert!(message.ends_with(end), "{what}: {message}");
    }
}

/// A server with the nodes `n1` and `n2`.
async fn server() -> Server {
    let server = Server::with_default_policy().await;
    for name in ["n1", "n2"] {
        let labels = json!({"kubernetes.io/hostname": name});
        let taints = json!([{"key": "k", "effect": "NoSchedule"}]);
        let node =
            json!({"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}});
        server.made(NODES, node).await;
    }
    server
}

/// A pod; without a node if its name is empty.
fn pod(name: &str, node: &str, spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": spec});
    if pod["spec"]["containers"].is_null() {
        pod["spec"]["containers"] = json!([{"name": "c", "image": "i"}]);
    }
    if !node.is_empty() {
        pod["spec"]["nodeName"] = node.into();
    }
    pod
}

async fn named(server: &Server, path: &str, name: &str) {
    server.made(path, json!({"metadata": {"name": name}})).await;
}

fn claim(name: &str, volume: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": volume,
        },
    })
}

fn volume(name: &str, claim: &str, secret: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "default", "name": claim},
            "csi": {"driver": "driver.example", "volumeHandle": "h", "nodeStageSecretRef": {
                "namespace": "default", "name": secret,
            }},
        },
    })
}
