//! HorizontalPodAutoscalers.

use serde_json::json;

use crate::{
    objects::{has_reason, holds, number, template, workload},
    plane::Plane,
};

#[tokio::test]
async fn an_autoscaler_keeps_its_limits_and_reports_absent_metrics() {
    let plane = Plane::with_nodes(1).await;
    let deployments = plane.path("apps/v1", "deployments");
    let template = template(plane.namespace(), "web", "ready");
    plane
        .create(&deployments, &workload("web", 5, &template))
        .await;
    let scalers = plane.path("autoscaling/v2", "horizontalpodautoscalers");
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let scaler = json!({
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3},
    });
    plane.create(&scalers, &scaler).await;
    let path = format!("{scalers}/web");
    // If the replicas are above the maximum, no metrics are needed.
    plane
        .until(&format!("{deployments}/web"), |deployment| {
            number(deployment, "/spec/replicas") == 3 && number(deployment, "/status/replicas") == 3
        })
        .await;
    let scaler = plane
        .until(&path, |scaler| {
            has_reason(scaler, "ScalingActive", "FailedGetResourceMetric")
        })
        .await;
    assert!(!holds(&scaler, "ScalingActive"));
    assert!(holds(&scaler, "AbleToScale"));
}
