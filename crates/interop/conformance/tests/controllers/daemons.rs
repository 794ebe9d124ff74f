//! DaemonSets.

use serde_json::{Value, json};

use crate::{
    objects::{number, template, text, workload},
    plane::Plane,
};

#[tokio::test]
async fn a_daemon_set_has_a_pod_on_each_node_that_it_tolerates() {
    let plane = Plane::with_nodes(1).await;
    let taint = json!([{"key": "example.org/special", "effect": "NoSchedule"}]);
    plane
        .add_node("special", &json!({"spec": {"taints": taint}}))
        .await;
    let template = template(plane.namespace(), "agent", "ready");
    let mut set = workload("agent", 1, &template);
    set["spec"].as_object_mut().unwrap().remove("replicas");
    let sets = plane.path("apps/v1", "daemonsets");
    plane.create(&sets, &set).await;
    let path = format!("{sets}/agent");
    let is_on = |count: i64| {
        move |set: &Value| {
            set["status"]["observedGeneration"] == set["metadata"]["generation"]
                && [
                    "desiredNumberScheduled",
                    "numberReady",
                    "updatedNumberScheduled",
                ]
                .iter()
                .all(|field| number(set, &format!("/status/{field}")) == count)
        }
    };
    plane.until(&path, is_on(1)).await;
    plane.add_node("1", &json!({})).await;
    plane.until(&path, is_on(2)).await;
    let toleration = json!([{"key": "example.org/special", "operator": "Exists"}]);
    let update = json!({"spec": {"template": {"spec": {"tolerations": toleration}}}});
    plane.merge(&path, &update).await;
    plane.until(&path, is_on(3)).await;
    let pods = plane.list(&plane.pods_of("agent")).await.0;
    let mut nodes: Vec<&str> = pods.iter().map(|pod| text(pod, "/spec/nodeName")).collect();
    nodes.sort_unstable();
    let mut expected = ["0", "1", "special"].map(|name| plane.node(name));
    expected.sort_unstable();
    assert_eq!(nodes, expected);
    // The label excludes the node.
    let away = json!({"metadata": {"labels": {"test": "other"}}});
    plane.merge(&plane.node_path("1"), &away).await;
    plane.until(&path, is_on(2)).await;
}
