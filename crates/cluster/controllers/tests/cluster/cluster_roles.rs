//! Aggregated ClusterRoles.

use longshore_client::Patch;
use serde_json::{Value, json};

use crate::fixture::{Fixture, until};

const LABEL: &str = "example.com/aggregate-to-all";

fn role(name: &str, resource: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name, "labels": {LABEL: "true"}},
        "rules": [rule(resource)],
    })
}

fn rule(resource: &str) -> Value {
    json!({"apiGroups": [""], "resources": [resource], "verbs": ["get"]})
}

#[tokio::test]
async fn an_aggregated_role_has_the_rules_of_the_selected_roles() {
    let fixture = Fixture::start().await;
    let roles = fixture.cluster.kind("ClusterRole").await.unwrap();
    let rules = async |expected: Vec<Value>| {
        until("the gathered rules", async || {
            let all = roles.fetch("all").await.unwrap().raw().unwrap();
            let found = all["rules"].as_array().cloned().unwrap_or_default();
            (found == expected).then_some(all)
        })
        .await
    };
    let mut all = role("all", "secrets");
    all["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {LABEL: "true"}}]});
    fixture.cluster.create(&all, None).await.unwrap();
    // The controller owns the rules.
    rules(vec![]).await;

    let pods = role("b", "pods");
    fixture.cluster.create(&pods, None).await.unwrap();
    rules(vec![rule("pods")]).await;
    let services = role("a", "services");
    fixture.cluster.create(&services, None).await.unwrap();
    let seen = rules(vec![rule("services"), rule("pods")]).await;
    let managers = seen["metadata"]["managedFields"].as_array().unwrap();
    let managers = managers.iter().map(|entry| &entry["manager"]);
    assert!(
        managers
            .into_iter()
            .any(|name| name == "clusterrole-aggregation-controller")
    );

    let unlabeled = Patch::merge(json!({"metadata": {"labels": {LABEL: null}}}));
    roles.patch("b", &unlabeled).await.unwrap();
    rules(vec![rule("services")]).await;
    roles.delete("a", &Default::default()).await.unwrap();
    rules(vec![]).await;
}
