//! Aggregated ClusterRoles.

use serde_json::json;

use crate::plane::Plane;

#[tokio::test]
async fn an_aggregated_role_has_the_rules_of_selected_roles() {
    let plane = Plane::start().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let [whole, part] = ["whole", "part"].map(|name| plane.node(name));
    let labels = json!({"aggregate-to": whole});
    let selectors = json!([{"matchLabels": labels}]);
    let role = json!({
        "metadata": {"name": whole}, "rules": [],
        "aggregationRule": {"clusterRoleSelectors": selectors},
    });
    plane.create(roles, &role).await;
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let role = json!({"metadata": {"name": part, "labels": labels}, "rules": rules});
    plane.create(roles, &role).await;
    let path = format!("{roles}/{whole}");
    plane.until(&path, |role| role["rules"] == rules).await;
    plane.delete(&format!("{roles}/{part}")).await.ok();
    plane
        .until(&path, |role| {
            role["rules"].as_array().is_none_or(Vec::is_empty)
        })
        .await;
    plane.delete(&path).await.ok();
}
