//! The garbage collector.

use longshore_client::{DeleteOptions, Patch, Propagation};
use serde_json::{Value, json};

use crate::fixture::{Fixture, until};

async fn config_map(fixture: &Fixture, name: &str, owners: &[(&str, &str)]) -> String {
    owned(
        fixture,
        ("v1", "ConfigMap"),
        name,
        ("v1", "ConfigMap"),
        owners,
    )
    .await
}

/// Creates an object of one kind with owners of another; returns its UID.
async fn owned(
    fixture: &Fixture,
    (version, kind): (&str, &str),
    name: &str,
    owner: (&str, &str),
    owners: &[(&str, &str)],
) -> String {
    let owners: Vec<Value> = owners
        .iter()
        .map(|(name, uid)| {
            json!({"apiVersion": owner.0, "kind": owner.1, "name": name, "uid": uid,
                   "blockOwnerDeletion": true})
        })
        .collect();
    let map = json!({
        "apiVersion": version, "kind": kind,
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

/// The names of the existing ConfigMaps, with their numbers of owners.
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
    until("the expected objects", async || {
        (maps(fixture).await == wanted).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_cycle_of_owners_is_deleted_as_a_whole() {
    for propagation in [Propagation::Background, Propagation::Foreground] {
        let fixture = Fixture::start().await;
        let a = config_map(&fixture, "a", &[]).await;
        let b = config_map(&fixture, "b", &[("a", &a)]).await;
        let c = config_map(&fixture, "c", &[("b", &b)]).await;
        let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": c,
                            "blockOwnerDeletion": true}]);
        let circle = Patch::merge(json!({"metadata": {"ownerReferences": owner}}));
        let view = fixture.cluster.configmaps();
        let view = view.in_namespace("default").unwrap();
        view.patch("a", &circle).await.unwrap();
        expect(&fixture, &[("a", 1), ("b", 1), ("c", 1)]).await;
        delete(&fixture, "a", propagation).await;
        expect(&fixture, &[]).await;
    }
}

#[tokio::test]
async fn dependents_are_deleted_with_their_last_owner() {
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
async fn orphans_are_kept() {
    let fixture = Fixture::start().await;
    let a = config_map(&fixture, "a", &[]).await;
    config_map(&fixture, "b", &[("a", &a)]).await;
    delete(&fixture, "a", Propagation::Orphan).await;
    expect(&fixture, &[("b", 0)]).await;
}

#[tokio::test]
async fn an_owner_that_never_existed_counts_as_deleted() {
    let fixture = Fixture::start().await;
    let a = config_map(&fixture, "a", &[]).await;
    config_map(&fixture, "b", &[("a", "another-uid")]).await;
    config_map(&fixture, "c", &[("a", &a)]).await;
    expect(&fixture, &[("a", 0), ("c", 1)]).await;
}

#[tokio::test]
async fn an_owner_is_found_by_its_kind_name_and_namespace() {
    let fixture = Fixture::start().await;
    let (configs, pods) = (("v1", "ConfigMap"), ("v1", "Secret"));
    let o = config_map(&fixture, "o", &[]).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    let namespace = fixture.cluster.create(&namespace, None).await.unwrap();
    let elsewhere = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "e", "namespace": "other"}});
    let elsewhere = fixture.cluster.create(&elsewhere, None).await.unwrap();
    config_map(&fixture, "a", &[("o", &o)]).await;
    config_map(&fixture, "b", &[("x", &o)]).await;
    owned(&fixture, configs, "c", pods, &[("o", &o)]).await;
    config_map(&fixture, "d", &[("e", elsewhere.uid())]).await;
    let cluster_scoped = ("v1", "Namespace");
    owned(
        &fixture,
        configs,
        "f",
        cluster_scoped,
        &[("other", namespace.uid())],
    )
    .await;
    // A single valid owner is enough.
    config_map(&fixture, "g", &[("o", &o), ("x", "another-uid")]).await;
    expect(&fixture, &[("a", 1), ("f", 1), ("g", 1), ("o", 0)]).await;
    let events = fixture.cluster.kind("events").await.unwrap();
    let found = until("an event about the other namespace", async || {
        let events = events.list().await.unwrap().items;
        let mut events = events.iter().map(|event| event.raw().unwrap());
        events.find(|event| event["reason"] == "OwnerRefInvalidNamespace")
    })
    .await;
    assert_eq!(found["type"], "Warning");
    assert_eq!(found["involvedObject"]["name"], "d");
    let message = found["message"].as_str().unwrap();
    assert!(
        message.starts_with("ownerRef [v1/ConfigMap, namespace: default, name: e, uid: "),
        "{message}"
    );
}

