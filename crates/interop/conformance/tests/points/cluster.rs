//! Points 1 to 5: connections and the creation of objects.

use longshore::{
    Cluster,
    client::{
        BuiltinKind, DeleteOptions, Error, Kind,
        kinds::{Any, ConfigMap, Secret},
    },
};
use serde_json::json;

use crate::common::{Fixture, invalid, misplaced};

#[tokio::test]
async fn point_01_urls_with_and_without_a_trailing_slash() {
    for (given, shown) in [
        ("http://localhost:8001/", "http://localhost:8001"),
        ("http://localhost:8001", "http://localhost:8001"),
        ("http://localhost:8080/base/", "http://localhost:8080/base"),
    ] {
        assert_eq!(Cluster::from_url(given).unwrap().url(), shown);
    }
    for wrong in ["", "localhost:8001", "ftp://localhost/", "http://"] {
        assert!(
            matches!(Cluster::from_url(wrong), Err(Error::Config(_))),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn point_01_a_kubeconfig_and_a_context_select_the_cluster() {
    let fixture = Fixture::start().await;
    let path = fixture.test.kubeconfig();
    let by_file = Cluster::from_kubeconfig(Some(path), None).await.unwrap();
    assert!(
        by_file
            .namespaces()
            .find("default")
            .await
            .unwrap()
            .is_some()
    );
    let text = std::fs::read_to_string(path).unwrap();
    let config: serde_json::Value = serde_yaml_ng::from_str(&text).unwrap();
    let context = config["current-context"].as_str().unwrap();
    let by_context = Cluster::from_kubeconfig(Some(path), Some(context)).await;
    assert_eq!(by_context.unwrap().url(), by_file.url());
    let refused = Cluster::from_kubeconfig(Some(path), Some("none")).await;
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("no context \"none\""), "{text}");
}

#[tokio::test]
async fn point_02_a_closed_cluster_rejects_requests() {
    let fixture = Fixture::start().await;
    let (pods, clone) = (fixture.cluster.pods(), fixture.cluster.clone());
    assert!(!clone.is_closed());
    fixture.cluster.close();
    fixture.cluster.close();
    assert!(clone.is_closed());
    assert!(matches!(pods.list().await, Err(Error::Closed)));
    assert!(matches!(
        clone.proxy().get("version", &[]).await,
        Err(Error::Closed)
    ));
}

#[tokio::test]
async fn point_03_every_kind_of_the_python_library_has_a_view() {
    let fixture = Fixture::start().await;
    let cluster = &fixture.cluster;
    cluster.nodes().list().await.unwrap();
    cluster.namespaces().list().await.unwrap();
    cluster.pods().list().await.unwrap();
    cluster.services().list().await.unwrap();
    cluster.secrets().list().await.unwrap();
    cluster.replicasets().list().await.unwrap();
    cluster.replicationcontrollers().list().await.unwrap();
    cluster.daemonsets().list().await.unwrap();
    cluster.deployments().list().await.unwrap();
    // Kinds that the Python library does not have.
    cluster.jobs().list().await.unwrap();
    cluster.statefulsets().list().await.unwrap();
    cluster.configmaps().list().await.unwrap();
    cluster.events().list().await.unwrap();
    cluster.persistentvolumeclaims().list().await.unwrap();
    cluster.serviceaccounts().list().await.unwrap();
    cluster.leases().list().await.unwrap();
    cluster.ingresses().list().await.unwrap();
    cluster.proxy().get("/version", &[]).await.unwrap();
}

#[tokio::test]
async fn point_03_kinds_are_found_by_any_of_their_names() {
    let fixture = Fixture::start().await;
    for word in ["deploy", "Deployment", "deployments.apps", "deployments"] {
        let view = fixture.cluster.kind(word).await.unwrap();
        assert_eq!(view.kind().gvk.kind, "Deployment", "{word}");
    }
    let sets = fixture
        .cluster
        .kind_in("apps/v1", "StatefulSet")
        .await
        .unwrap();
    assert_eq!(sets.kind().plural, "statefulsets");
    let refused = invalid(fixture.cluster.kind("shoe").await);
    assert!(refused.contains("has no kind \"shoe\""), "{refused}");
}

#[tokio::test]
async fn point_03_a_kind_is_available_in_each_served_version() {
    let fixture = Fixture::start().await;
    let group = format!("{}.example.com", fixture.namespace());
    let version = |name: &str| {
        json!({
            "name": name, "served": true, "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object"}},
        })
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("hats.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "hats", "singular": "hat", "kind": "Hat", "listKind": "HatList"},
            "versions": [version("v1beta1"), version("v1")],
        },
    });
    let definition = fixture.cluster.create(&definition, None).await.unwrap();
    let word = format!("hats.{group}");
    // Servers serve a new kind some time after its creation, and not all versions at once.
    let is_served = async || {
        let found = fixture.cluster.kind(&word).await;
        found.is_ok_and(|view| view.kind().gvk.version == "v1")
    };
    let limit = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    while !is_served().await && tokio::time::Instant::now() < limit {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let preferred = fixture.cluster.kind(&word).await.unwrap();
    assert_eq!(preferred.kind().gvk.version, "v1");
    for version in ["v1", "v1beta1"] {
        let api_version = format!("{group}/{version}");
        let hats = fixture.cluster.kind_in(&api_version, "Hat").await.unwrap();
        assert_eq!(hats.kind().api_version(), api_version);
        hats.in_namespace(fixture.namespace())
            .unwrap()
            .list()
            .await
            .unwrap();
    }
    let other = fixture.cluster.kind_in(&format!("{group}/v2"), "Hat").await;
    let text = invalid(other);
    assert!(
        text.ends_with(&format!(
            "it serves the kind in {group}/v1, {group}/v1beta1"
        )),
        "{text}"
    );
    definition.delete(&DeleteOptions::default()).await.unwrap();
}

