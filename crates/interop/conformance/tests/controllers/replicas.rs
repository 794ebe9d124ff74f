//! ReplicaSets.

use serde_json::json;

use crate::{
    kubelet::BEHAVIOR,
    objects::{controller, name, names, number, template, text, workload},
    plane::Plane,
};

#[tokio::test]
async fn a_replica_set_adopts_and_releases_pods() {
    let plane = Plane::with_nodes(1).await;
    let pods = plane.path("v1", "pods");
    let template = template(plane.namespace(), "web", "ready");
    let mut orphan = template.clone();
    orphan["metadata"]["name"] = json!("orphan");
    plane.create(&pods, &orphan).await;
    let sets = plane.path("apps/v1", "replicasets");
    let set = plane.create(&sets, &workload("web", 2, &template)).await;
    let uid = text(&set, "/metadata/uid");
    let path = format!("{sets}/web");
    plane
        .until(&path, |set| number(set, "/status/readyReplicas") == 2)
        .await;
    let owned = plane.list(&pods).await.0;
    assert_eq!(owned.len(), 2);
    assert!(names(&owned).contains(&"orphan".to_owned()));
    assert!(owned.iter().all(|pod| controller(pod) == uid));
    let release = json!({"metadata": {"labels": {"app": "other"}}});
    plane.merge(&format!("{pods}/orphan"), &release).await;
    plane
        .until(&format!("{pods}/orphan"), |pod| controller(pod).is_empty())
        .await;
    plane
        .until_items(&plane.pods_of("web"), |pods| {
            pods.len() == 2 && pods.iter().all(|pod| controller(pod) == uid)
        })
        .await;
}

#[tokio::test]
async fn a_replica_set_replaces_pods_and_deletes_unready_pods_first() {
    let plane = Plane::with_nodes(1).await;
    let (pods, sets) = (
        plane.path("v1", "pods"),
        plane.path("apps/v1", "replicasets"),
    );
    let template = template(plane.namespace(), "web", "ready");
    plane.create(&sets, &workload("web", 3, &template)).await;
    let path = format!("{sets}/web");
    let is_ready = |set: &serde_json::Value| number(set, "/status/readyReplicas") == 3;
    plane.until(&path, is_ready).await;
    let first = plane.list(&pods).await.0;
    let deleted = name(&first[0]);
    plane.delete(&format!("{pods}/{deleted}")).await.ok();
    plane
        .until_items(&pods, |pods| {
            pods.len() == 3 && !names(pods).contains(&deleted)
        })
        .await;
    plane.until(&path, is_ready).await;
    let unready = name(&plane.list(&pods).await.0[1]);
    let patch = json!({"metadata": {"annotations": {BEHAVIOR: "unready"}}});
    plane.merge(&format!("{pods}/{unready}"), &patch).await;
    plane
        .until(&path, |set| number(set, "/status/readyReplicas") == 2)
        .await;
    plane.merge(&path, &json!({"spec": {"replicas": 2}})).await;
    let left = plane.until_items(&pods, |pods| pods.len() == 2).await;
    assert!(!names(&left).contains(&unready));
}

#[tokio::test]
async fn a_replication_controller_keeps_its_pods() {
    let plane = Plane::with_nodes(1).await;
    let controllers = plane.path("v1", "replicationcontrollers");
    let template = template(plane.namespace(), "web", "ready");
    let object = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"app": "web"}, "template": template},
    });
    plane.create(&controllers, &object).await;
    let path = format!("{controllers}/web");
    plane
        .until(&path, |it| number(it, "/status/availableReplicas") == 2)
        .await;
    plane.merge(&path, &json!({"spec": {"replicas": 1}})).await;
    plane
        .until_items(&plane.pods_of("web"), |pods| pods.len() == 1)
        .await;
}
