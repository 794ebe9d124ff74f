//! The states of nodes, and taints that evict pods.

use serde_json::{Value, json};

use crate::{
    objects::{condition, holds, list, spec, text},
    plane::Plane,
};

/// Creates a pod on a node.
async fn create(plane: &Plane, pod: &str, node: &str, tolerations: &Value) -> String {
    let pods = plane.path("v1", "pods");
    let mut object = json!({"metadata": {"name": pod}, "spec": spec(plane.namespace())});
    object["spec"]["nodeName"] = json!(plane.node(node));
    object["spec"]["tolerations"] = tolerations.clone();
    plane.create(&pods, &object).await;
    let path = format!("{pods}/{pod}");
    plane.until(&path, |pod| holds(pod, "Ready")).await;
    path
}

fn taints(node: &Value) -> Vec<(&str, &str)> {
    let taints = list(node, "/spec/taints").iter();
    taints
        .map(|taint| (text(taint, "/key"), text(taint, "/effect")))
        .collect()
}

#[tokio::test]
async fn pods_leave_a_node_that_is_not_ready() {
    let plane = Plane::with_nodes(2).await;
    let key = "node.kubernetes.io/not-ready";
    let tolerate = |seconds: u32| {
        json!([{
            "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds,
        }])
    };
    let short = create(&plane, "short", "0", &tolerate(1)).await;
    let long = create(&plane, "long", "0", &tolerate(600)).await;
    plane.set_node_ready("0", "False").await;
    let path = plane.node_path("0");
    plane
        .until(&path, |node| {
            let taints = taints(node);
            taints.contains(&(key, "NoSchedule")) && taints.contains(&(key, "NoExecute"))
        })
        .await;
    plane.until_gone(&short).await;
    let pod = plane.get(&long).await.ok();
    assert!(pod["metadata"]["deletionTimestamp"].is_null());
    plane.set_node_ready("0", "True").await;
    plane.until(&path, |node| taints(node).is_empty()).await;
}

#[tokio::test]
async fn a_taint_evicts_pods_that_do_not_tolerate_it() {
    let plane = Plane::with_nodes(1).await;
    let tolerations = json!([{"key": "example.org/away", "operator": "Exists"}]);
    let leaves = create(&plane, "leaves", "0", &json!([])).await;
    let stays = create(&plane, "stays", "0", &tolerations).await;
    let taint = json!({"spec": {"taints": [{"key": "example.org/away", "effect": "NoExecute"}]}});
    plane.merge(&plane.node_path("0"), &taint).await;
    plane.until_gone(&leaves).await;
    assert!(holds(&plane.get(&stays).await.ok(), "Ready"));
}

#[tokio::test]
async fn an_unschedulable_node_has_a_taint() {
    let plane = Plane::with_nodes(1).await;
    let path = plane.node_path("0");
    let key = "node.kubernetes.io/unschedulable";
    plane
        .merge(&path, &json!({"spec": {"unschedulable": true}}))
        .await;
    plane
        .until(&path, |node| taints(node) == [(key, "NoSchedule")])
        .await;
    plane
        .merge(&path, &json!({"spec": {"unschedulable": null}}))
        .await;
    plane.until(&path, |node| taints(node).is_empty()).await;
}

#[tokio::test]
#[ignore = "takes a minute"]
async fn the_state_of_a_silent_node_is_unknown() {
    let plane = Plane::with_nodes(2).await;
    let tolerations = json!([{"operator": "Exists"}]);
    let pod = create(&plane, "a", "0", &tolerations).await;
    plane.silence("0");
    let key = "node.kubernetes.io/unreachable";
    let node = plane
        .until(&plane.node_path("0"), |node| {
            // Nodes of other tests are also silent, and in this case no node's pods are evicted.
            taints(node).contains(&(key, "NoSchedule"))
        })
        .await;
    let ready = condition(&node, "Ready").unwrap();
    assert_eq!(ready["status"], "Unknown");
    assert_eq!(ready["reason"], "NodeStatusUnknown");
    plane.until(&pod, |pod| !holds(pod, "Ready")).await;
}

#[tokio::test]
#[ignore = "takes a minute"]
async fn pods_of_a_deleted_node_are_deleted() {
    let plane = Plane::with_nodes(2).await;
    let pod = create(&plane, "a", "0", &json!([])).await;
    plane.silence("0");
    plane.delete(&plane.node_path("0")).await.ok();
    plane.until_gone(&pod).await;
}
