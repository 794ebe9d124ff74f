//! Snapshots: engines that start from one, and engines that return to one.

use longshore_engine::{
    Engine, Error, Snapshot, Storage, Watch, WatchEvent, WatchRequest, WatchStart,
};
use serde_json::json;

use crate::{
    custom::{DEFINITIONS, definition, version},
    support::{Api, api, config, kind, names, options},
};

fn open_at(snapshot: &Snapshot) -> Api {
    Api(Engine::open_at(snapshot, options(Storage::Memory)).unwrap())
}

fn watch(api: &Api, plural: &str) -> Watch {
    let start = WatchStart::After(api.0.revision());
    api.0.watch(&WatchRequest::of(kind(plural), start)).unwrap()
}

#[tokio::test]
async fn engines_of_a_snapshot_are_independent() {
    let first = api();
    first.create("configmaps", config("a")).await.unwrap();
    let snapshot = first.0.snapshot();
    let (second, third) = (open_at(&snapshot), open_at(&snapshot));
    let mut seen = watch(&second, "configmaps");
    first.delete("configmaps", "a").await.unwrap();
    third.create("configmaps", config("b")).await.unwrap();
    assert!(seen.try_next().unwrap().is_none());
    assert_eq!(names(&first.list("configmaps")), [""; 0]);
    assert_eq!(names(&second.list("configmaps")), ["a"]);
    assert_eq!(names(&third.list("configmaps")), ["a", "b"]);
    second.create("configmaps", config("c")).await.unwrap();
    let event = seen.next().await.unwrap();
    assert!(matches!(event, WatchEvent::Added(made) if made.name() == "c"));
}

#[tokio::test]
async fn an_engine_returns_to_a_snapshot_and_watches_expire() {
    let api = api();
    let kept = api.create("configmaps", config("kept")).await.unwrap();
    api.create("configmaps", config("deleted")).await.unwrap();
    let snapshot = api.0.snapshot();
    let changed = json!({"data": {"key": "changed"}});
    api.merge("configmaps", "kept", changed.clone())
        .await
        .unwrap();
    api.delete("configmaps", "deleted").await.unwrap();
    api.create("configmaps", config("added")).await.unwrap();
    let mut watch = watch(&api, "configmaps");
    let before = api.0.revision();

    api.0.restore(&snapshot).await.unwrap();
    assert_eq!(names(&api.list("configmaps")), ["deleted", "kept"]);
    let now = api.get("configmaps", "kept").unwrap();
    assert_eq!(now.revision(), kept.revision());
    assert!(api.0.revision() > before);
    assert!(matches!(watch.next().await, Err(Error::Expired { .. })));

    // The same snapshot can be used again.
    let again = api.merge("configmaps", "kept", changed).await.unwrap();
    assert!(again.revision() > before);
    api.0.restore(&snapshot).await.unwrap();
    assert_eq!(
        api.get("configmaps", "kept").unwrap().revision(),
        kept.revision()
    );
}

#[tokio::test]
async fn kinds_return_to_a_snapshot() {
    let api = api();
    let without = api.0.snapshot();
    let shoes = || definition(json!([version("v1", true)]));
    api.create(DEFINITIONS, shoes()).await.unwrap();
    let info = api.0.find("example.com", "v1", "shoes").unwrap();
    let with = api.0.snapshot();
    let request = WatchRequest::of(info.clone(), WatchStart::Latest);
    let mut watch = api.0.watch(&request).unwrap();

    api.0.restore(&without).await.unwrap();
    assert!(api.0.find("example.com", "v1", "shoes").is_none());
    let end = watch.next().await.unwrap_err();
    assert!(
        matches!(end, Error::KindGone(_) | Error::Expired { .. }),
        "{end}"
    );

    // Another definition gets the index, and the first one returns.
    api.create(DEFINITIONS, shoes()).await.unwrap();
    api.0.restore(&with).await.unwrap();
    let found = api.0.find("example.com", "v1", "shoes").unwrap();
    assert_eq!(found, info);
    let watch = api.0.watch(&request);
    assert!(watch.is_ok());
    api.delete(DEFINITIONS, "shoes.example.com").await.unwrap();
    assert!(api.0.find("example.com", "v1", "shoes").is_none());
}

#[tokio::test]
async fn a_stored_engine_does_not_return_to_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let storage = Storage::File(folder.path().join("store"));
    let api = Api(Engine::open(options(storage)).unwrap());
    let error = api.0.restore(&api.0.snapshot()).await.unwrap_err();
    assert!(error.to_string().contains("in memory"), "{error}");
}
