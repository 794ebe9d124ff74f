//! The stabilization window of a HorizontalPodAutoscaler.

use serde_json::json;

use crate::common::{TIMEOUT, advance, seconds, spec, start, wait};

#[tokio::test(flavor = "multi_thread")]
async fn replicas_are_removed_after_the_stabilization_window() {
    let embedded = start(true).await;
    let cluster = embedded.cluster();
    let deployments = cluster.deployments().in_namespace("default").unwrap();
    let labels = json!({"app": "idle"});
    let mut template = spec("sleep 1000");
    template["containers"][0]["resources"] = json!({"requests": {"cpu": "100m"}});
    let deployment = json!({"metadata": {"name": "idle"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": template}}});
    deployments.create(&deployment).await.unwrap();
    let ready = |item: &longshore_client::Item<_>| {
        item.field::<u32>(&["status", "readyReplicas"]).unwrap() == Some(3)
    };
    deployments.wait("idle", ready, TIMEOUT).await.unwrap();
    let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": {
        "type": "Utilization", "averageUtilization": 50}}});
    let autoscaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "idle", "namespace": "default"},
        "spec": {"minReplicas": 1, "maxReplicas": 5, "metrics": [metric],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 300}},
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "idle"}}});
    cluster.create(&autoscaler, None).await.unwrap();
    let autoscalers = cluster.kind("hpa").await.unwrap();
    let autoscalers = autoscalers.in_namespace("default").unwrap();
    let reason = async |kind: &str| {
        let raw = autoscalers.fetch("idle").await.unwrap().raw().unwrap();
        let conditions = raw["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let found = conditions.find(|one| one["type"] == kind);
        found.map(|one| one["reason"].as_str().unwrap().to_owned())
    };
    let replicas = async || deployments.scale("idle").await.unwrap().wanted;
    // The recommendation to keep the replicas is as old as the autoscaler.
    wait(async || reason("ScalingActive").await.is_some()).await;
    advance(&embedded, seconds(15)).await;
    wait(async || reason("AbleToScale").await.as_deref() == Some("ScaleDownStabilized")).await;
    advance(&embedded, seconds(270)).await;
    assert_eq!(replicas().await, 3);
    advance(&embedded, seconds(30)).await;
    wait(async || replicas().await == 1).await;
    embedded.stop().await;
}
