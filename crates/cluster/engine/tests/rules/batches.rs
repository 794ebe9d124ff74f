//! Creates in one transaction, and the revision of the last change of kinds.

use longshore_engine::{Create, WriteOptions};
use serde_json::{Value, json};

use crate::support::{api, config, kind};

fn request(object: Value) -> Create {
    Create {
        kind: kind("configmaps"),
        namespace: Some("default".to_owned()),
        object,
        options: WriteOptions::default(),
    }
}

#[tokio::test]
async fn only_missing_objects_are_created() {
    let api = api();
    let before = api.create("configmaps", config("a")).await.unwrap();
    let requests = vec![request(config("a")), request(config("b"))];
    api.0.create_missing(requests).await.unwrap();
    let kept = api.get("configmaps", "a").unwrap();
    assert_eq!(kept.revision(), before.revision());
    assert!(api.get("configmaps", "b").unwrap().revision() > before.revision());
}

#[tokio::test]
async fn all_or_none_are_created() {
    let api = api();
    let revision = api.0.revision();
    let elsewhere = Create {
        namespace: Some("missing".to_owned()),
        ..request(config("b"))
    };
    let requests = vec![request(config("a")), elsewhere];
    let error = api.0.create_missing(requests).await.unwrap_err();
    assert_eq!(error.status().code, 404);
    assert!(api.get("configmaps", "a").is_err());
    assert_eq!(api.0.revision(), revision);
}

#[tokio::test]
async fn every_change_of_a_kind_counts() {
    let api = api();
    let kinds = [kind("configmaps"), kind("secrets")];
    let mut last = api.0.last_change(&kinds);
    let mut changed = |what: &str, expected: bool| {
        let now = api.0.last_change(&kinds);
        assert_eq!(now > last, expected, "{what}");
        last = now;
    };
    api.create("configmaps", config("a")).await.unwrap();
    changed("a create", true);
    api.create("serviceaccounts", json!({"metadata": {"name": "s"}}))
        .await
        .unwrap();
    changed("another kind", false);
    let mut object = api.get("configmaps", "a").unwrap().value();
    object["data"]["a"] = "2".into();
    api.update("configmaps", "a", object).await.unwrap();
    changed("an update", true);
    api.delete("configmaps", "a").await.unwrap();
    changed("a delete", true);
}
