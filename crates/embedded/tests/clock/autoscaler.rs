//! The stabilization window of a HorizontalPodAutoscaler.

use serde_json::{Value, json};

use crate::common::{TIMEOUT, advance_until, seconds, spec, start, wait};

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
    let able = async || -> Value {
        let raw = autoscalers.fetch("idle").await.unwrap().raw().unwrap();
        let conditions = raw["status"]["conditions"].as_array().cloned();
        let conditions = conditions.unwrap_or_default();
        let able = conditions.iter().find(|one| one["type"] == "AbleToScale");
        able.cloned().unwrap_or_default()
    };
    // The recommendation to keep the replicas is as old as the autoscaler.
    advance_until(&embedded, seconds(15), async || {
        able().await["reason"] == "ScaleDownStabilized"
    })
    .await;
    assert_eq!(deployments.scale("idle").await.unwrap().wanted, 3);
    let scaled = async || deployments.scale("idle").await.unwrap().wanted == 1;
    let advanced = advance_until(&embedded, seconds(15), scaled).await;
    assert!(advanced >= seconds(60), "{advanced:?}");
    wait(async || able().await["reason"] == "SucceededRescale").await;
    embedded.stop().await;
}
