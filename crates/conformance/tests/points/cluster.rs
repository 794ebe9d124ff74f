//! Points 1 to 5: the connection, and making objects.

use longshore::{
    Cluster,
    client::{
        BuiltinKind, DeleteOptions, Error, Kind,
        kinds::{ConfigMap, Secret},
    },
};
use serde_json::json;

use crate::common::{Here, invalid, misplaced};

#[tokio::test]
async fn point_01_urls_with_and_without_a_slash_and_with_a_path() {
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
async fn point_01_a_kubeconfig_and_a_context_lead_to_a_cluster() {
    let here = Here::start().await;
    let path = here.test.kubeconfig();
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
async fn point_02_a_closed_cluster_refuses_requests() {
    let here = Here::start().await;
    let (pods, clone) = (here.cluster.pods(), here.cluster.clone());
    assert!(!clone.is_closed());
    here.cluster.close();
    here.cluster.close();
    assert!(clone.is_closed());
    assert!(matches!(pods.list().await, Err(Error::Closed)));
    assert!(matches!(
        clone.proxy().get("version", &[]).await,
        Err(Error::Closed)
    ));
}

#[tokio::test]
async fn point_03_every_kind_of_the_ancestor_has_a_global_view() {
    let here = Here::start().await;
    let cluster = &here.cluster;
    cluster.nodes().list().await.unwrap();
    cluster.namespaces().list().await.unwrap();
    cluster.pods().list().await.unwrap();
    cluster.services().list().await.unwrap();
    cluster.secrets().list().await.unwrap();
    cluster.replicasets().list().await.unwrap();
    cluster.replicationcontrollers().list().await.unwrap();
    cluster.daemonsets().list().await.unwrap();
    cluster.deployments().list().await.unwrap();
    // And of those that came later.
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
async fn point_03_any_kind_by_its_words() {
    let here = Here::start().await;
    for word in ["deploy", "Deployment", "deployments.apps", "deployments"] {
        let view = here.cluster.kind(word).await.unwrap();
        assert_eq!(view.kind().gvk.kind, "Deployment", "{word}");
    }
    let sets = here
        .cluster
        .kind_in("apps/v1", "StatefulSet")
        .await
        .unwrap();
    assert_eq!(sets.kind().plural, "statefulsets");
    let refused = invalid(here.cluster.kind("shoe").await);
    assert!(refused.contains("has no kind \"shoe\""), "{refused}");
}

#[tokio::test]
async fn point_03_a_kind_in_each_of_its_versions() {
    let here = Here::start().await;
    let group = format!("{}.example.com", here.namespace());
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
    let definition = here.cluster.create(&definition, None).await.unwrap();
    let limit = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    let word = format!("hats.{group}");
    // Servers serve a new kind a little later than they have it.
    while here.cluster.kind(&word).await.is_err() && tokio::time::Instant::now() < limit {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let preferred = here.cluster.kind(&word).await.unwrap();
    assert_eq!(preferred.kind().gvk.version, "v1");
    for version in ["v1", "v1beta1"] {
        let api_version = format!("{group}/{version}");
        let hats = here.cluster.kind_in(&api_version, "Hat").await.unwrap();
        assert_eq!(hats.kind().api_version(), api_version);
        hats.in_namespace(here.namespace())
            .unwrap()
            .list()
            .await
            .unwrap();
    }
    let other = here.cluster.kind_in(&format!("{group}/v2"), "Hat").await;
    let text = invalid(other);
    assert!(
        text.ends_with(&format!("it has it in {group}/v1, {group}/v1beta1")),
        "{text}"
    );
    definition.delete(&DeleteOptions::default()).await.unwrap();
}

#[tokio::test]
async fn point_04_create_gives_the_new_item_of_the_kind() {
    let here = Here::start().await;
    let data = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}});
    let item = here
        .cluster
        .create(&data, Some(here.namespace()))
        .await
        .unwrap();
    assert!(
        item.name().starts_with("a-") && item.name().len() > 2,
        "{}",
        item.name()
    );
    assert_eq!(item.kind().gvk.kind, "ConfigMap");
    assert_eq!(item.namespace(), Some(here.namespace()));
    let read = here.view::<ConfigMap>().fetch(item.name()).await.unwrap();
    assert_eq!(read.uid(), item.uid());
}

#[tokio::test]
async fn point_04_data_without_a_kind_or_of_another_namespace_is_refused() {
    let here = Here::start().await;
    let create =
        async |data: serde_json::Value, namespace| here.cluster.create(&data, namespace).await;
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
        "the data's namespace \"b\" contradicts \"c\": leave one out"
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
async fn point_04_manifests_of_several_documents() {
    let here = Here::start().await;
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
    let made = here
        .cluster
        .create_manifest(text, Some(here.namespace()))
        .await
        .unwrap();
    assert_eq!(
        made.iter().map(|item| item.name()).collect::<Vec<_>>(),
        ["a", "b"]
    );
    let map = here.view::<ConfigMap>().fetch("a").await.unwrap();
    assert_eq!(map.data().unwrap()["x"], "yes");
    let secret = here.view::<Secret>().fetch("b").await.unwrap();
    assert_eq!(secret.data().unwrap()["key"], b"value");
    // Nothing of a text that cannot be read is made.
    let broken = text.replace("name: a", "name: c") + "---\nkind: [";
    let refused = invalid(
        here.cluster
            .create_manifest(&broken, Some(here.namespace()))
            .await,
    );
    assert!(
        refused.starts_with("document 3 of the manifest is no YAML"),
        "{refused}"
    );
    assert!(here.view::<ConfigMap>().find("c").await.unwrap().is_none());
}

#[tokio::test]
async fn point_05_kinds_by_name_at_run_time() {
    let here = Here::start().await;
    let map = here.config_map("a").await;
    let kind: BuiltinKind = "ConfigMap".parse().unwrap();
    let view = here
        .cluster
        .view_of(kind)
        .in_namespace(here.namespace())
        .unwrap();
    let same = view.fetch("a").await.unwrap();
    assert_eq!((same.uid(), same.version()), (map.uid(), map.version()));
    assert_eq!(same.kind(), ConfigMap.info());
    let refused = invalid("configmap".parse::<BuiltinKind>());
    assert!(
        refused.starts_with("\"configmap\" is no built-in kind"),
        "{refused}"
    );
}
