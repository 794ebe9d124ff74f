//! Deployments.

use std::collections::BTreeMap;

use longshore_client::{DeleteOptions, Patch, Propagation, WatchEvent};
use serde_json::{Value, json};

use crate::fixture::{Fixture, until};

fn template(value: &str) -> Value {
    let mut container = crate::fixture::container();
    container["env"] = json!([{"name": "V", "value": value}]);
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}})
}

async fn create(fixture: &Fixture, mut spec: Value) {
    spec["selector"] = json!({"matchLabels": {"app": "web"}});
    spec["template"] = template("1");
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"}, "spec": spec,
    });
    fixture.cluster.create(&web, None).await.unwrap();
}

async fn change(fixture: &Fixture, spec: Value) {
    let view = fixture
        .cluster
        .deployments()
        .in_namespace("default")
        .unwrap();
    view.patch("web", &Patch::merge(json!({"spec": spec})))
        .await
        .unwrap();
}

async fn web(fixture: &Fixture) -> Value {
    let view = fixture
        .cluster
        .deployments()
        .in_namespace("default")
        .unwrap();
    view.fetch("web").await.unwrap().raw().unwrap()
}

/// Returns true if `kubectl rollout status` would report success.
fn is_done(web: &Value) -> bool {
    let (spec, status) = (&web["spec"], &web["status"]);
    status["observedGeneration"] == web["metadata"]["generation"]
        && ["replicas", "updatedReplicas", "availableReplicas"]
            .iter()
            .all(|field| status[field] == spec["replicas"])
}

async fn done(fixture: &Fixture) -> Value {
    until("the rollout", async || {
        fixture.end_pods(|_| None).await;
        fixture.make_pods_ready().await;
        let web = web(fixture).await;
        is_done(&web).then_some(web)
    })
    .await
}

/// The sizes and revisions of the ReplicaSets.
async fn sets(fixture: &Fixture) -> Vec<(i64, String)> {
    let view = fixture
        .cluster
        .replicasets()
        .in_namespace("default")
        .unwrap();
    let items = view.list().await.unwrap().items;
    let mut sets: Vec<_> = items
        .iter()
        .map(|item| {
            let raw = item.raw().unwrap();
            let revision = &item.meta().annotations["deployment.kubernetes.io/revision"];
            (raw["spec"]["replicas"].as_i64().unwrap(), revision.clone())
        })
        .collect();
    sets.sort_by(|a, b| a.1.cmp(&b.1));
    sets
}

