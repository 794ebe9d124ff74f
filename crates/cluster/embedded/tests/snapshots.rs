//! Snapshots of embedded clusters, and the objects of new ones.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use longshore_client::{Change, Cluster, DeleteOptions, Patch, WatchEvent};
use longshore_embedded::{AuthorizationMode, EmbeddedCluster, Error, Options};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn caches_and_pods_follow_a_return_to_a_snapshot() {
    let embedded = longshore_embedded::start().await.unwrap();
    let cluster = embedded.cluster();
    let pods = cluster.pods().in_namespace("default").unwrap();
    let cache = pods.cache().await.unwrap();
    let mut changes = cache.subscribe();
    let snapshot = embedded.snapshot();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "c", "image": "any", "command": ["sleep", "1000"]}
    ]}});
    pods.create(&pod).await.unwrap();
    let is_running = |change: &Change<_>| {
        let phase: Option<String> = change.item().field(&["status", "phase"]).unwrap();
        phase.as_deref() == Some("Running")
    };
    let running = async { while !is_running(&changes.next().await.unwrap()) {} };
    tokio::time::timeout(TIMEOUT, running).await.unwrap();

    embedded.restore(&snapshot).await.unwrap();
    let gone = async { while !matches!(changes.next().await.unwrap(), Change::Gone(_)) {} };
    tokio::time::timeout(TIMEOUT, gone).await.unwrap();
    // The cluster works as before, even for a pod with the same name.
    pods.create(&pod).await.unwrap();
    let running = async { while !is_running(&changes.next().await.unwrap()) {} };
    tokio::time::timeout(TIMEOUT, running).await.unwrap();
    embedded.stop().await;
}

#[tokio::test]
async fn a_durable_cluster_neither_starts_from_a_snapshot_nor_returns_to_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options {
        ephemeral: false,
        data_dir: Some(dir.path().to_owned()),
        nodes: 0,
        ..Options::default()
    };
    let embedded = EmbeddedCluster::start(options.clone()).await.unwrap();
    let snapshot = embedded.snapshot();
    let refused = embedded.restore(&snapshot).await.unwrap_err();
    assert!(matches!(refused, Error::Restore(_)), "{refused}");
    embedded.stop().await;
    options.snapshot = Some(snapshot);
    let refused = EmbeddedCluster::start(options).await.err().unwrap();
    assert!(matches!(refused, Error::StoredSnapshot), "{refused}");
}

/// The objects that a new cluster has, as JSON.
async fn objects(cluster: &Cluster) -> Vec<serde_json::Value> {
    const KINDS: [&str; 8] = [
        "namespaces",
        "services",
        "serviceaccounts",
        "clusterroles",
        "clusterrolebindings",
        "roles",
        "apiservices",
        "priorityclasses",
    ];
    let mut objects = Vec::new();
    for kind in KINDS {
        let items = cluster
            .kind(kind)
            .await
            .unwrap()
            .list()
            .await
            .unwrap()
            .items;
        objects.extend(items.iter().map(|item| item.raw().unwrap()));
    }
    objects
}

#[tokio::test]
async fn the_next_servers_of_a_process_have_equal_objects_of_their_own() {
    let first = longshore_embedded::start_server().await.unwrap();
    let mut options = Options::server();
    options.clock = longshore_embedded::Clock::manual("2020-02-03T04:05:06Z".parse().unwrap());
    let second = EmbeddedCluster::start(options).await.unwrap();
    let (one, other) = (
        objects(&first.cluster()).await,
        objects(&second.cluster()).await,
    );
    assert!(one.len() > 100, "{}", one.len());
    assert_eq!(one.len(), other.len());
    for (one, other) in one.iter().zip(&other) {
        let (uid, created) = (
            &one["metadata"]["uid"],
            &one["metadata"]["creationTimestamp"],
        );
        assert_ne!(*uid, other["metadata"]["uid"]);
        assert_eq!(
            other["metadata"]["creationTimestamp"],
            "2020-02-03T04:05:06Z"
        );
        let one = one.to_string();
        let one = one.replace(
            uid.as_str().unwrap(),
            other["metadata"]["uid"].as_str().unwrap(),
        );
        let one = one.replace(created.as_str().unwrap(), "2020-02-03T04:05:06Z");
        assert_eq!(one, other.to_string());
    }
    // Each cluster has separate objects and watches from now on.
    let maps = second
        .cluster()
        .configmaps()
        .in_namespace("default")
        .unwrap();
    let mut watch = maps.watch().await.unwrap();
    maps.create(&json!({"metadata": {"name": "own"}}))
        .await
        .unwrap();
    let event = watch.next(Some(TIMEOUT)).await.unwrap();
    assert!(matches!(event, WatchEvent::Added(item) if item.name() == "own"));
    let maps = first
        .cluster()
        .configmaps()
        .in_namespace("default")
        .unwrap();
    assert!(maps.find("own").await.unwrap().is_none());
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn a_server_from_a_snapshot_has_its_objects_as_they_are() {
    let prepared = longshore_embedded::start_server().await.unwrap();
    let roles = prepared.cluster().kind("clusterroles").await.unwrap();
    roles
        .delete("edit", &DeleteOptions::default())
        .await
        .unwrap();
    let rules = json!({"rules": []});
    roles.patch("view", &Patch::merge(rules)).await.unwrap();
    let options = Options {
        snapshot: Some(prepared.snapshot()),
        ..Options::server()
    };
    let other = EmbeddedCluster::start(options).await.unwrap();
    assert_eq!(
        objects(&other.cluster()).await,
        objects(&prepared.cluster()).await
    );
    prepared.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_server_from_a_snapshot_without_default_roles_gets_them() {
    let options = Options {
        authorization: AuthorizationMode::AlwaysAllow,
        ..Options::server()
    };
    let prepared = EmbeddedCluster::start(options).await.unwrap();
    let admin = async |of: &EmbeddedCluster| {
        let roles = of.cluster().kind("clusterroles").await.unwrap();
        roles.find("cluster-admin").await.unwrap()
    };
    assert!(admin(&prepared).await.is_none());
    let options = Options {
        snapshot: Some(prepared.snapshot()),
        ..Options::server()
    };
    let other = EmbeddedCluster::start(options).await.unwrap();
    assert!(admin(&other).await.is_some());
    prepared.stop().await;
    other.stop().await;
}
