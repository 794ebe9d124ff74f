//! PodDisruptionBudgets.

use serde_json::json;

use crate::{
    objects::{holds, name, number, template, workload},
    plane::Plane,
};

#[tokio::test]
async fn a_disruption_budget_limits_evictions() {
    let plane = Plane::with_nodes(1).await;
    let sets = plane.path("apps/v1", "replicasets");
    let template = template(plane.namespace(), "web", "ready");
    plane.create(&sets, &workload("web", 2, &template)).await;
    let budgets = plane.path("policy/v1", "poddisruptionbudgets");
    let budget = json!({
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    });
    plane.create(&budgets, &budget).await;
    let path = format!("{budgets}/web");
    let budget = plane
        .until(&path, |budget| {
            number(budget, "/status/currentHealthy") == 2
                && number(budget, "/status/desiredHealthy") == 2
                && number(budget, "/status/expectedPods") == 2
        })
        .await;
    assert_eq!(number(&budget, "/status/disruptionsAllowed"), 0);
    let pod = name(&plane.list(&plane.pods_of("web")).await.0[0]);
    let pod = format!("{}/{pod}", plane.path("v1", "pods"));
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": pod.rsplit('/').next()},
    });
    let evict = format!("{pod}/eviction");
    plane
        .post(&evict, &eviction)
        .await
        .refused(429, "TooManyRequests");
    plane
        .merge(&path, &json!({"spec": {"minAvailable": 1}}))
        .await;
    plane
        .until(&path, |budget| {
            number(budget, "/status/disruptionsAllowed") == 1 && holds(budget, "DisruptionAllowed")
        })
        .await;
    plane.post(&evict, &eviction).await.is(201);
    plane.until_gone(&pod).await;
    plane
        .until(&path, |budget| {
            number(budget, "/status/currentHealthy") == 2
        })
        .await;
}

#[tokio::test]
async fn a_disruption_budget_counts_the_replicas_of_the_owner() {
    let plane = Plane::with_nodes(1).await;
    let deployments = plane.path("apps/v1", "deployments");
    let template = template(plane.namespace(), "web", "ready");
    plane
        .create(&deployments, &workload("web", 4, &template))
        .await;
    let budgets = plane.path("policy/v1", "poddisruptionbudgets");
    let budget = json!({
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": "25%", "selector": {"matchLabels": {"app": "web"}}},
    });
    plane.create(&budgets, &budget).await;
    plane
        .until(&format!("{budgets}/web"), |budget| {
            number(budget, "/status/expectedPods") == 4
                && number(budget, "/status/desiredHealthy") == 3
                && number(budget, "/status/currentHealthy") == 4
                && number(budget, "/status/disruptionsAllowed") == 1
        })
        .await;
}
