//! Points 4, 5, 12, 13, 28, and 43: types of items, paths and versions of kinds, kinds of
//! lists, and aliases.

use std::time::Duration;

use longshore::client::{
    BuiltinKind, NamespacePhase, PodPhase, SecretType,
    kinds::{Any, ConfigMap, Deployment, NamespaceList, Pod, PodList},
    manifest,
    model::{Gvk, Scope},
    typed,
};
use serde_json::json;

use crate::common::{Fixture, TIMEOUT, invalid, misplaced};

#[tokio::test]
async fn point_04_created_items_are_converted_to_their_kind() {
    let fixture = Fixture::start().await;
    let data = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"},
    });
    let item = fixture
        .cluster
        .create(&data, Some(fixture.namespace()))
        .await;
    let item = item.unwrap();
    let map = item.clone().into_kind::<ConfigMap>().unwrap();
    assert_eq!(map.data().unwrap()["k"], "v");
    assert_eq!(map.fetch().await.unwrap(), map);
    assert_eq!(
        invalid(item.into_kind::<Deployment>()),
        "kind: expected Deployment (apps/v1), found ConfigMap (v1)"
    );
}

#[tokio::test]
async fn point_04_items_are_made_from_json() {
    let fixture = Fixture::start().await;
    let map = fixture.config_map("a").await;
    let json = fixture.cluster.proxy().get(&map.link(), &[]).await.unwrap();
    let view = fixture.view::<ConfigMap>();
    assert_eq!(view.item_from(&json).unwrap(), map);
    let any = fixture.cluster.item_from(&json).await.unwrap();
    assert_eq!(any.into_kind::<ConfigMap>().unwrap(), map);

    let list = fixture.test.path("v1", "configmaps");
    let list = fixture.cluster.proxy().get(&list, &[]).await.unwrap();
    assert!(view.list_from(&list).unwrap().items.contains(&map));
    assert_eq!(
        invalid(fixture.view::<Pod>().list_from(&list)),
        "kind: expected PodList (v1), found ConfigMapList (v1)"
    );
    assert_eq!(
        invalid(fixture.view::<Pod>().item_from(&json)),
        "kind: expected Pod (v1), found ConfigMap (v1)"
    );
    let elsewhere = fixture
        .cluster
        .configmaps()
        .in_namespace("elsewhere")
        .unwrap();
    let text = misplaced(elsewhere.item_from(&json));
    assert!(text.contains("expected elsewhere"), "{text}");
    for wrong in [json!(null), json!([]), json!({"metadata": {}})] {
        invalid(view.item_from(&wrong));
    }
}

#[tokio::test]
async fn point_05_kinds_of_lists_mean_the_kind_of_their_items() {
    let fixture = Fixture::start().await;
    for kind in ["PodList", "NodeList", "DeploymentList", "SecretList"] {
        let of_items = kind.trim_end_matches("List");
        let named: BuiltinKind = kind.parse().unwrap();
        assert_eq!((named.as_str(), named.list_kind()), (of_items, kind));
        let view = fixture.cluster.kind(kind).await.unwrap();
        assert_eq!(view.kind().gvk.kind, of_items);
    }
    let jobs = fixture
        .cluster
        .kind_in("batch/v1", "JobList")
        .await
        .unwrap();
    assert_eq!(jobs.kind().plural, "jobs");
    assert!("ShoeList".parse::<BuiltinKind>().is_err());
    invalid(fixture.cluster.kind("ShoeList").await);

    // A list is created item by item.
    let list = json!({
        "apiVersion": "v1", "kind": "ConfigMapList",
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
    });
    let refused = invalid(
        fixture
            .cluster
            .create(&list, Some(fixture.namespace()))
            .await,
    );
    assert!(refused.starts_with("kind: expected an object, found the list ConfigMapList"));
    let text = list.to_string();
    assert_eq!(manifest::read(&text).unwrap().len(), 2);
    let made = fixture
        .cluster
        .create_manifest(&text, Some(fixture.namespace()));
    assert_eq!(made.await.unwrap().len(), 2);
}

/// Defines a kind with several served versions and stores the first. Returns the group.
async fn define(fixture: &Fixture, versions: &[&str]) -> String {
    let group = format!("{}.example.com", fixture.namespace());
    let definition = definition(&group, versions);
    let definition = fixture.cluster.create(&definition, None).await.unwrap();
    manifest::settled(&definition).await.unwrap();
    let discovered = async {
        let version = format!("{group}/{}", versions[0]);
        while fixture.cluster.kind_in(&version, "Hat").await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, discovered).await.unwrap();
    group
}

