//! A service account that may create pods because of a role, in its own namespace.

use std::time::Duration;

use http::Method;
use kube_client::Client;
use serde_json::{Value, json};

use super::load::{self, JSON, send};
use crate::report::Failure;

/// The namespace.
pub(super) const NAMESPACE: &str = "accounts";

/// Creates the account with its role. Returns a token.
pub(super) async fn token(client: &Client) -> Result<String, Failure> {
    let post = async |path: &str, body: Value| {
        send(client, Method::POST, path, JSON, body.to_string()).await
    };
    post(
        "/api/v1/namespaces",
        json!({"metadata": {"name": NAMESPACE}}),
    )
    .await?;
    let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    post(&accounts, json!({"metadata": {"name": "load"}})).await?;
    // Pods need the service account. A controller may have created it.
    let _ = post(&accounts, json!({"metadata": {"name": "default"}})).await;
    let rules = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}");
    let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]});
    let role = json!({"metadata": {"name": "load"}, "rules": [rule]});
    post(&format!("{rules}/roles"), role).await?;
    let binding = json!({
        "metadata": {"name": "load"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "load"},
        "subjects": [{"kind": "ServiceAccount", "name": "load", "namespace": NAMESPACE}],
    });
    post(&format!("{rules}/rolebindings"), binding).await?;
    let wanted = json!({"spec": {"expirationSeconds": 3600}}).to_string();
    let path = format!("{accounts}/load/token");
    let answer = load::answer(client, Method::POST, &path, JSON, wanted).await?;
    let answer: Value = serde_json::from_slice(&answer)?;
    // kube-apiserver authorizes by a cache of roles.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let token = answer["status"]["token"].as_str();
    Ok(token.ok_or("the server issued no token")?.to_owned())
}
