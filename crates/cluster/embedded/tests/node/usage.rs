//! Resource usage of pods and nodes: `metrics.k8s.io`.

use std::time::Duration;

use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);
const METRICS: &str = "/apis/metrics.k8s.io/v1beta1";

/// Returns the billionths of a core, and the kibibytes.
fn amounts(usage: &Value) -> (u64, u64) {
    let number = |field: &str, unit: &str| {
        let text = usage[field].as_str().unwrap();
        text.strip_suffix(unit).unwrap().parse().unwrap()
    };
    (number("cpu", "n"), number("memory", "Ki"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_usage_of_pods_and_nodes() {
    let embedded = longshore_embedded::start().await.unwrap();
    let cluster = embedded.cluster();
    let proxy = cluster.proxy();
    let groups = proxy.get("/apis", &[]).await.unwrap();
    let mut groups = groups["groups"].as_array().unwrap().iter();
    assert!(groups.any(|group| group["name"] == "metrics.k8s.io"));
    let resources = proxy.get(METRICS, &[]).await.unwrap();
    assert_eq!(resources["resources"][1]["kind"], "PodMetrics");

    let pods = cluster.pods().in_namespace("default").unwrap();
    for (name, script) in [("busy", "while :; do :; done"), ("idle", "sleep 1000")] {
        let container = json!({"name": "main", "image": "any", "command": ["sh", "-c", script]});
        let pod = json!({"metadata": {"name": name, "labels": {"app": name}},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}});
        pods.create(&pod).await.unwrap();
    }
    let path = format!("{METRICS}/namespaces/default/pods");
    let measured = async {
        loop {
            let list = proxy.get(&path, &[]).await.unwrap();
            assert_eq!(list["kind"], "PodMetricsList");
            let items = list["items"].as_array().unwrap();
            let usage = |name: &str| {
                let item = items.iter().find(|item| item["metadata"]["name"] == name)?;
                assert_eq!(item["containers"][0]["name"], "main");
                Some(amounts(&item["containers"][0]["usage"]))
            };
            if let (Some(busy), Some(idle)) = (usage("busy"), usage("idle"))
                && busy.0 > 10_000_000
                && busy.0 > 2 * idle.0
                && busy.1 > 0
                && idle.1 > 0
            {
                return;
            }
        }
    };
    tokio::time::timeout(TIMEOUT, measured).await.unwrap();
    let selected = proxy.get(&path, &[("labelSelector", "app=idle")]).await;
    assert_eq!(selected.unwrap()["items"].as_array().unwrap().len(), 1);
    let one = proxy.get(format!("{path}/busy"), &[]).await.unwrap();
    assert_eq!(one["metadata"]["labels"]["app"], "busy");
    let error = proxy.get(format!("{path}/other"), &[]).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("pods.metrics.k8s.io \"other\" not found"),
        "{text}"
    );

    let nodes = proxy.get(format!("{METRICS}/nodes"), &[]).await.unwrap();
    let node = &nodes["items"][0];
    assert_eq!(node["metadata"]["name"], "longshore");
    let (cpu, memory) = amounts(&node["usage"]);
    assert!(cpu > 0 && memory > 0, "{node}");
    let summary = "/api/v1/nodes/longshore/proxy/stats/summary";
    let summary = proxy.get(summary, &[]).await.unwrap();
    assert_eq!(summary["node"]["nodeName"], "longshore");
    let mut pods = summary["pods"].as_array().unwrap().iter();
    let busy = pods.find(|pod| pod["podRef"]["name"] == "busy").unwrap();
    assert!(busy["containers"][0]["startTime"].is_string(), "{busy}");
    assert!(
        busy["cpu"]["usageCoreNanoSeconds"].as_u64() > Some(0),
        "{busy}"
    );
    embedded.stop().await;
}
