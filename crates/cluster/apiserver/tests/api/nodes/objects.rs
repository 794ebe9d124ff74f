//! Nodes, Leases, CSINodes, claims and ResourceSlices that nodes change.

use serde_json::{Value, json};

use super::{CLAIMS, CSI_NODES, LEASES, NODES, SLICES, check, claim, pod, server};
use crate::{common::PODS, users::As};

#[tokio::test]
async fn nodes_change_only_their_own_node() {
    let server = server().await;
    let n1 = As::node(&server, "n1");
    let label = |key: &str| {
        let mut labels = json!({});
        labels[key] = "x".into();
        json!({"metadata": {"labels": labels}})
    };
    let other = "node \"n1\" is not allowed to modify node \"n2\"";
    let taints = "node \"n1\" is not allowed to modify taints";
    // Admission has added the second taint.
    let same_taints = json!([
        {"key": "k", "effect": "NoSchedule", "value": ""},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
    ]);
    for (path, patch, code, end) in [
        ("n1", label("role"), 200, ""),
        ("n1", label("topology.kubernetes.io/zone"), 200, ""),
        ("n1", label("kubelet.kubernetes.io/x"), 200, ""),
        (
            "n1",
            label("node-restriction.kubernetes.io/x"),
            403,
            "is not allowed to modify labels: node-restriction.kubernetes.io/x",
        ),
        (
            "n1",
            label("node-role.kubernetes.io/control-plane"),
            403,
            "is not allowed to modify labels: node-role.kubernetes.io/control-plane",
        ),
        (
            "n1/status",
            label("k8s.io/x"),
            403,
            "is not allowed to modify labels: k8s.io/x",
        ),
        ("n1", json!({"spec": {"unschedulable": true}}), 200, ""),
        ("n1", json!({"spec": {"taints": []}}), 403, taints),
        ("n1/status", json!({"spec": {"taints": null}}), 403, taints),
        ("n1", json!({"spec": {"taints": same_taints}}), 200, ""),
        (
            "n1",
            json!({"metadata": {"ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": "n2", "uid": "1"},
            ]}}),
            403,
            "node \"n1\" is not allowed to modify ownerReferences",
        ),
        (
            "n1",
            json!({"spec": {"configSource": {"configMap": {
                "namespace": "a", "name": "b", "kubeletConfigKey": "c",
            }}}}),
            403,
            "node \"n1\" is not allowed to update configSource to a new non-nil configSource",
        ),
        (
            "n1/status",
            json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
            200,
            "",
        ),
        ("n2", label("role"), 403, other),
        (
            "n2/status",
            json!({"status": {"phase": "Running"}}),
            403,
            other,
        ),
    ] {
        let answer = n1.patch(&format!("{NODES}/{path}"), &patch).await;
        check(&answer, (code, end), &format_args!("{path} {patch}"));
    }
    // A whole object, which kubelets send to update the status.
    let mut stored = server.get(&format!("{NODES}/n1")).await.json();
    stored["status"]["phase"] = "Running".into();
    let path = format!("{NODES}/n1/status");
    assert_eq!(n1.call("PUT", &path, &stored).await.code, 200);
    stored["spec"]["taints"][0]["effect"] = "NoExecute".into();
    let mut stale = stored.clone();
    stale["metadata"]["resourceVersion"] = "".into();
    check(&n1.call("PUT", &path, &stale).await, (403, taints), &path);
    check(
        &n1.call("DELETE", &format!("{NODES}/n1"), &Value::Null)
            .await,
        (403, "cluster scope"),
        &"delete",
    );
}

#[tokio::test]
async fn nodes_register_only_themselves() {
    let server = server().await;
    let n3 = As::node(&server, "n3");
    let node = |name: &str, labels: Value, spec: Value| json!({"metadata": {"name": name, "labels": labels}, "spec": spec});
    let source = json!({"configSource": {"configMap": {
        "namespace": "a", "name": "b", "kubeletConfigKey": "c",
    }}});
    for (object, code, end) in [
        (
            node("n4", json!({}), json!({})),
            403,
            "node \"n3\" is not allowed to modify node \"n4\"",
        ),
        (
            json!({"metadata": {"generateName": "n3-"}}),
            403,
            "node \"n3\" is not allowed to modify node \"\"",
        ),
        (
            node(
                "n3",
                json!({"k8s.io/b": "x", "kubernetes.io/a": "x", "c": "x"}),
                json!({}),
            ),
            403,
            "node \"n3\" is not allowed to set the following labels: k8s.io/b, kubernetes.io/a",
        ),
        (
            node("n3", json!({}), source),
            403,
            "node \"n3\" is not allowed to create pods with a non-nil configSource",
        ),
        (
            node(
                "n3",
                json!({"kubernetes.io/hostname": "n3"}),
                json!({"taints": [{"key": "a", "effect": "NoExecute"}]}),
            ),
            201,
            "",
        ),
    ] {
        let answer = n3.call("POST", NODES, &object).await;
        check(&answer, (code, end), &object);
    }
    for (name, code) in [("n4", 403), ("n3", 200)] {
        let applied = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        let path = format!("{NODES}/{name}?fieldManager=kubelet");
        let answer = n3
            .send("PATCH", &path, "application/apply-patch+yaml", &applied)
            .await;
        assert_eq!(answer.code, code, "{name}: {}", answer.text());
    }
}

