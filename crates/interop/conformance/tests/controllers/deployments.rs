//! Deployments.

use serde_json::{Value, json};

use crate::{
    kubelet::BEHAVIOR,
    objects::{condition, has_reason, holds, list, number, template, text, workload},
    plane::Plane,
};

/// Creates a Deployment `web` of ready pods; returns its path and the path of its ReplicaSets.
async fn create(plane: &Plane, behavior: &str, spec: &Value) -> (String, String) {
    let template = template(plane.namespace(), "web", behavior);
    let mut deployment = workload("web", 3, &template);
    let fields = spec.as_object().into_iter().flatten();
    for (name, value) in fields {
        deployment["spec"][name] = value.clone();
    }
    let deployments = plane.path("apps/v1", "deployments");
    plane.create(&deployments, &deployment).await;
    let sets = format!(
        "{}?labelSelector=app%3Dweb",
        plane.path("apps/v1", "replicasets")
    );
    (format!("{deployments}/web"), sets)
}

/// Returns true if a Deployment has finished its rollout.
fn is_complete(deployment: &Value) -> bool {
    let replicas = number(deployment, "/spec/replicas");
    deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]
        && ["replicas", "updatedReplicas", "availableReplicas"]
            .iter()
            .all(|field| number(deployment, &format!("/status/{field}")) == replicas)
}

fn image(version: u32) -> Value {
    json!({"spec": {"template": {"spec": {"containers":
        [{"name": "main", "image": format!("example.org/image:{version}")}]}}}})
}

fn revision(set: &Value) -> &str {
    text(
        set,
        "/metadata/annotations/deployment.kubernetes.io~1revision",
    )
}

/// The ReplicaSet with a revision.
fn of_revision<'a>(sets: &'a [Value], wanted: &str) -> Option<&'a Value> {
    sets.iter().find(|set| revision(set) == wanted)
}

#[tokio::test]
async fn a_deployment_rolls_out_updates() {
    let plane = Plane::with_nodes(1).await;
    let (path, sets) = create(&plane, "ready", &json!({})).await;
    let first = plane.until(&path, is_complete).await;
    assert_eq!(revision(&first), "1");
    plane
        .until(&path, |it| {
            holds(it, "Available") && has_reason(it, "Progressing", "NewReplicaSetAvailable")
        })
        .await;
    plane.merge(&path, &image(2)).await;
    plane.until(&path, is_complete).await;
    let sets = plane
        .until_items(&sets, |sets| {
            let old = of_revision(sets, "1").map(|set| number(set, "/status/replicas"));
            let new = of_revision(sets, "2").map(|set| number(set, "/status/readyReplicas"));
            (old, new) == (Some(0), Some(3))
        })
        .await;
    for set in &sets {
        let hash = text(set, "/metadata/labels/pod-template-hash");
        assert!(!hash.is_empty());
        assert_eq!(text(set, "/metadata/name"), format!("web-{hash}"));
        assert_eq!(
            text(set, "/spec/selector/matchLabels/pod-template-hash"),
            hash
        );
    }
}

#[tokio::test]
async fn a_paused_deployment_rolls_out_after_it_is_resumed() {
    let plane = Plane::with_nodes(1).await;
    let (path, sets) = create(&plane, "ready", &json!({})).await;
    plane.until(&path, is_complete).await;
    plane.merge(&path, &json!({"spec": {"paused": true}})).await;
    plane
        .until(&path, |it| {
            has_reason(it, "Progressing", "DeploymentPaused")
        })
        .await;
    let changed = plane.merge(&path, &image(2)).await;
    let generation = &changed["metadata"]["generation"];
    plane
        .until(&path, |it| {
            &it["status"]["observedGeneration"] == generation
                && number(it, "/status/updatedReplicas") == 0
        })
        .await;
    assert_eq!(plane.list(&sets).await.0.len(), 1);
    plane
        .merge(&path, &json!({"spec": {"paused": false}}))
        .await;
    plane.until(&path, is_complete).await;
    plane
        .until_items(&sets, |sets| of_revision(sets, "2").is_some())
        .await;
}

#[tokio::test]
async fn a_deployment_returns_to_an_earlier_template() {
    let plane = Plane::with_nodes(1).await;
    let (path, sets) = create(&plane, "ready", &json!({})).await;
    plane.until(&path, is_complete).await;
    plane.merge(&path, &image(2)).await;
    plane.until(&path, is_complete).await;
    plane.merge(&path, &image(1)).await;
    plane.until(&path, is_complete).await;
    let sets = plane
        .until_items(&sets, |sets| {
            of_revision(sets, "3").is_some_and(|set| number(set, "/status/readyReplicas") == 3)
        })
        .await;
    assert_eq!(sets.len(), 2);
    let back = of_revision(&sets, "3").unwrap();
    let history = "/metadata/annotations/deployment.kubernetes.io~1revision-history";
    assert_eq!(text(back, history), "1");
    assert_eq!(revision(&plane.get(&path).await.ok()), "3");
}

