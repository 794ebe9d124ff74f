//! The scheduler.

use serde_json::{Value, json};

use crate::{
    objects::{condition, has_reason, holds, name, spec, template, text, workload},
    plane::Plane,
};

/// Creates a pod with additional fields of the spec; returns its path.
async fn create(plane: &Plane, name: &str, fields: &Value) -> String {
    let pods = plane.path("v1", "pods");
    let mut pod = json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": spec(plane.namespace()),
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        pod["spec"][name] = value.clone();
    }
    plane.create(&pods, &pod).await;
    format!("{pods}/{name}")
}

/// A container that requests CPU.
fn cpu(amount: &str) -> Value {
    let resources = json!({"requests": {"cpu": amount}});
    json!({"containers": [{"name": "main", "image": "x", "resources": resources}]})
}

/// Waits until a pod runs; returns the name of its node.
async fn node_of(plane: &Plane, path: &str) -> String {
    let pod = plane.until(path, |pod| holds(pod, "Ready")).await;
    text(&pod, "/spec/nodeName").to_owned()
}

/// Waits until a pod is reported as unschedulable; returns the message.
async fn unschedulable(plane: &Plane, path: &str) -> String {
    let pod = plane
        .until(path, |pod| has_reason(pod, "PodScheduled", "Unschedulable"))
        .await;
    assert_eq!(text(&pod, "/spec/nodeName"), "");
    text(condition(&pod, "PodScheduled").unwrap(), "/message").to_owned()
}

#[tokio::test]
async fn a_pod_waits_for_resources() {
    let plane = Plane::with_nodes(1).await;
    let first = create(&plane, "first", &cpu("3")).await;
    assert_eq!(node_of(&plane, &first).await, plane.node("0"));
    let second = create(&plane, "second", &cpu("2")).await;
    let message = unschedulable(&plane, &second).await;
    assert!(message.contains("Insufficient cpu"), "{message}");
    plane.delete(&first).await.ok();
    node_of(&plane, &second).await;
}

#[tokio::test]
async fn selectors_and_affinity_choose_nodes() {
    let plane = Plane::start().await;
    for zone in ["a", "b"] {
        let labels = json!({"metadata": {"labels": {"zone": zone}}});
        plane.add_node(zone, &labels).await;
    }
    let selector = json!({"nodeSelector": {"test": plane.namespace(), "zone": "b"}});
    let path = create(&plane, "selector", &selector).await;
    assert_eq!(node_of(&plane, &path).await, plane.node("b"));
    let expression = json!([{"key": "zone", "operator": "NotIn", "values": ["b"]}]);
    let required = json!({"nodeSelectorTerms": [{"matchExpressions": expression}]});
    let field = "requiredDuringSchedulingIgnoredDuringExecution";
    let affinity = json!({"affinity": {"nodeAffinity": {field: required}}});
    let path = create(&plane, "affinity", &affinity).await;
    assert_eq!(node_of(&plane, &path).await, plane.node("a"));
    let expression = json!([{"key": "zone", "operator": "In", "values": ["b"]}]);
    let preferred = json!([{"weight": 100, "preference": {"matchExpressions": expression}}]);
    let field = "preferredDuringSchedulingIgnoredDuringExecution";
    let affinity = json!({"affinity": {"nodeAffinity": {field: preferred}}});
    let path = create(&plane, "preferred", &affinity).await;
    assert_eq!(node_of(&plane, &path).await, plane.node("b"));
    let nowhere = json!({"nodeSelector": {"test": plane.namespace(), "zone": "c"}});
    let path = create(&plane, "nowhere", &nowhere).await;
    let message = unschedulable(&plane, &path).await;
    assert!(
        message.contains("didn't match Pod's node affinity/selector"),
        "{message}"
    );
    let labels = json!({"metadata": {"labels": {"zone": "c"}}});
    plane.add_node("c", &labels).await;
    assert_eq!(node_of(&plane, &path).await, plane.node("c"));
}

#[tokio::test]
async fn taints_keep_pods_away_that_do_not_tolerate_them() {
    let plane = Plane::start().await;
    let taints = json!([{"key": "example.org/gpu", "value": "yes", "effect": "NoSchedule"}]);
    plane
        .add_node("gpu", &json!({"spec": {"taints": taints}}))
        .await;
    let plain = create(&plane, "plain", &json!({})).await;
    let message = unschedulable(&plane, &plain).await;
    assert!(message.contains("untolerated taint"), "{message}");
    let toleration = json!([{"key": "example.org/gpu", "operator": "Equal", "value": "yes"}]);
    let path = create(&plane, "tolerant", &json!({"tolerations": toleration})).await;
    assert_eq!(node_of(&plane, &path).await, plane.node("gpu"));
    plane
        .merge(&plane.node_path("gpu"), &json!({"spec": {"taints": null}}))
        .await;
    node_of(&plane, &plain).await;
}