#[tokio::test]
async fn nodes_report_the_size_of_their_claims() {
    let server = server().await;
    server.made(CLAIMS, claim("k1", "v1")).await;
    server.made(CLAIMS, claim("k2", "v2")).await;
    let spec = json!({"volumes": [{"name": "k", "persistentVolumeClaim": {"claimName": "k1"}}]});
    server.made(PODS, pod("p", "n1", spec)).await;
    let n1 = As::node(&server, "n1");
    let start = "node \"n1\" is not allowed to update fields other than status.quantity and status.conditions: ";
    let size = json!({"status": {"capacity": {"storage": "2Gi"}}});
    for (name, patch, code, end) in [
        ("k1/status", size.clone(), 200, String::new()),
        (
            "k1/status",
            json!({"status": {"conditions": [{"type": "Resizing", "status": "True"}]}}),
            200,
            String::new(),
        ),
        (
            "k1/status",
            json!({"status": {"phase": "Lost"}}),
            403,
            format!("{start}status.phase"),
        ),
        (
            "k1/status",
            json!({"metadata": {"labels": {"a": "b"}}}),
            403,
            format!("{start}metadata.labels"),
        ),
        (
            "k1",
            json!({"metadata": {"labels": {"a": "b"}}}),
            403,
            "can only get individual resources of this type".into(),
        ),
        (
            "k2/status",
            size,
            403,
            "no relationship found between node 'n1' and this object".into(),
        ),
    ] {
        let answer = n1.patch(&format!("{CLAIMS}/{name}"), &patch).await;
        check(&answer, (code, &end), &format_args!("{name} {patch}"));
    }
}

#[tokio::test]
async fn nodes_have_their_own_lease_and_csi_node() {
    let server = server().await;
    let n1 = As::node(&server, "n1");
    let object = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
    let lease = "can only access node lease with the same name as the requesting node";
    let csi = "can only access CSINode with the same name as the requesting node";
    for (path, spec, end) in [
        (LEASES, json!({}), lease),
        (CSI_NODES, json!({"drivers": []}), csi),
    ] {
        let answer = n1.call("POST", path, &object("n2", spec.clone())).await;
        check(&answer, (403, end), &path);
        let answer = n1.call("POST", path, &object("n1", spec.clone())).await;
        check(&answer, (201, ""), &path);
        server.made(path, object("n2", spec)).await;
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        for (name, code) in [("n1", 200), ("n2", 403)] {
            let own = format!("{path}/{name}");
            assert_eq!(n1.get(&own).await, code, "{own}");
            check(&n1.patch(&own, &label).await, (code, end), &own);
        }
        assert_eq!(n1.get(path).await, 403);
    }
    // An update can create a Lease.
    let made = n1
        .call("PUT", &format!("{LEASES}/n3"), &object("n3", json!({})))
        .await;
    check(&made, (403, lease), &"n3");
    let elsewhere = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let answer = n1.call("POST", elsewhere, &object("n1", json!({}))).await;
    check(
        &answer,
        (
            403,
            "can only access leases in the \"kube-node-lease\" system namespace",
        ),
        &elsewhere,
    );
}

#[tokio::test]
async fn nodes_have_their_own_resource_slices() {
    let server = server().await;
    let n1 = As::node(&server, "n1");
    let slice = |name: &str, node: &str| {
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
        let spec =
            json!({"driver": "d.example.com", "nodeName": node, "pool": pool, "devices": []});
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let end = "can only create ResourceSlice with the same NodeName as the requesting node";
    let answer = n1.call("POST", SLICES, &slice("s2", "n2")).await;
    check(&answer, (403, end), &"s2");
    assert_eq!(n1.call("POST", SLICES, &slice("s1", "n1")).await.code, 201);
    server.made(SLICES, slice("s2", "n2")).await;
    for (name, code) in [("s1", 200), ("s2", 403)] {
        assert_eq!(n1.get(&format!("{SLICES}/{name}")).await, code, "{name}");
    }
    let own = format!("{SLICES}?fieldSelector=spec.nodeName%3Dn1");
    assert_eq!(n1.get(&own).await, 200);
    assert_eq!(n1.get(SLICES).await, 403);
    assert_eq!(n1.call("DELETE", SLICES, &Value::Null).await.code, 403);
    assert_eq!(n1.call("DELETE", &own, &Value::Null).await.code, 200);
    let left = server.get(SLICES).await.json();
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
}
