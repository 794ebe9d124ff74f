//! The namespace controller.

use longshore_client::{Cluster, DeleteOptions, Patch};
use serde_json::json;

use crate::fixture::{Fixture, container, until};

async fn make_namespace(cluster: &Cluster) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
    cluster.create(&namespace, None).await.unwrap();
}

/// Deletes it, and waits until it is gone.
async fn end_namespace(cluster: &Cluster) {
    let namespaces = cluster.namespaces();
    let options = DeleteOptions::default();
    namespaces.delete("a", &options).await.unwrap();
    until("the namespace gone", async || {
        let found = namespaces.find("a").await.unwrap();
        found.is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_namespace_goes_with_all_that_is_in_it() {
    let fixture = Fixture::start().await;
    let cluster = &fixture.cluster;
    make_namespace(cluster).await;
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
    end_namespace(cluster).await;
    assert!(pods.list().await.unwrap().items.is_empty());
    assert!(cluster.jobs().list().await.unwrap().items.is_empty());
}

#[tokio::test]
async fn the_default_service_account_comes_back() {
    let fixture = Fixture::start().await;
    let accounts = fixture
        .cluster
        .serviceaccounts()
        .in_namespace("default")
        .unwrap();
    let account = until("account", async || accounts.find("default").await.unwrap()).await;
    account.delete(&DeleteOptions::default()).await.unwrap();
    until("a new account", async || {
        accounts
            .find("default")
            .await
            .unwrap()
            .filter(|new| new.uid() != account.uid())
    })
    .await;
}

#[tokio::test]
async fn each_namespace_gets_the_certificate() {
    let fixture = Fixture::start().await;
    let cluster = &fixture.cluster;
    make_namespace(cluster).await;
    for name in ["default", "a"] {
        let maps = cluster.configmaps().in_namespace(name).unwrap();
        let right = async || {
            let map = maps.find("kube-root-ca.crt").await.unwrap()?;
            (map.raw().unwrap()["data"] == json!({"ca.crt": "a certificate"})).then_some(map)
        };
        let map = until("the certificate", right).await;
        let patch = Patch::merge(json!({"data": {"ca.crt": "another", "more": "x"}}));
        map.patch(&patch).await.unwrap();
        until("the right one again", right).await;
        map.delete(&DeleteOptions::default()).await.unwrap();
        until("a new one", async || {
            right().await.filter(|new| new.uid() != map.uid())
        })
        .await;
    }
    end_namespace(cluster).await;
}
