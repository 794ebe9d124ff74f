//! Volumes and claims.

use serde_json::{Value, json};

use crate::{
    objects::{holds, spec, text},
    plane::Plane,
};

/// Creates a volume of a class; returns its path.
async fn create_volume(plane: &Plane, name: &str, class: &str, affinity: &Value) -> String {
    let name = plane.node(name);
    let mut volume = json!({
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain", "storageClassName": class,
            "hostPath": {"path": "/tmp"},
        },
    });
    if !affinity.is_null() {
        volume["spec"]["nodeAffinity"] = affinity.clone();
    }
    plane.create("/api/v1/persistentvolumes", &volume).await;
    format!("/api/v1/persistentvolumes/{name}")
}

/// Creates the claim `data` of a class; returns its path.
async fn create_claim(plane: &Plane, class: &str) -> String {
    let claims = plane.path("v1", "persistentvolumeclaims");
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    plane.create(&claims, &claim).await;
    format!("{claims}/data")
}

/// Deletes a volume, which no claim needs any more.
async fn remove(plane: &Plane, volume: &str) {
    plane.delete(volume).await.ok();
    plane.until_gone(volume).await;
}

#[tokio::test]
async fn a_claim_is_bound_to_a_volume() {
    let plane = Plane::start().await;
    let class = plane.node("manual");
    let claim = create_claim(&plane, &class).await;
    assert_eq!(
        text(&plane.get(&claim).await.ok(), "/status/phase"),
        "Pending"
    );
    let volume = create_volume(&plane, "volume", &class, &Value::Null).await;
    let bound = plane
        .until(&claim, |claim| text(claim, "/status/phase") == "Bound")
        .await;
    assert_eq!(text(&bound, "/spec/volumeName"), plane.node("volume"));
    let object = plane
        .until(&volume, |volume| text(volume, "/status/phase") == "Bound")
        .await;
    assert_eq!(object["spec"]["claimRef"]["uid"], bound["metadata"]["uid"]);
    // A volume that is in use is protected.
    plane.delete(&claim).await.ok();
    plane.until_gone(&claim).await;
    plane
        .until(&volume, |volume| {
            text(volume, "/status/phase") == "Released"
        })
        .await;
    remove(&plane, &volume).await;
}

#[tokio::test]
async fn a_claim_that_waits_for_its_pod_gets_a_volume_that_the_node_can_use() {
    let plane = Plane::with_nodes(3).await;
    let class = plane.node("local");
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    let object = json!({
        "metadata": {"name": class}, "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    plane.create(classes, &object).await;
    let host = json!([{
        "key": "kubernetes.io/hostname", "operator": "In", "values": [plane.node("1")],
    }]);
    let affinity = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": host}]}});
    let volume = create_volume(&plane, "volume", &class, &affinity).await;
    let claim = create_claim(&plane, &class).await;
    let mut pod = json!({"metadata": {"name": "user"}, "spec": spec(plane.namespace())});
    pod["spec"]["volumes"] =
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let pods = plane.path("v1", "pods");
    plane.create(&pods, &pod).await;
    let path = format!("{pods}/user");
    let pod = plane.until(&path, |pod| holds(pod, "Ready")).await;
    assert_eq!(text(&pod, "/spec/nodeName"), plane.node("1"));
    let bound = plane.get(&claim).await.ok();
    assert_eq!(text(&bound, "/status/phase"), "Bound");
    // The pod protects the claim.
    plane.delete(&claim).await.ok();
    assert_eq!(plane.get(&claim).await.code, 200);
    plane.delete(&path).await.ok();
    plane.until_gone(&claim).await;
    remove(&plane, &volume).await;
    plane.delete(&format!("{classes}/{class}")).await.ok();
}
