//! Points 21 to 31: items, their metadata and labels, and errors.

use longshore::client::{
    BuiltinKind, DeleteOptions, Error, Kind, Propagation,
    kinds::{ConfigMap, Job, Namespace, Secret},
};
use serde_json::json;

use crate::common::{Fixture, TIMEOUT, invalid, workload};

#[tokio::test]
async fn point_21_items_are_snapshots_and_changes_return_the_latest_version() {
    let fixture = Fixture::start().await;
    let first = fixture.config_map("a").await;
    let second = first.labels().set("x", "1").await.unwrap();
    assert_eq!(first.labels().get("x"), None);
    assert_eq!(second.labels().get("x"), Some("1"));
    assert_ne!(first.version(), second.version());
    // A change does not require the latest resource version.
    let third = first.labels().set("y", "2").await.unwrap();
    assert_eq!(
        (third.labels().get("x"), third.labels().get("y")),
        (Some("1"), Some("2"))
    );
}

#[tokio::test]
async fn point_22_an_item_has_its_cluster_and_kind() {
    let fixture = Fixture::start().await;
    let map = fixture.config_map("a").await;
    assert_eq!(map.cluster().url(), fixture.cluster.url());
    assert_eq!(map.kind(), &*ConfigMap::info());
    assert_eq!(map.meta().name, "a");
    let raw = map.raw().unwrap();
    assert_eq!(
        (&raw["apiVersion"], &raw["kind"]),
        (&json!("v1"), &json!("ConfigMap"))
    );
    // List responses omit both fields from their items.
    let listed = fixture
        .view::<ConfigMap>()
        .filter("called")
        .unwrap()
        .list()
        .await
        .unwrap();
    assert_eq!(listed.items[0].raw().unwrap(), raw);
}

#[tokio::test]
async fn point_23_an_object_is_recreated_from_its_manifest() {
    let fixture = Fixture::start().await;
    let jobs = fixture.view::<Job>();
    let data = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"template": {
        "metadata": {"labels": {"app": "z"}}, "spec": workload(1)["template"]["spec"],
    }}});
    let mut data = data;
    data["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    let job = jobs.create(&data).await.unwrap();
    let mut spec = job.spec().unwrap();
    assert_eq!(spec["template"]["spec"]["containers"][0]["image"], "image");
    spec["template"] = json!(null);
    assert!(
        job.spec().unwrap()["template"].is_object(),
        "changing a copy changed the item"
    );
    let mut manifest = job.manifest().unwrap();
    assert_eq!(
        manifest["metadata"],
        json!({"name": "a", "labels": {"x": "y"}})
    );
    manifest["metadata"]["name"] = "b".into();
    let again = jobs.create(&manifest).await.unwrap();
    assert_ne!(again.uid(), job.uid());
    assert_eq!(
        again.spec().unwrap()["template"]["metadata"]["labels"]["app"],
        "z"
    );
}

