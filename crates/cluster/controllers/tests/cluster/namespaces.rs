//! The namespace controller.

use longshore_client::{Cluster, DeleteOptions, Patch};
use serde_json::json;

use crate::fixture::{Fixture, container, until};

async fn create_namespace(cluster: &Cluster) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
    cluster.create(&namespace, None).await.unwrap();
}

/// Deletes the namespace and waits until it is removed.
async fn delete_namespace(cluster: &Cluster) {
    let namespaces = cluster.namespaces();
    let options = DeleteOptions::default();
    namespaces.delete("a", &options).await.unwrap();
    until("the removal of the namespace", async || {
        let found = namespaces.find("a").await.unwrap();
        found.is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_namespace_is_deleted_with_its_contents() {
    let fixture = Fixture::start().await;
    let cluster = &fixture.cluster;
    create_namespace(cluster).await;
    for object in [
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}),
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
            "spec": {"parallelism": 3, "completions": 3, "template": {"spec": {
                "restartPolicy": "Never", "containers": [container()]
            }}}
        }),
    ] {
        cluster.create(&object, Some("a")).await.unwrap();
    }
    let pods = cluster.pods().in_namespace("a").unwrap();
    until("pods", async || {
        (pods.list().await.unwrap().items.len() == 3).then_some(())
    })
    .await;
    delete_namespace(cluster).await;
    assert!(pods.list().await.unwrap().items.is_empty());
    assert!(cluster.jobs().list().await.unwrap().items.is_empty());
}

#[tokio::test]
async fn pods_are_deleted_first_and_conditions_report_the_rest() {
    let fixture = Fixture::start().await;
    let cluster = &fixture.cluster;
    create_namespace(cluster).await;
    let held = |kind: &str| {
        json!({"apiVersion": "v1", "kind": kind, "metadata": {
            "name": "held", "finalizers": ["example.org/hold"],
        }})
    };
    let mut pod = held("Pod");
    pod["spec"] = json!({"containers": [container()]});
    cluster.create(&pod, Some("a")).await.unwrap();
    cluster.create(&held("ConfigMap"), Some("a")).await.unwrap();
    let namespaces = cluster.namespaces();
    let options = DeleteOptions::default();
    namespaces.delete("a", &options).await.unwrap();
    let condition = async |kind: &str, reason: &str| {
        until(reason, async || {
            let item = namespaces.find("a").await.unwrap().unwrap();
            let found = item.raw().unwrap();
            let conditions = found["status"]["conditions"].as_array().cloned();
            let mut conditions = conditions.into_iter().flatten();
            conditions.find(|c| c["type"] == kind && c["reason"] == reason)
        })
        .await
    };
    let pods = cluster.pods().in_namespace("a").unwrap();
    let maps = cluster.configmaps().in_namespace("a").unwrap();
    // While there is a pod, nothing else is deleted.
    condition("NamespaceDeletionContentFailure", "ContentDeleted").await;
    let pod = pods.find("held").await.unwrap().unwrap();
    assert!(pod.meta().deletion_timestamp.is_some());
    let map = maps.find("held").await.unwrap().unwrap();
    assert!(map.meta().deletion_timestamp.is_none());

    let release = Patch::merge(json!({"metadata": {"finalizers": null}}));
    pods.patch("held", &release).await.unwrap();
    let left = condition("NamespaceContentRemaining", "SomeResourcesRemain").await;
    assert_eq!(
        left["message"],
        "Some resources are remaining: configmaps. has 1 resource instances"
    );
    let held = condition("NamespaceFinalizersRemaining", "SomeFinalizersRemain").await;
    assert_eq!(
        held["message"],
        "Some content in the namespace has finalizers remaining: example.org/hold in 1 resource instances"
    );
    maps.patch("held", &release).await.unwrap();
    until("the removal of the namespace", async || {
        let found = namespaces.find("a").await.unwrap();
        found.is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_default_service_account_is_recreated() {
    let fixture = Fixture::start().await;
    let accounts = fixture
        .cluster
        .serviceaccounts()
        .in_namespace("default")
        .unwrap();
    let account = until("account", async || accounts.find("default").await.unwrap()).await;
    account.delete(&DeleteOptions::default()).await.unwrap();
    until("a new service account", async || {
        accounts
            .find("default")
            .await
            .unwrap()
            .filter(|new| new.uid() != account.uid())
    })
    .await;
}

#[tokio::test]
async fn each_namespace_gets_the_ca_certificate() {
    let fixture = Fixture::start().await;
    let cluster = &fixture.cluster;
    create_namespace(cluster).await;
    for name in ["default", "a"] {
        let maps = cluster.configmaps().in_namespace(name).unwrap();
        let right = async || {
            let map = maps.find("kube-root-ca.crt").await.unwrap()?;
            (map.raw().unwrap()["data"] == json!({"ca.crt": "a certificate"})).then_some(map)
        };
        let map = until("the certificate", right).await;
        let patch = Patch::merge(json!({"data": {"ca.crt": "another", "more": "x"}}));
        map.patch(&patch).await.unwrap();
        until("the restored certificate", right).await;
        map.delete(&DeleteOptions::default()).await.unwrap();
        until("a new ConfigMap", async || {
            right().await.filter(|new| new.uid() != map.uid())
        })
        .await;
    }
    delete_namespace(cluster).await;
}
