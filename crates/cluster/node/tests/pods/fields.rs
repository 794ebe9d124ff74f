//! A pod with a field that this node does not support is rejected with an event that names
//! the field.

use longshore_client::Patch;

use super::*;
use crate::helpers::has_namespaces;

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_with_unsupported_fields_is_rejected() {
    let stage = Stage::new().await;
    let class = json!({"metadata": {"name": "gvisor"}, "handler": "runsc"});
    let classes = "/apis/node.k8s.io/v1/runtimeclasses";
    let proxy = stage.cluster.proxy();
    proxy.post(classes, &[], &class).await.unwrap();
    let rules = json!([{"action": "RestartAllContainers",
        "exitCodes": {"operator": "In", "values": [1]}}]);
    let mounts = json!([{"name": "v", "mountPath": "/m", "mountPropagation": "HostToContainer"}]);
    for (name, pointer, value, start) in [
        (
            "runtime",
            "/runtimeClassName",
            json!("gvisor"),
            "Error: pod runtimeClassName: this node has one runtime",
        ),
        (
            "rules",
            "/containers/0/restartPolicyRules",
            rules,
            "Error: container \"main\" restartPolicyRules: this node restarts containers one by one",
        ),
        (
            "mounts",
            "/containers/0/volumeMounts",
            mounts,
            "Error: container \"main\" volumeMount \"/m\" mountPropagation: ",
        ),
        (
            "message",
            "/containers/0/terminationMessagePath",
            json!("/tmp/../etc/passwd"),
            "Error: container \"main\" terminationMessagePath: the path must not",
        ),
    ] {
        let mut spec = run_once("echo it ran");
        spec["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        spec.pointer_mut(parent).unwrap()[key] = value;
        stage.run(name, spec).await;
        let pod = stage.until(name, waits_for_config).await;
        assert_eq!(pod["status"]["phase"], "Pending", "{pod:#}");
        let message = stage.event(name, "Failed").await;
        assert!(message.starts_with(start), "{message}");
    }
    stage.stop().await;
}

/// A pod that requests a part of a volume never gets the whole volume.
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_sub_path_is_rejected() {
    let stage = Stage::new().await;
    for (name, text, part) in [
        (
            "unset",
            "$(MISSING)/a",
            "names the variable \"MISSING\", which is not set",
        ),
        ("empty", "$(EMPTY)", "expands to an empty path"),
        ("up", "$(UP)/other", "must be relative and without"),
        ("absolute", "$(ROOT)", "must be relative and without"),
    ] {
        let mut spec = run_once("echo it ran");
        spec["containers"][0]["env"] = json!([
            {"name": "EMPTY", "value": ""}, {"name": "UP", "value": ".."},
            {"name": "ROOT", "value": "/etc"},
        ]);
        spec["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
        spec["containers"][0]["volumeMounts"] =
            json!([{"name": "v", "mountPath": "/tmp/m", "subPathExpr": text}]);
        stage.run(name, spec).await;
        let pod = stage.until(name, waits_for_config).await;
        assert_eq!(pod["status"]["phase"], "Pending", "{pod:#}");
        let message = pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"].clone();
        let message = message.as_str().unwrap();
        assert!(message.contains(part), "{message}");
        let event = stage.event(name, "Failed").await;
        assert!(event.contains(part), "{event}");
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sub_path_follows_the_annotation_that_it_names() {
    let stage = Stage::new().await;
    if !has_namespaces(&stage).await {
        return;
    }
    let mut spec = run_once("ls -d /longshore-test/v/part/*");
    spec["containers"][0]["env"] = json!([{"name": "PART", "valueFrom":
        {"fieldRef": {"fieldPath": "metadata.annotations['part']"}}}]);
    spec["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
    spec["containers"][0]["volumeMounts"] = json!([
        {"name": "v", "mountPath": "/longshore-test/v"},
        {"name": "v", "mountPath": "/longshore-test/m", "subPathExpr": "$(PART)/one"},
    ]);
    stage.run("p", spec).await;
    // Without the annotation, the path is "/one".
    stage.until("p", waits_for_config).await;
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    let patch = json!({"metadata": {"annotations": {"part": "part"}}});
    pods.patch("p", &Patch::merge(patch)).await.unwrap();
    let pod = stage.ended("p").await;
    assert_eq!(stage.log(&pod).await, "/longshore-test/v/part/one\n");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ephemeral_containers_are_rejected() {
    let stage = Stage::new().await;
    let mut spec = run_once("true");
    spec["ephemeralContainers"] = json!([{"name": "debug", "image": "any"}]);
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    let pod = json!({"metadata": {"name": "p"}, "spec": spec});
    let refused = pods.create(&pod).await.unwrap_err().to_string();
    let expected = "spec.ephemeralContainers: Forbidden: cannot be set on create";
    assert!(refused.contains(expected), "{refused}");
    stage.stop().await;
}
