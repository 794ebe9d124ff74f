//! StatefulSets.

use serde_json::{Value, json};

use crate::{
    kubelet::BEHAVIOR,
    objects::{holds, name, names, number, template, text, workload},
    plane::Plane,
};

/// Creates a StatefulSet `db`; returns its path and the path of the pods.
async fn create(plane: &Plane, replicas: u32, behavior: &str, spec: &Value) -> (String, String) {
    let template = template(plane.namespace(), "db", behavior);
    let mut set = workload("db", replicas, &template);
    set["spec"]["serviceName"] = json!("db");
    for (name, value) in spec.as_object().into_iter().flatten() {
        set["spec"][name] = value.clone();
    }
    let sets = plane.path("apps/v1", "statefulsets");
    plane.create(&sets, &set).await;
    (format!("{sets}/db"), plane.path("v1", "pods"))
}

async fn behave(plane: &Plane, pod: &str, behavior: &str) {
    let patch = json!({"metadata": {"annotations": {BEHAVIOR: behavior}}});
    plane.merge(pod, &patch).await;
}

#[tokio::test]
async fn pods_of_a_stateful_set_start_and_end_in_order() {
    let plane = Plane::with_nodes(1).await;
    let (path, pods) = create(&plane, 3, "unready", &json!({})).await;
    for number in 0..3 {
        let all: Vec<String> = (0..=number).map(|one| format!("db-{one}")).collect();
        let created = plane.until_items(&pods, |pods| names(pods) == all).await;
        let last = created
            .iter()
            .find(|pod| name(pod) == format!("db-{number}"));
        let labels = &last.unwrap()["metadata"]["labels"];
        assert_eq!(labels["apps.kubernetes.io/pod-index"], number.to_string());
        assert_eq!(
            labels["statefulset.kubernetes.io/pod-name"],
            format!("db-{number}")
        );
        let pod = format!("{pods}/db-{number}");
        plane
            .until(&pod, |pod| text(pod, "/status/phase") == "Running")
            .await;
        behave(&plane, &pod, "ready").await;
        plane.until(&pod, |pod| holds(pod, "Ready")).await;
    }
    plane
        .until(&path, |set| number(set, "/status/readyReplicas") == 3)
        .await;
    // A finalizer keeps the last pod, and the pod before it waits.
    let finalizer = json!({"metadata": {"finalizers": ["example.org/test"]}});
    plane.merge(&format!("{pods}/db-2"), &finalizer).await;
    plane.merge(&path, &json!({"spec": {"replicas": 1}})).await;
    plane
        .until(&format!("{pods}/db-2"), |pod| {
            !pod["metadata"]["deletionTimestamp"].is_null()
        })
        .await;
    let before = plane.get(&format!("{pods}/db-1")).await.ok();
    assert!(before["metadata"]["deletionTimestamp"].is_null());
    plane
        .merge(
            &format!("{pods}/db-2"),
            &json!({"metadata": {"finalizers": null}}),
        )
        .await;
    plane
        .until_items(&pods, |pods| names(pods) == ["db-0"])
        .await;
}

#[tokio::test]
async fn a_partition_limits_the_update_of_a_stateful_set() {
    let plane = Plane::with_nodes(1).await;
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}});
    let (path, pods) = create(&plane, 2, "ready", &json!({"updateStrategy": strategy})).await;
    plane
        .until(&path, |set| number(set, "/status/readyReplicas") == 2)
        .await;
    let image = json!([{"name": "main", "image": "example.org/image:2"}]);
    let update = json!({"spec": {"template": {"spec": {"containers": image}}}});
    plane.merge(&path, &update).await;
    let set = plane
        .until(&path, |set| {
            number(set, "/status/updatedReplicas") == 1
                && number(set, "/status/readyReplicas") == 2
                && set["status"]["currentRevision"] != set["status"]["updateRevision"]
        })
        .await;
    let revision = async |pod: &str| {
        let pod = plane.get(&format!("{pods}/{pod}")).await.ok();
        text(&pod, "/metadata/labels/controller-revision-hash").to_owned()
    };
    assert_eq!(
        revision("db-0").await,
        text(&set, "/status/currentRevision")
    );
    assert_eq!(revision("db-1").await, text(&set, "/status/updateRevision"));
    let partition = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}});
    plane.merge(&path, &partition).await;
    plane
        .until(&path, |set| {
            set["status"]["currentRevision"] == set["status"]["updateRevision"]
                && number(set, "/status/readyReplicas") == 2
        })
        .await;
    let revisions = plane.path("apps/v1", "controllerrevisions");
    assert_eq!(plane.list(&revisions).await.0.len(), 2);
}

#[tokio::test]
async fn claims_of_a_stateful_set_remain() {
    let plane = Plane::with_nodes(1).await;
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    let spec = json!({"volumeClaimTemplates": [claim], "podManagementPolicy": "Parallel"});
    let (path, pods) = create(&plane, 2, "ready", &spec).await;
    let claims = plane.path("v1", "persistentvolumeclaims");
    let all = ["data-db-0", "data-db-1"];
    plane
        .until_items(&claims, |claims| names(claims) == all)
        .await;
    let pod = plane
        .until(&format!("{pods}/db-1"), |pod| pod["kind"] == "Pod")
        .await;
    let claim = "/spec/volumes/0/persistentVolumeClaim/claimName";
    assert_eq!(text(&pod, claim), "data-db-1");
    plane.delete(&path).await.ok();
    plane.until_items(&pods, <[Value]>::is_empty).await;
    assert_eq!(names(&plane.list(&claims).await.0), all);
}