#[tokio::test]
async fn point_04_create_returns_the_new_item() {
    let fixture = Fixture::start().await;
    let data = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}});
    let item = fixture
        .cluster
        .create(&data, Some(fixture.namespace()))
        .await
        .unwrap();
    assert!(
        item.name().starts_with("a-") && item.name().len() > 2,
        "{}",
        item.name()
    );
    assert_eq!(item.kind().gvk.kind, "ConfigMap");
    assert_eq!(item.namespace(), Some(fixture.namespace()));
    let read = fixture
        .view::<ConfigMap>()
        .fetch(item.name())
        .await
        .unwrap();
    assert_eq!(read.uid(), item.uid());
}

#[tokio::test]
async fn point_04_data_without_a_kind_or_for_another_namespace_is_rejected() {
    let fixture = Fixture::start().await;
    let create =
        async |data: serde_json::Value, namespace| fixture.cluster.create(&data, namespace).await;
    let named = json!({"name": "a"});
    let no_kind = create(json!({"apiVersion": "v1", "metadata": named}), None).await;
    assert_eq!(
        invalid(no_kind),
        "the object has no kind: every object needs one"
    );
    let shoe = json!({"apiVersion": "v1", "kind": "Shoe", "metadata": named});
    let shoe = invalid(create(shoe, None).await);
    assert!(shoe.contains("has no kind v1, Kind=Shoe: "), "{shoe}");
    let elsewhere = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"},
    });
    assert_eq!(
        misplaced(create(elsewhere, Some("c")).await),
        "the namespace \"b\" in the object contradicts \"c\": omit one of them"
    );
    let nowhere = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": named});
    let text = misplaced(create(nowhere, None).await);
    assert!(text.starts_with("configmaps need a namespace"), "{text}");
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": named});
    assert_eq!(
        misplaced(create(node, Some("c")).await),
        "nodes are in no namespace, so not in \"c\""
    );
}

#[tokio::test]
async fn point_04_manifests_may_have_several_documents() {
    let fixture = Fixture::start().await;
    let text = "
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {x: 'yes'}
---
apiVersion: v1
kind: Secret
metadata: {name: b}
stringData: {key: value}
";
    let made = fixture
        .cluster
        .create_manifest(text, Some(fixture.namespace()))
        .await
        .unwrap();
    assert_eq!(
        made.iter().map(|item| item.name()).collect::<Vec<_>>(),
        ["a", "b"]
    );
    let map = fixture.view::<ConfigMap>().fetch("a").await.unwrap();
    assert_eq!(map.data().unwrap()["x"], "yes");
    let secret = fixture.view::<Secret>().fetch("b").await.unwrap();
    assert_eq!(secret.data().unwrap()["key"], b"value");
    // No object of an invalid manifest is created.
    let broken = text.replace("name: a", "name: c") + "---\nkind: [";
    let refused = invalid(
        fixture
            .cluster
            .create_manifest(&broken, Some(fixture.namespace()))
            .await,
    );
    assert!(
        refused.starts_with("document 3 of the manifest is not valid YAML"),
        "{refused}"
    );
    assert!(
        fixture
            .view::<ConfigMap>()
            .find("c")
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn point_05_kinds_by_name_at_run_time() {
    let fixture = Fixture::start().await;
    let map = fixture.config_map("a").await;
    let kind: BuiltinKind = "ConfigMap".parse().unwrap();
    let view = fixture
        .cluster
        .view_of::<Any>(kind)
        .in_namespace(fixture.namespace())
        .unwrap();
    let same = view.fetch("a").await.unwrap();
    assert_eq!((same.uid(), same.version()), (map.uid(), map.version()));
    assert_eq!(same.kind(), &*ConfigMap::info());
    let refused = invalid("configmap".parse::<BuiltinKind>());
    assert!(
        refused.starts_with("\"configmap\" is not a built-in kind"),
        "{refused}"
    );
}