#[tokio::test]
async fn point_24_fetch_returns_the_latest_version() {
    let fixture = Fixture::start().await;
    let old = fixture.config_map("a").await;
    let new = old.labels().set("x", "1").await.unwrap();
    assert_eq!(old.fetch().await.unwrap(), new);
    old.delete(&DeleteOptions::default()).await.unwrap();
    assert!(old.fetch().await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn point_25_delete_options() {
    let fixture = Fixture::start().await;
    let map = fixture.config_map("a").await;
    let of_another = DeleteOptions {
        uid: Some("other".into()),
        ..DeleteOptions::default()
    };
    assert!(map.delete(&of_another).await.unwrap_err().is_conflict());
    let exact = DeleteOptions {
        uid: Some(map.uid().into()),
        version: Some(map.version().into()),
        propagation: Some(Propagation::Background),
        grace_seconds: Some(0),
    };
    map.delete(&exact).await.unwrap();
    // Deleting a deleted item is not an error.
    map.delete(&DeleteOptions::default()).await.unwrap();
    map.wait_gone(TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn point_27_items_are_compared_by_uid_and_resource_version() {
    let fixture = Fixture::start().await;
    let map = fixture.config_map("a").await;
    let read = fixture.view::<ConfigMap>().fetch("a").await.unwrap();
    let listed = fixture
        .view::<ConfigMap>()
        .filter("called")
        .unwrap()
        .list()
        .await
        .unwrap();
    assert_eq!(map, read);
    assert_eq!(map, listed.items[0]);
    assert_ne!(map, map.labels().set("x", "1").await.unwrap());
    assert_ne!(map, fixture.config_map("b").await);
}

#[tokio::test]
async fn point_28_kinds_convert_to_and_from_their_names() {
    assert!(BuiltinKind::ALL.len() >= 18);
    for kind in BuiltinKind::ALL {
        assert_eq!(kind.to_string(), kind.info().gvk.kind);
        assert_eq!(kind.as_str().parse::<BuiltinKind>().unwrap(), *kind);
    }
}

#[tokio::test]
async fn point_29_metadata() {
    let fixture = Fixture::start().await;
    let data = json!({"metadata": {
        "name": "a", "labels": {"l": "1"}, "annotations": {"n": "2"}, "finalizers": ["example.com/hold"],
    }});
    let map = fixture.view::<ConfigMap>().create(&data).await.unwrap();
    let owned = json!({"metadata": {"name": "b", "ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": map.uid(),
    }]}});
    let owned = fixture.view::<ConfigMap>().create(&owned).await.unwrap();
    let meta = map.meta();
    assert_eq!(
        (meta.name.as_str(), meta.namespace.as_deref()),
        ("a", Some(fixture.namespace()))
    );
    assert_eq!(
        (meta.uid.as_str(), meta.resource_version.as_str()),
        (map.uid(), map.version())
    );
    assert_eq!(
        (&meta.labels["l"], &meta.annotations["n"]),
        (&"1".to_owned(), &"2".to_owned())
    );
    assert_eq!(meta.finalizers, ["example.com/hold"]);
    assert_eq!(owned.meta().owner_references[0].uid, map.uid());
    let age = jiff::Timestamp::now() - meta.creation_timestamp.unwrap();
    assert!(
        age.total(jiff::Unit::Second).unwrap().abs() < 600.0,
        "{age}"
    );
    assert_eq!(
        map.link(),
        format!("/api/v1/namespaces/{}/configmaps/a", fixture.namespace())
    );
    map.delete(&DeleteOptions::default()).await.unwrap();
    let going = map.fetch().await.unwrap();
    assert!(going.meta().deletion_timestamp.is_some());
    let release = longshore::client::Patch::merge(json!({"metadata": {"finalizers": null}}));
    going.patch(&release).await.unwrap();
    map.wait_gone(TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn point_29_spec_changes_increment_the_generation() {
    let fixture = Fixture::start().await;
    let deployments = fixture.view::<longshore::client::kinds::Deployment>();
    let data = json!({"metadata": {"name": "a"}, "spec": workload(1)});
    let first = deployments.create(&data).await.unwrap();
    assert_eq!(first.meta().generation, Some(1));
    let labelled = first.labels().set("x", "y").await.unwrap();
    assert_eq!(labelled.meta().generation, Some(1));
    first.set_scale(2).await.unwrap();
    assert_eq!(first.fetch().await.unwrap().meta().generation, Some(2));
}

#[tokio::test]
async fn point_30_labels_are_set_and_removed() {
    let fixture = Fixture::start().await;
    let map = fixture.config_map("a").await;
    let map = map
        .labels()
        .set_many([("x", "1"), ("example.com/y", "")])
        .await
        .unwrap();
    assert_eq!(map.labels().len(), 3);
    assert_eq!(map.labels().iter().next(), Some(("called", "a")));
    let map = map.labels().delete("x").await.unwrap();
    assert_eq!(
        (map.labels().get("x"), map.labels().get("example.com/y")),
        (None, Some(""))
    );
    map.labels().delete("never-there").await.unwrap();
    let annotated = map
        .annotations()
        .set("note", "anything, at all")
        .await
        .unwrap();
    assert_eq!(
        annotated.annotations().get("note"),
        Some("anything, at all")
    );
    assert_eq!(annotated.labels().to_map(), map.labels().to_map());
    let bare = annotated.annotations().delete("note").await.unwrap();
    assert!(bare.annotations().is_empty());
}

#[tokio::test]
async fn point_30_invalid_labels_are_rejected_before_any_request() {
    let fixture = Fixture::start().await;
    let map = fixture.config_map("a").await;
    fixture.cluster.close();
    for (key, value) in [
        ("", "x"),
        ("a b", "x"),
        ("-a", "x"),
        ("a/b/c", "x"),
        ("a", "x y"),
    ] {
        let refused = invalid(map.labels().set(key, value).await);
        assert!(refused.contains("label"), "{refused}");
    }
    invalid(map.labels().delete("a b").await);
    let refused = invalid(map.annotations().set("a b", "x").await);
    assert!(refused.contains("annotation"), "{refused}");
    // A valid label leads to a request, which fails on the closed cluster.
    assert!(matches!(
        map.labels().set("a", "b").await,
        Err(Error::Closed)
    ));
}

#[tokio::test]
async fn point_31_errors_contain_request_message_and_code() {
    let fixture = Fixture::start().await;
    fixture.config_map("a").await;
    let data = json!({"metadata": {"name": "a"}});
    let error = fixture.view::<ConfigMap>().create(&data).await.unwrap_err();
    let path = fixture.test.path("v1", "configmaps");
    assert_eq!(
        error.to_string(),
        format!("POST {path}: configmaps \"a\" already exists (409 AlreadyExists)")
    );
    assert!(error.is_already_exists() && !error.is_conflict());
    assert_eq!((error.code(), error.retry_after()), (Some(409), None));
    let details = error.status().unwrap().details.as_ref().unwrap();
    assert_eq!(
        (details.name.as_str(), details.kind.as_str()),
        ("a", "configmaps")
    );
}

#[tokio::test]
async fn point_31_missing_status_fields_and_connection_errors_are_reported() {
    let fixture = Fixture::start().await;
    let data = json!({"metadata": {"name": "a"}});
    let map = fixture.view::<ConfigMap>().create(&data).await.unwrap();
    assert!(map.conditions().is_err());
    let error = map
        .status_field::<u64>(&["observedGeneration"])
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "ConfigMap a has no status.observedGeneration"
    );
    let unreachable = longshore::Cluster::from_url("http://127.0.0.1:1/").unwrap();
    let error = unreachable.view::<Namespace>().list().await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("cannot reach the cluster at http://127.0.0.1:1"),
        "{text}"
    );
    assert!(error.is_unreachable() && error.code().is_none());
}

#[tokio::test]
async fn point_31_errors_contain_no_secrets() {
    let fixture = Fixture::start().await;
    let secrets = fixture.view::<Secret>();
    let data = json!({"metadata": {"name": "a"}, "data": {"key": "bm90LWJhc2U2NC1odW50ZXIy!"}});
    let text = secrets.create(&data).await.unwrap_err().to_string();
    assert!(!text.contains("aHVudGVyMg"), "{text}");
    let data = json!({"metadata": {"name": "a"}, "stringData": {"key": "hunter2"}});
    let made = secrets.create(&data).await.unwrap();
    let shown = format!("{made:?} {:?}", fixture.cluster);
    assert!(
        !shown.contains("hunter2") && !shown.contains("aHVudGVyMg"),
        "{shown}"
    );
}
