//! Pods that nodes create, change and delete.

use serde_json::{Value, json};

use super::{NODES, check, named, pod, server};
use crate::{
    common::{CONFIG_MAPS, PODS},
    users::As,
};

#[tokio::test]
async fn nodes_create_only_mirror_pods() {
    let server = server().await;
    let n1 = As::node(&server, "n1");
    let uid = server.get(&format!("{NODES}/n1")).await.json()["metadata"]["uid"].clone();
    let mirror = |name: &str, spec: Value| {
        let mut pod = pod(name, "n1", spec);
        pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": true});
        pod["metadata"]["ownerReferences"] = json!([owner]);
        pod
    };
    let with = |change: &dyn Fn(&mut Value)| {
        let mut pod = mirror("m", json!({}));
        change(&mut pod);
        pod
    };
    let volume = |source: Value| {
        let mut volume = source;
        volume["name"] = "v".into();
        mirror("m", json!({"volumes": [volume]}))
    };
    let mirrors = |what: &str| format!("a mirror pod may not {what}");
    let owner = "node \"n1\" can only create pods with an owner reference set to itself";
    let reference = |what: &str| format!("node \"n1\" can not create pods that reference {what}");
    for (object, end) in [
        (pod("m", "n1", json!({})),
         "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n1\" can only create mirror pods".to_owned()),
        (with(&|pod| pod["spec"]["nodeName"] = "n2".into()),
         "node \"n1\" can only create pods with spec.nodeName set to itself".to_owned()),
        (with(&|pod| pod["metadata"]["ownerReferences"] = json!([])), owner.to_owned()),
        (with(&|pod| pod["metadata"]["ownerReferences"][0]["name"] = "n2".into()), owner.to_owned()),
        (with(&|pod| pod["metadata"]["ownerReferences"][0]["controller"] = false.into()),
         "node \"n1\" can only create pods with a controller owner reference set to itself".to_owned()),
        (with(&|pod| pod["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = true.into()),
         "node \"n1\" must not set blockOwnerDeletion on an owner reference".to_owned()),
        (with(&|pod| pod["metadata"]["ownerReferences"][0]["uid"] = "x".into()),
         format!("node n1 UID mismatch: expected x got {}", uid.as_str().unwrap())),
        (mirror("m", json!({"serviceAccountName": "default"})), mirrors("reference service accounts")),
        (mirror("m", json!({"imagePullSecrets": [{"name": "x"}]})), mirrors("reference secrets")),
        (volume(json!({"secret": {"secretName": "x"}})), mirrors("reference secrets")),
        (volume(json!({"configMap": {"name": "x"}})), reference("configmaps")),
        (volume(json!({"persistentVolumeClaim": {"claimName": "x"}})), reference("persistentvolumeclaims")),
        (volume(json!({"csi": {"driver": "x"}})), reference("csidrivers (via CSI volumes)")),
        (volume(json!({"projected": {"sources": [{"serviceAccountToken": {"path": "x"}}]}})),
         mirrors("use ServiceAccountToken volume projections")),
        (volume(json!({"projected": {"sources": [{"clusterTrustBundle": {"name": "x", "path": "y"}}]}})),
         reference("clustertrustbundles")),
        (mirror("m", json!({"resourceClaims": [{"name": "r", "resourceClaimName": "x"}]})),
         reference("resourceclaims")),
    ] {
        let answer = n1.call("POST", PODS, &object).await;
        check(&answer, (403, &end), &object);
    }
    let fine = mirror(
        "m",
        json!({"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}),
    );
    let answer = n1.call("POST", PODS, &fine).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    assert_eq!(answer.json()["spec"]["serviceAccountName"], Value::Null);
    let path = format!("{PODS}/m?gracePeriodSeconds=0");
    assert_eq!(n1.call("DELETE", &path, &Value::Null).await.code, 200);
    // A mirror pod that an administrator creates does not give the node permissions.
    named(&server, CONFIG_MAPS, "c").await;
    let strong = mirror(
        "m",
        json!({"volumes": [{"name": "v", "configMap": {"name": "c"}}]}),
    );
    server.made(PODS, strong).await;
    assert_eq!(n1.get(&format!("{CONFIG_MAPS}/c")).await, 403);
}

#[tokio::test]
async fn nodes_change_only_their_own_pods() {
    let server = server().await;
    for (name, node) in [("p1", "n1"), ("p2", "n2"), ("p0", "")] {
        server.made(PODS, pod(name, node, json!({}))).await;
    }
    let n1 = As::node(&server, "n1");
    let status = json!({"status": {"message": "x"}});
    let own = "node \"n1\" can only update pod status for pods with spec.nodeName set to itself";
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let claims =
        json!({"status": {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "b"}]}});
    let extended = json!({"status": {"extendedResourceClaimStatus": {
        "resourceClaimName": "b",
        "requestMappings": [{"containerName": "c", "resourceName": "a.b/c", "requestName": "r"}],
    }}});
    for (name, patch, code, end) in [
        ("p1", &status, 200, ""),
        ("p2", &status, 403, own),
        ("p0", &status, 403, own),
        (
            "p1",
            &labels,
            403,
            "node \"n1\" cannot update labels through pod status",
        ),
        (
            "p1",
            &claims,
            403,
            "node \"n1\" cannot update resource claim statues",
        ),
        (
            "p1",
            &extended,
            403,
            "node \"n1\" cannot update extended resource claim status",
        ),
    ] {
        let answer = n1.patch(&format!("{PODS}/{name}/status"), patch).await;
        check(&answer, (code, end), &format_args!("{name} {patch}"));
    }
    let evicted = "node n1 can only evict pods with spec.nodeName set to itself";
    for (name, code, end) in [
        ("p2", 403, evicted),
        ("p0", 403, evicted),
        ("none", 404, "pod \"none\" not found"),
        ("p1", 201, ""),
    ] {
        let eviction = json!({"metadata": {"name": name}, "deleteOptions": {"dryRun": ["All"]}});
        let answer = n1
            .call("POST", &format!("{PODS}/{name}/eviction"), &eviction)
            .await;
        check(&answer, (code, end), &name);
    }
    let deleted = "node \"n1\" can only delete pods with spec.nodeName set to itself";
    for (name, code, end) in [
        ("p2", 403, deleted),
        ("p0", 403, deleted),
        ("none", 404, "pods \"none\" not found"),
        ("p1", 200, ""),
    ] {
        let answer = n1
            .call("DELETE", &format!("{PODS}/{name}"), &Value::Null)
            .await;
        check(&answer, (code, end), &name);
    }
    // The restriction also applies to nodes with the role of nodes or a strong role.
    let group = "rbac.authorization.k8s.io";
    let bound = json!({
        "metadata": {"name": "strong"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:nodes"}],
    });
    server
        .made(&format!("/apis/{group}/v1/clusterrolebindings"), bound)
        .await;
    let answer = n1.call("DELETE", &format!("{PODS}/p2"), &Value::Null).await;
    check(&answer, (403, deleted), &"p2");
    let answer = n1.call("DELETE", PODS, &Value::Null).await;
    check(&answer, (403, deleted), &"all pods");
    let answer = n1.patch(&format!("{PODS}/p2"), &labels).await;
    let end = "unexpected operation \"UPDATE\", node \"n1\" can only create and delete mirror pods";
    check(&answer, (403, end), &"p2");
    let target = json!({"metadata": {"name": "p0"}, "target": {"kind": "Node", "name": "n1"}});
    let answer = n1
        .call("POST", &format!("{PODS}/p0/binding"), &target)
        .await;
    let end = "unexpected pod subresource \"binding\", only 'status' and 'eviction' are allowed";
    check(&answer, (403, end), &"p0");
}