/// The largest size that all ReplicaSets together have had since `start`. The status of the
/// Deployment may count more, because the pods of a smaller ReplicaSet are deleted later.
async fn largest_size(fixture: &Fixture, start: &Value) -> i64 {
    let view = fixture
        .cluster
        .replicasets()
        .in_namespace("default")
        .unwrap();
    let version = |raw: &Value| -> u64 {
        let version = raw["metadata"]["resourceVersion"].as_str();
        version.unwrap().parse().unwrap()
    };
    let items = view.list().await.unwrap().items;
    let last = items.iter().map(|item| version(&item.raw().unwrap())).max();
    let since = start["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = view.watch_since(since).await.unwrap();
    // The size before the first event.
    let mut sizes = BTreeMap::from([(String::new(), start["spec"]["replicas"].as_i64().unwrap())]);
    let mut largest = 0;
    loop {
        let event = watch.next(None).await.unwrap();
        let (WatchEvent::Added(item) | WatchEvent::Modified(item)) = event else {
            continue;
        };
        let raw = item.raw().unwrap();
        let size = raw["spec"]["replicas"].as_i64().unwrap();
        // Only the first ReplicaSet has revision 1.
        let revision = &item.meta().annotations["deployment.kubernetes.io/revision"];
        let name = match revision.as_str() {
            "1" => String::new(),
            _ => item.name().to_owned(),
        };
        sizes.insert(name, size);
        largest = largest.max(sizes.values().sum());
        if Some(version(&raw)) == last {
            return largest;
        }
    }
}

fn pairs(sets: &[(i64, &str)]) -> Vec<(i64, String)> {
    sets.iter()
        .map(|(size, revision)| (*size, (*revision).to_owned()))
        .collect()
}

const SURGE_ONLY: &str = r#"{"replicas": 3, "strategy":
    {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}"#;

#[tokio::test]
async fn a_rolling_update_keeps_the_minimum_of_available_pods() {
    let fixture = Fixture::with_node().await;
    create(&fixture, serde_json::from_str(SURGE_ONLY).unwrap()).await;
    let first = done(&fixture).await;
    assert_eq!(
        first["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "1"
    );
    let view = fixture
        .cluster
        .deployments()
        .in_namespace("default")
        .unwrap();
    let mut watch = view
        .watch_since(first["metadata"]["resourceVersion"].as_str().unwrap())
        .await
        .unwrap();
    change(&fixture, json!({"template": template("2")})).await;
    let last = done(&fixture).await;
    let version = last["metadata"]["resourceVersion"].clone();
    loop {
        let event = watch.next(None).await.unwrap();
        let (WatchEvent::Added(item) | WatchEvent::Modified(item)) = event else {
            continue;
        };
        let raw = item.raw().unwrap();
        assert!(
            raw["status"]["availableReplicas"].as_i64().unwrap() >= 3,
            "{}",
            raw["status"]
        );
        if raw["metadata"]["resourceVersion"] == version {
            break;
        }
    }
    assert!(largest_size(&fixture, &first).await <= 4);
    assert_eq!(sets(&fixture).await, pairs(&[(0, "1"), (3, "2")]));
    until("events", async || {
        let messages = fixture.events("web", "ScalingReplicaSet").await;
        let first = messages.iter().any(|text| text.ends_with(" from 0 to 3"));
        (first
            && messages
                .iter()
                .any(|text| text.contains("Scaled down replica set")))
        .then_some(())
    })
    .await;
    // Like `kubectl rollout undo`: restores the old template.
    change(&fixture, json!({"template": template("1")})).await;
    done(&fixture).await;
    assert_eq!(sets(&fixture).await, pairs(&[(0, "2"), (3, "3")]));
}

#[tokio::test]
async fn recreate_pause_and_a_restart_in_the_middle() {
    let mut fixture = Fixture::with_node().await;
    create(
        &fixture,
        json!({"replicas": 2, "strategy": {"type": "Recreate"}}),
    )
    .await;
    done(&fixture).await;
    change(&fixture, json!({"template": template("2")})).await;
    fixture.stop_controllers().await;
    fixture.start_controllers().await;
    done(&fixture).await;
    assert_eq!(sets(&fixture).await, pairs(&[(0, "1"), (2, "2")]));
    change(
        &fixture,
        json!({"paused": true, "template": template("3"), "replicas": 3}),
    )
    .await;
    until("scaled", async || {
        (sets(&fixture).await == pairs(&[(0, "1"), (3, "2")])).then_some(())
    })
    .await;
    change(&fixture, json!({"paused": false})).await;
    done(&fixture).await;
    assert_eq!(sets(&fixture).await, pairs(&[(0, "1"), (0, "2"), (3, "3")]));
}

#[tokio::test]
async fn deleting_a_deployment_deletes_or_orphans_its_replica_sets() {
    for (propagation, left) in [
        (Propagation::Background, 0),
        (Propagation::Foreground, 0),
        (Propagation::Orphan, 1),
    ] {
        let fixture = Fixture::with_node().await;
        create(&fixture, json!({"replicas": 2})).await;
        done(&fixture).await;
        let options = DeleteOptions {
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        let view = fixture
            .cluster
            .deployments()
            .in_namespace("default")
            .unwrap();
        view.delete("web", &options).await.unwrap();
        until("the expected objects", async || {
            fixture.end_pods(|_| None).await;
            let gone = view.find("web").await.unwrap().is_none();
            let sets = sets(&fixture).await.len();
            (gone && sets == left && fixture.pods().await.len() == 2 * left).then_some(())
        })
        .await;
        if left == 0 {
            continue;
        }
        // A new Deployment adopts the orphaned ReplicaSet.
        create(&fixture, json!({"replicas": 2})).await;
        done(&fixture).await;
        assert_eq!(sets(&fixture).await.len(), 1);
    }
}

#[tokio::test]
async fn a_replica_set_of_another_owner_is_a_hash_collision() {
    let fixture = Fixture::with_node().await;
    create(&fixture, json!({"replicas": 1})).await;
    done(&fixture).await;
    let view = fixture
        .cluster
        .replicasets()
        .in_namespace("default")
        .unwrap();
    let set = view.list().await.unwrap().items.remove(0);
    let mut other = set.raw().unwrap();
    let deployments = fixture
        .cluster
        .deployments()
        .in_namespace("default")
        .unwrap();
    deployments
        .delete("web", &DeleteOptions::background())
        .await
        .unwrap();
    until("gone", async || {
        fixture.end_pods(|_| None).await;
        fixture.pods().await.is_empty().then_some(())
    })
    .await;
    other["metadata"] = json!({"name": set.name(), "namespace": "default", "labels": {"x": "y"}});
    other["spec"]["selector"] = json!({"matchLabels": {"x": "y"}});
    other["spec"]["template"]["metadata"]["labels"] = json!({"x": "y"});
    other["spec"]["replicas"] = json!(0);
    view.create(&other).await.unwrap();
    create(&fixture, json!({"replicas": 1})).await;
    assert_eq!(done(&fixture).await["status"]["collisionCount"], 1);
}