#[tokio::test]
async fn deleting_a_job_deletes_or_orphans_its_pods() {
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
        until(
            "the deletion of the Job and the release of its pods",
            async || {
                let jobs = fixture.cluster.jobs().list().await.unwrap().items;
                let pods = fixture.pods().await;
                let free = pods.iter().all(|pod| {
                    pod.meta().finalizers.is_empty() && pod.meta().owner_references.is_empty()
                });
                (jobs.is_empty() && pods.len() == left && free).then_some(())
            },
        )
        .await;
    }
}

const SHOE: (&str, &str) = ("example.com/v1", "Shoe");
const MAP: (&str, &str) = ("v1", "ConfigMap");

/// Defines the kind `Shoe`.
async fn define_shoes(fixture: &Fixture) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "shoes.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "shoes", "kind": "Shoe"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    fixture.cluster.create(&definition, None).await.unwrap();
}

async fn shoes(fixture: &Fixture) -> longshore_client::View<longshore_client::kinds::Any> {
    let view = fixture.cluster.kind("shoes.example.com").await.unwrap();
    view.in_namespace("default").unwrap()
}

async fn delete_shoe(fixture: &Fixture, name: &str, propagation: Propagation) {
    let options = DeleteOptions {
        propagation: Some(propagation),
        ..DeleteOptions::default()
    };
    shoes(fixture).await.delete(name, &options).await.unwrap();
}

#[tokio::test]
async fn rule_12_objects_of_custom_kinds_can_be_owners_and_dependents() {
    for (propagation, left) in [
        (Propagation::Background, vec![("o", 0)]),
        (Propagation::Foreground, vec![("o", 0)]),
        (Propagation::Orphan, vec![("b", 0), ("c", 1), ("o", 0)]),
    ] {
        let fixture = Fixture::start().await;
        define_shoes(&fixture).await;
        let a = owned(&fixture, SHOE, "a", MAP, &[]).await;
        let b = owned(&fixture, MAP, "b", SHOE, &[("a", &a)]).await;
        owned(&fixture, MAP, "c", MAP, &[("b", &b)]).await;
        owned(&fixture, MAP, "o", MAP, &[]).await;
        delete_shoe(&fixture, "a", propagation).await;
        expect(&fixture, &left).await;
        let shoes = shoes(&fixture).await;
        until("the deletion of the owner", async || {
            shoes.list().await.unwrap().items.is_empty().then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn rule_12_a_custom_object_is_deleted_with_its_owner() {
    let fixture = Fixture::start().await;
    define_shoes(&fixture).await;
    let a = config_map(&fixture, "a", &[]).await;
    owned(&fixture, SHOE, "b", MAP, &[("a", &a)]).await;
    delete(&fixture, "a", Propagation::Background).await;
    let shoes = shoes(&fixture).await;
    until("the deletion of the dependent", async || {
        shoes.list().await.unwrap().items.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn rule_12_a_missing_custom_owner_counts_as_deleted_once_its_kind_is_served() {
    let fixture = Fixture::start().await;
    owned(&fixture, MAP, "b", SHOE, &[("a", "another-uid")]).await;
    let o = config_map(&fixture, "o", &[]).await;
    owned(&fixture, MAP, "x", MAP, &[("o", &o)]).await;
    delete(&fixture, "o", Propagation::Background).await;
    // The kind is not served, so the owner may exist.
    expect(&fixture, &[("b", 1)]).await;
    define_shoes(&fixture).await;
    expect(&fixture, &[]).await;
}

#[tokio::test]
async fn rule_12_objects_deleted_with_a_definition_take_their_dependents() {
    let fixture = Fixture::start().await;
    define_shoes(&fixture).await;
    let a = owned(&fixture, SHOE, "a", MAP, &[]).await;
    owned(&fixture, MAP, "b", SHOE, &[("a", &a)]).await;
    let definitions = fixture.cluster.kind("crd").await.unwrap();
    let options = DeleteOptions::default();
    definitions
        .delete("shoes.example.com", &options)
        .await
        .unwrap();
    expect(&fixture, &[]).await;
}