#[tokio::test]
async fn anti_affinity_separates_pods() {
    let plane = Plane::with_nodes(2).await;
    let term = json!([{
        "labelSelector": {"matchLabels": {"app": "web"}},
        "topologyKey": "kubernetes.io/hostname",
    }]);
    let field = "requiredDuringSchedulingIgnoredDuringExecution";
    let affinity = json!({"affinity": {"podAntiAffinity": {field: term}}});
    let mut nodes = Vec::new();
    for name in ["a", "b"] {
        let path = create(&plane, name, &affinity).await;
        nodes.push(node_of(&plane, &path).await);
    }
    nodes.sort();
    assert_eq!(nodes, [plane.node("0"), plane.node("1")]);
    let third = create(&plane, "c", &affinity).await;
    let message = unschedulable(&plane, &third).await;
    assert!(message.contains("pod anti-affinity rules"), "{message}");
    // Affinity to a pod's node.
    let together = json!({"affinity": {"podAffinity": {field: term}}});
    let path = create(&plane, "d", &together).await;
    unschedulable(&plane, &path).await;
    plane.delete(&third).await.ok();
    plane.delete(&path).await.ok();
}

#[tokio::test]
async fn affinity_places_pods_together() {
    let plane = Plane::with_nodes(3).await;
    let first = create(&plane, "first", &json!({})).await;
    let node = node_of(&plane, &first).await;
    let term = json!([{
        "labelSelector": {"matchLabels": {"app": "web"}},
        "topologyKey": "kubernetes.io/hostname",
    }]);
    let field = "requiredDuringSchedulingIgnoredDuringExecution";
    let affinity = json!({"affinity": {"podAffinity": {field: term}}});
    for name in ["a", "b"] {
        let path = create(&plane, name, &affinity).await;
        assert_eq!(node_of(&plane, &path).await, node);
    }
}

#[tokio::test]
async fn pods_spread_over_zones() {
    let plane = Plane::start().await;
    for (node, zone) in [("0", "a"), ("1", "a"), ("2", "b")] {
        let labels = json!({"metadata": {"labels": {"zone": zone}}});
        plane.add_node(node, &labels).await;
    }
    let mut template = template(plane.namespace(), "web", "ready");
    template["spec"]["topologySpreadConstraints"] = json!([{
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]);
    let sets = plane.path("apps/v1", "replicasets");
    plane.create(&sets, &workload("web", 4, &template)).await;
    let pods = plane
        .until_items(&plane.pods_of("web"), |pods| {
            pods.len() == 4 && pods.iter().all(|pod| holds(pod, "Ready"))
        })
        .await;
    let in_b = pods
        .iter()
        .filter(|pod| text(pod, "/spec/nodeName") == plane.node("2"));
    assert_eq!(in_b.count(), 2);
}

#[tokio::test]
async fn a_pod_preempts_pods_with_a_lower_priority() {
    let plane = Plane::with_nodes(1).await;
    let class = plane.node("important");
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    plane
        .create(
            classes,
            &json!({"metadata": {"name": class}, "value": 1000}),
        )
        .await;
    let low = create(&plane, "low", &cpu("3")).await;
    node_of(&plane, &low).await;
    let mut fields = cpu("3");
    fields["priorityClassName"] = json!(class);
    let high = create(&plane, "high", &fields).await;
    plane.until_gone(&low).await;
    assert_eq!(node_of(&plane, &high).await, plane.node("0"));
    plane.delete(&format!("{classes}/{class}")).await.ok();
}

#[tokio::test]
async fn a_pod_with_a_scheduling_gate_waits() {
    let plane = Plane::with_nodes(1).await;
    let gates = json!({"schedulingGates": [{"name": "example.org/wait"}]});
    let path = create(&plane, "gated", &gates).await;
    let pod = plane
        .until(&path, |pod| {
            has_reason(pod, "PodScheduled", "SchedulingGated")
        })
        .await;
    assert_eq!(name(&pod), "gated");
    plane
        .merge(&path, &json!({"spec": {"schedulingGates": null}}))
        .await;
    node_of(&plane, &path).await;
}
