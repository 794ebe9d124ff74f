//! A HorizontalPodAutoscaler with real pods whose usage the node measures.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn busy_pods_get_more_replicas() {
    let embedded = longshore_embedded::start().await.unwrap();
    let cluster = embedded.cluster();
    let labels = json!({"app": "busy"});
    let container = json!({"name": "main", "image": "any",
        "command": ["sh", "-c", "while :; do :; done"],
        "resources": {"requests": {"cpu": "10m"}}});
    let deployments = cluster.deployments().in_namespace("default").unwrap();
    let deployment = json!({"metadata": {"name": "busy"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}}}});
    deployments.create(&deployment).await.unwrap();

    let path = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods";
    let proxy = cluster.proxy();
    let measured = async {
        loop {
            let list = proxy.get(path, &[]).await.unwrap();
            let cpu = &list["items"][0]["containers"][0]["usage"]["cpu"];
            let cpu = cpu.as_str().and_then(|text| text.strip_suffix('n'));
            if cpu.is_some_and(|cpu| cpu.parse::<u64>().unwrap() > 20_000_000) {
                return;
            }
        }
    };
    tokio::time::timeout(TIMEOUT, measured).await.unwrap();

    let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": {
        "type": "Utilization", "averageUtilization": 50}}});
    let autoscaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "busy", "namespace": "default"},
        "spec": {"minReplicas": 1, "maxReplicas": 2, "metrics": [metric], "scaleTargetRef": {
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "busy"}}});
    cluster.create(&autoscaler, None).await.unwrap();
    let autoscalers = cluster.kind("hpa").await.unwrap();
    let autoscalers = autoscalers.in_namespace("default").unwrap();
    let scaled = async {
        loop {
            let raw = autoscalers.fetch("busy").await.unwrap().raw().unwrap();
            let status = raw["status"].clone();
            if status["desiredReplicas"] == 2 {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let status: Value = tokio::time::timeout(TIMEOUT, scaled).await.unwrap();
    let current = &status["currentMetrics"][0]["resource"]["current"];
    assert!(
        current["averageUtilization"].as_u64().unwrap() > 50,
        "{status}"
    );
    let conditions = status["conditions"].as_array().unwrap().iter();
    let conditions: Vec<&str> = conditions
        .map(|one| one["reason"].as_str().unwrap())
        .collect();
    let expected = [
        "SucceededRescale",
        "ValidMetricFound",
        "TooManyReplicas",
        "NotScaledToZero",
    ];
    assert_eq!(conditions, expected);
    let scale = deployments.scale("busy").await.unwrap();
    assert_eq!(scale.wanted, 2);
    let table = cluster.proxy();
    let v1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/busy";
    let v1 = table.get(v1, &[]).await.unwrap();
    assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 50);
    assert!(
        v1["status"]["currentCPUUtilizationPercentage"].is_u64(),
        "{v1}"
    );
    embedded.stop().await;
}