fn definition(group: &str, versions: &[&str]) -> serde_json::Value {
    let versions: Vec<_> = versions
        .iter()
        .enumerate()
        .map(|(i, name)| {
            json!({
                "name": name, "served": true, "storage": i == 0,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            })
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("hats.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "versions": versions,
            "names": {"plural": "hats", "singular": "hat", "kind": "Hat", "listKind": "HatList"},
        },
    })
}

#[tokio::test]
async fn point_12_the_paths_of_a_kind_the_preferred_one_first() {
    let fixture = Fixture::start().await;
    let pods = fixture.cluster.pods();
    assert_eq!(pods.api_paths().await.unwrap(), ["/api/v1"]);
    let deployments = fixture.cluster.deployments().api_paths().await.unwrap();
    assert_eq!(deployments, ["/apis/apps/v1"]);
    let map = fixture.config_map("a").await;
    assert_eq!(map.api_paths().await.unwrap(), ["/api/v1"]);

    let group = define(&fixture, &["v1alpha1", "v2", "v1", "v1beta1"]).await;
    let hats = fixture
        .cluster
        .kind(&format!("hats.{group}"))
        .await
        .unwrap();
    let expected = ["v2", "v1", "v1beta1", "v1alpha1"].map(|v| format!("/apis/{group}/{v}"));
    assert_eq!(hats.api_paths().await.unwrap(), expected);
    assert_eq!(hats.kind().api_path(), expected[0]);
    // Requests use the same paths.
    let path = [&*expected[1], "namespaces", fixture.namespace(), "hats"];
    let list = fixture.cluster.proxy().get(path, &[]).await.unwrap();
    assert_eq!(list["kind"], "HatList");
}

#[tokio::test]
async fn point_13_an_older_version_is_used_where_the_newest_is_not_served() {
    let fixture = Fixture::start().await;
    let group = define(&fixture, &["v1beta1", "v1alpha1"]).await;
    let mut info = fixture.cluster.kind("deploy").await.unwrap().kind().clone();
    info.gvk = Gvk::from_api_version(&format!("{group}/v2"), "Hat");
    (info.plural, info.singular) = ("hats".into(), "hat".into());
    assert_eq!(info.scope, Scope::Namespaced);
    // A kind that this client expects in the version v2.
    let hats = fixture.cluster.view_of::<Any>(info.clone());
    let hats = hats.in_namespace(fixture.namespace()).unwrap();
    let data = json!({"metadata": {"name": "a"}, "spec": {"size": 7}});
    let made = hats.create(&data).await.unwrap();
    let served = format!("{group}/v1beta1");
    assert_eq!(made.raw().unwrap()["apiVersion"], served);
    assert_eq!(
        hats.list().await.unwrap().items,
        std::slice::from_ref(&made)
    );
    let watched = hats.watch_since(made.version()).await.unwrap();
    drop(watched);
    assert!(hats.find("none").await.unwrap().is_none());
    hats.delete("a", &Default::default()).await.unwrap();
    assert!(hats.find("a").await.unwrap().is_none());

    // No version is served.
    info.plural = "scarves".into();
    let none = fixture.cluster.view_of::<Any>(info).list().await;
    assert!(none.unwrap_err().is_not_found());
}

#[tokio::test]
async fn point_28_the_18_kinds_of_the_ancestor() {
    for kind in [
        "DaemonSet",
        "Deployment",
        "Node",
        "Namespace",
        "Pod",
        "ReplicaSet",
        "ReplicationController",
        "Service",
        "Secret",
    ] {
        let named: BuiltinKind = kind.parse().unwrap();
        assert_eq!(named.to_string(), kind);
        let list = format!("{kind}List");
        assert_eq!(list.parse::<BuiltinKind>().unwrap(), named);
        assert_eq!(named.list_kind(), list);
    }
}

#[tokio::test]
async fn point_43_types_of_kinds_have_short_names() {
    let fixture = Fixture::start().await;
    let pods: PodList = fixture.view::<Pod>().list().await.unwrap();
    assert!(pods.items.is_empty());
    let namespaces: NamespaceList = fixture.cluster.namespaces().list().await.unwrap();
    assert_eq!(namespaces.items[0].phase().unwrap(), NamespacePhase::Active);
    assert_eq!(PodPhase::from("Running"), typed::PodPhase::Running);
    assert_eq!(SecretType::from("Opaque"), typed::SecretType::Opaque);
}