#[tokio::test]
async fn a_deployment_without_progress_exceeds_its_deadline() {
    let plane = Plane::with_nodes(1).await;
    let spec = json!({"progressDeadlineSeconds": 2});
    let (path, _) = create(&plane, "hold", &spec).await;
    let deployment = plane
        .until(&path, |it| {
            has_reason(it, "Progressing", "ProgressDeadlineExceeded")
        })
        .await;
    assert!(!holds(&deployment, "Progressing"));
    let available = condition(&deployment, "Available").unwrap();
    assert_eq!(available["reason"], "MinimumReplicasUnavailable");
}

#[tokio::test]
async fn a_rollout_keeps_pods_until_new_pods_are_available() {
    let plane = Plane::with_nodes(1).await;
    let strategy = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    let (path, sets) = create(&plane, "ready", &json!({"strategy": strategy})).await;
    plane.until(&path, is_complete).await;
    let mut patch = image(2);
    patch["spec"]["template"]["metadata"] = json!({"annotations": {BEHAVIOR: "unready"}});
    plane.merge(&path, &patch).await;
    let deployment = plane
        .until(&path, |it| number(it, "/status/updatedReplicas") == 1)
        .await;
    assert_eq!(number(&deployment, "/status/availableReplicas"), 3);
    plane
        .until_items(&sets, |sets| {
            let counts = ["1", "2"]
                .map(|one| of_revision(sets, one).map(|set| number(set, "/status/replicas")));
            counts == [Some(3), Some(1)]
        })
        .await;
    // The new pod becomes ready, and the rollout continues.
    let mut patch = image(2);
    patch["spec"]["template"]["metadata"] = json!({"annotations": {BEHAVIOR: "ready"}});
    plane.merge(&path, &patch).await;
    plane.until(&path, is_complete).await;
}

#[tokio::test]
async fn a_deployment_with_recreate_ends_old_pods_first() {
    let plane = Plane::with_nodes(1).await;
    let spec = json!({"strategy": {"type": "Recreate"}, "replicas": 2});
    let (path, _) = create(&plane, "ready", &spec).await;
    plane.until(&path, is_complete).await;
    let pods = plane.path("v1", "pods");
    // An old pod does not end.
    let old = plane.list(&pods).await.0;
    let kept = format!("{pods}/{}", text(&old[0], "/metadata/name"));
    let behave = |behavior: &str| json!({"metadata": {"annotations": {BEHAVIOR: behavior}}});
    plane.merge(&kept, &behave("linger")).await;
    plane.merge(&path, &image(2)).await;
    plane.until_items(&pods, |pods| pods.len() == 1).await;
    let deployment = plane
        .until(&path, |it| {
            it["status"]["observedGeneration"] == it["metadata"]["generation"]
        })
        .await;
    assert_eq!(number(&deployment, "/status/updatedReplicas"), 0);
    plane.merge(&kept, &behave("ready")).await;
    plane.until(&path, is_complete).await;
    let images: Vec<Value> = plane.list(&pods).await.0;
    let images = images.iter().flat_map(|pod| list(pod, "/spec/containers"));
    assert!(
        images
            .map(|it| text(it, "/image"))
            .all(|image| image.ends_with(":2"))
    );
}

#[tokio::test]
async fn a_deployment_keeps_as_many_revisions_as_its_limit() {
    let plane = Plane::with_nodes(1).await;
    let spec = json!({"replicas": 1, "revisionHistoryLimit": 1});
    let (path, sets) = create(&plane, "ready", &spec).await;
    plane.until(&path, is_complete).await;
    for version in 2..=3 {
        plane.merge(&path, &image(version)).await;
        plane.until(&path, is_complete).await;
    }
    let sets = plane.until_items(&sets, |sets| sets.len() == 2).await;
    assert!(of_revision(&sets, "2").is_some() && of_revision(&sets, "3").is_some());
}

#[tokio::test]
async fn a_deployment_scales_its_replica_sets_in_proportion() {
    let plane = Plane::with_nodes(1).await;
    let strategy = json!({"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}});
    let (path, sets) = create(
        &plane,
        "ready",
        &json!({"strategy": strategy, "replicas": 4}),
    )
    .await;
    plane.until(&path, is_complete).await;
    let mut update = image(2);
    update["spec"]["template"]["metadata"] = json!({"annotations": {BEHAVIOR: "unready"}});
    plane.merge(&path, &update).await;
    let counts = |wanted: [i64; 2]| {
        move |sets: &[Value]| {
            let counts = ["1", "2"]
                .map(|one| of_revision(sets, one).map(|set| number(set, "/spec/replicas")));
            counts == wanted.map(Some)
        }
    };
    plane.until_items(&sets, counts([4, 2])).await;
    plane.merge(&path, &json!({"spec": {"replicas": 8}})).await;
    // 4 more pods for 4 old and 2 new pods; the surge stays.
    plane.until_items(&sets, counts([7, 3])).await;
}
