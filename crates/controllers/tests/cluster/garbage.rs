//! The garbage collector.

use longshore_client::{DeleteOptions, Propagation};
use serde_json::{Value, json};

use crate::fixture::{Fixture, until};

async fn config_map(fixture: &Fixture, name: &str, owners: &[(&str, &str)]) -> String {
    let owners: Vec<Value> = owners
        .iter()
        .map(|(name, uid)| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid,
                   "blockOwnerDeletion": true})
        })
        .collect();
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": owners},
    });
    fixture
        .cluster
        .create(&map, None)
        .await
        .unwrap()
        .uid()
        .to_owned()
}

/// Names and number of owners of the ConfigMaps there are.
async fn maps(fixture: &Fixture) -> Vec<(String, usize)> {
    let view = fixture
        .cluster
        .configmaps()
        .in_namespace("default")
        .unwrap();
    let items = view.list().await.unwrap().items;
    let items = items.iter().filter(|item| item.name().len() == 1);
    items
        .map(|item| (item.name().to_owned(), item.meta().owner_references.len()))
        .collect()
}

async fn delete(fixture: &Fixture, name: &str, propagation: Propagation) {
    let view = fixture
        .cluster
        .configmaps()
        .in_namespace("default")
        .unwrap();
    let options = DeleteOptions {
        propagation: Some(propagation),
        ..DeleteOptions::default()
    };
    view.delete(name, &options).await.unwrap();
}

async fn expect(fixture: &Fixture, wanted: &[(&str, usize)]) {
    let wanted: Vec<(String, usize)> = wanted
        .iter()
        .map(|(name, owners)| ((*name).to_owned(), *owners))
        .collect();
    until("the right objects", async || {
        (maps(fixture).await == wanted).then_some(())
    })
    .await;
}

#[tokio::test]
async fn dependents_follow_their_last_owner() {
    for propagation in [Propagation::Background, Propagation::Foreground] {
        let fixture = Fixture::start().await;
        let a = config_map(&fixture, "a", &[]).await;
        let b = config_map(&fixture, "b", &[("a", &a)]).await;
        config_map(&fixture, "c", &[("b", &b)]).await;
        let o = config_map(&fixture, "o", &[]).await;
        config_map(&fixture, "x", &[("a", &a), ("o", &o)]).await;
        delete(&fixture, "a", propagation).await;
        expect(&fixture, &[("o", 0), ("x", 1)]).await;
    }
}

#[tokio::test]
async fn orphans_stay() {
    let fixture = Fixture::start().await;
    let a = config_map(&fixture, "a", &[]).await;
    config_map(&fixture, "b", &[("a", &a)]).await;
    delete(&fixture, "a", Propagation::Orphan).await;
    expect(&fixture, &[("b", 0)]).await;
}

#[tokio::test]
async fn an_owner_that_never_was_is_gone() {
    let fixture = Fixture::start().await;
    let a = config_map(&fixture, "a", &[]).await;
    config_map(&fixture, "b", &[("a", "another-uid")]).await;
    config_map(&fixture, "c", &[("a", &a)]).await;
    expect(&fixture, &[("a", 0), ("c", 1)]).await;
}

#[tokio::test]
async fn a_deleted_job_takes_its_pods_or_leaves_them() {
    for (propagation, left) in [
        (Propagation::Background, 0),
        (Propagation::Foreground, 0),
        (Propagation::Orphan, 2),
    ] {
        let fixture = Fixture::start().await;
        fixture
            .job(json!({"completions": 2, "parallelism": 2}))
            .await;
        until("pods", async || {
            (fixture.pods().await.len() == 2).then_some(())
        })
        .await;
        let options = DeleteOptions {
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        fixture.train().await.delete(&options).await.unwrap();
        until("the Job gone and its pods let go", async || {
            let jobs = fixture.cluster.jobs().list().await.unwrap().items;
            let pods = fixture.pods().await;
            let free = pods.iter().all(|pod| {
                pod.meta().finalizers.is_empty() && pod.meta().owner_references.is_empty()
            });
            (jobs.is_empty() && pods.len() == left && free).then_some(())
        })
        .await;
    }
}
