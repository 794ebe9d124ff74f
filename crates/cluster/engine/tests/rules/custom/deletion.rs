//! Deletion of custom kinds, and the remaining objects.

use std::{path::Path, time::Duration};

use longshore_engine::{
    Create, Delete, DeleteOptions, Engine, Error, ListRequest, Patch, Propagation, ReadVersion,
    Storage, Subresource, Target, WatchRequest, WatchStart, WriteOptions,
};
use longshore_model::PatchKind;
use serde_json::{Value, json};

use super::{
    DEFINITIONS, create, definition, delete, get, shoe, shoe_kind, shoes, target, version,
};
use crate::support::{Api, api, available_events, options, status};

#[tokio::test]
async fn rule_30_deleting_a_definition_deletes_its_objects_and_ends_watches() {
    let api = shoes().await;
    create(&api, "v1", shoe("a")).await.unwrap();
    let held =
        json!({"metadata": {"name": "b", "finalizers": ["example.com/hold"]}, "spec": {"size": 1}});
    create(&api, "v1", held).await.unwrap();
    let kind = shoe_kind(&api, "v1");
    let mut watch = api
        .0
        .watch(&WatchRequest::of(kind, WatchStart::Latest))
        .unwrap();
    let gone = api.delete(DEFINITIONS, "shoes.example.com").await.unwrap();
    let marked = gone.object().value();
    assert_eq!(
        marked["metadata"]["finalizers"],
        json!(["customresourcecleanup.apiextensions.k8s.io"])
    );
    assert_eq!(
        available_events(&mut watch),
        ["ADDED a", "ADDED b", "DELETED a", "MODIFIED b"]
    );
    let crd = api.get(DEFINITIONS, "shoes.example.com").unwrap().value();
    assert_eq!(
        crd["status"]["conditions"][2]["reason"],
        "InstanceDeletionInProgress"
    );
    let (code, _, message) = status(create(&api, "v1", shoe("c")).await);
    assert_eq!(
        (code, message.as_str()),
        (
            403,
            "shoes.example.com \"c\" is forbidden: create not allowed while custom resource definition is terminating"
        )
    );
    let body = json!({"metadata": {"finalizers": null}});
    let mut release = target(&api, "v1", "b");
    release.name = "b".into();
    let release = Patch {
        target: release,
        subresource: Subresource::None,
        kind: PatchKind::Merge,
        body,
        options: WriteOptions::default(),
    };
    api.0.patch(release).await.unwrap();
    assert!(matches!(
        api.get(DEFINITIONS, "shoes.example.com"),
        Err(Error::NotFound(_))
    ));
    assert!(api.0.find("example.com", "v1", "shoes").is_none());
    // The watch sends the last event, then ends.
    let last = watch.try_next().unwrap().unwrap();
    assert!(matches!(last, longshore_engine::WatchEvent::Deleted(_)));
    assert!(matches!(watch.try_next(), Err(Error::KindGone(_))));
    // A new definition of the same kind starts without objects.
    let crd = definition(json!([version("v1", true)]));
    api.create(DEFINITIONS, crd).await.unwrap();
    assert!(matches!(get(&api, "v1", "a"), Err(Error::NotFound(_))));
    assert!(matches!(watch.try_next(), Err(Error::KindGone(_))));
}

fn open(path: &Path) -> Api {
    Api(Engine::open(options(Storage::File(path.to_owned()))).unwrap())
}

#[tokio::test]
async fn rule_30_kinds_and_their_objects_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let first = open(&path);
    let crd = definition(json!([version("v1", true)]));
    first.create(DEFINITIONS, crd).await.unwrap();
    create(&first, "v1", shoe("a")).await.unwrap();
    create(&first, "v1", shoe("b")).await.unwrap();
    delete(&first, "b").await;
    let before = get(&first, "v1", "a").unwrap();
    drop(first);
    let second = open(&path);
    assert_eq!(get(&second, "v1", "a").unwrap(), before);
    assert!(matches!(get(&second, "v1", "b"), Err(Error::NotFound(_))));
    second
        .delete(DEFINITIONS, "shoes.example.com")
        .await
        .unwrap();
    drop(second);
    let third = open(&path);
    assert!(third.0.find("example.com", "v1", "shoes").is_none());
}

/// Waits until a definition and its objects have ended.
async fn wait_for_end(api: &Api) {
    let begin = std::time::Instant::now();
    while api.get(DEFINITIONS, "shoes.example.com").is_ok() {
        assert!(begin.elapsed().as_secs() < 60, "the definition stays");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(api.0.find("example.com", "v1", "shoes").is_none());
    // A new definition of the same kind starts without objects.
    let crd = definition(json!([version("v1", true)]));
    api.create(DEFINITIONS, crd).await.unwrap();
    let all = ListRequest::of(shoe_kind(api, "v1"));
    assert_eq!(api.0.list(&all).unwrap().items.len(), 0);
}

/// The process ends at some moment of a deletion: before the first object is deleted, between
/// turns, or while finalizers hold objects. The next one continues.
#[tokio::test]
async fn rule_30_the_end_of_a_definition_continues_after_a_restart() {
    const OBJECTS: usize = 1200;
    let long = Duration::from_secs(3600);
    for (delay, held, turns) in [
        (long, false, 0),
        (Duration::ZERO, false, 0),
        (Duration::ZERO, false, 30),
        (Duration::ZERO, true, 1),
        (Duration::ZERO, true, 1000),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.redb");
        let first = open(&path);
        let engine = first.0.clone();
        let ending = tokio::spawn(async move { engine.end_definitions(delay).await });
        let crd = definition(json!([version("v1", true)]));
        first.create(DEFINITIONS, crd).await.unwrap();
        // At the same time, so that few commits store them.
        let mut creates = tokio::task::JoinSet::new();
        for index in 0..OBJECTS {
            let mut object = shoe(&format!("s{index}"));
            if held && index == OBJECTS / 2 {
                object["metadata"]["finalizers"] = json!(["example.com/hold"]);
            }
            let api = first.clone();
            creates.spawn(async move { create(&api, "v1", object).await.unwrap() });
        }
        creates.join_all().await;
        let deleted = first.delete(DEFINITIONS, "shoes.example.com").await;
        deleted.unwrap();
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        ending.abort();
        let _ = ending.await;
        drop(first);

        let second = open(&path);
        let engine = second.0.clone();
        let ending = tokio::spawn(async move { engine.end_definitions(Duration::ZERO).await });
        if held {
            let name = format!("s{}", OBJECTS / 2);
            let release = Patch {
                target: target(&second, "v1", &name),
                subresource: Subresource::None,
                kind: PatchKind::Merge,
                body: json!({"metadata": {"finalizers": null}}),
                options: WriteOptions::default(),
            };
            second.0.patch(release).await.unwrap();
        }
        wait_for_end(&second).await;
        ending.abort();
    }
}

async fn patch_definition(api: &Api, body: Value) -> Value {
    let changed = api.merge(DEFINITIONS, "shoes.example.com", body).await;
    changed.unwrap().value()
}

#[tokio::test]
async fn rule_30_a_definition_that_is_being_deleted_can_be_changed() {
    let api = api();
    let mut crd = definition(json!([version("v1", true)]));
    // Only Kubernetes' own kinds require a domain in a finalizer.
    crd["metadata"]["finalizers"] = json!(["hold"]);
    api.create(DEFINITIONS, crd).await.unwrap();
    let held = json!({"metadata": {"name": "a", "finalizers": ["hold"]}, "spec": {"size": 1}});
    create(&api, "v1", held).await.unwrap();
    let options = DeleteOptions {
        propagation: Some(Propagation::Foreground),
        ..DeleteOptions::default()
    };
    api.delete_with(DEFINITIONS, "shoes.example.com", options)
        .await
        .unwrap();
    let crd = patch_definition(&api, json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(
        crd["metadata"]["finalizers"],
        json!(["hold", "customresourcecleanup.apiextensions.k8s.io"])
    );
    assert_eq!(crd["metadata"]["generation"], 1);
    assert!(crd["metadata"].get("deletionGracePeriodSeconds").is_none());
}

#[tokio::test]
async fn rule_30_a_terminating_kind_rejects_creates_in_every_namespace() {
    let api = shoes().await;
    let held = json!({"metadata": {"name": "a", "finalizers": ["e.x/hold"]}, "spec": {"size": 1}});
    create(&api, "v1", held).await.unwrap();
    api.delete(DEFINITIONS, "shoes.example.com").await.unwrap();
    let create = Create {
        kind: shoe_kind(&api, "v1"),
        namespace: Some("missing".into()),
        object: shoe("b"),
        options: WriteOptions::default(),
    };
    assert_eq!(status(api.0.create(create).await).0, 403);
}

#[tokio::test]
async fn rule_30_orphaned_objects_reappear_with_their_definition() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let first = open(&path);
    let crd = definition(json!([version("v1", true)]));
    first.create(DEFINITIONS, crd.clone()).await.unwrap();
    create(&first, "v1", shoe("a")).await.unwrap();
    let held = json!({"metadata": {"name": "b", "finalizers": ["e.x/hold"]}, "spec": {"size": 1}});
    create(&first, "v1", held).await.unwrap();
    first
        .delete(DEFINITIONS, "shoes.example.com")
        .await
        .unwrap();
    patch_definition(&first, json!({"metadata": {"finalizers": null}})).await;
    assert!(first.0.find("example.com", "v1", "shoes").is_none());
    drop(first);
    for _ in 0..2 {
        let again = open(&path);
        let made = again.create(DEFINITIONS, crd.clone()).await;
        assert!(get(&again, "v1", "a").is_err());
        let left = get(&again, "v1", "b").unwrap();
        assert!(left["metadata"]["deletionTimestamp"].is_string());
        made.unwrap();
        patch_definition(&again, json!({"metadata": {"finalizers": ["e.x/hold"]}})).await;
        again
            .delete(DEFINITIONS, "shoes.example.com")
            .await
            .unwrap();
        patch_definition(&again, json!({"metadata": {"finalizers": null}})).await;
    }
}

#[tokio::test]
async fn rule_30_a_watch_ends_when_its_kind_is_replaced() {
    let api = shoes().await;
    let request = WatchRequest::of(shoe_kind(&api, "v1"), WatchStart::Latest);
    let mut watch = api.0.watch(&request).unwrap();
    assert_eq!(available_events(&mut watch), Vec::<String>::new());
    let waiting = tokio::spawn(async move { watch.next().await });
    tokio::task::yield_now().await;
    // Both changes happen before the watch reads again: it finds the replaced kind.
    let gone = api.delete(DEFINITIONS, "shoes.example.com").await;
    gone.unwrap();
    let again = definition(json!([version("v1", true)]));
    api.create(DEFINITIONS, again).await.unwrap();
    assert!(matches!(waiting.await.unwrap(), Err(Error::KindGone(_))));
}

#[tokio::test]
async fn custom_kinds_with_the_name_of_a_built_in_kind_are_deleted_as_custom_kinds() {
    for (plural, kind) in [("pods", "Pod"), ("namespaces", "Namespace")] {
        let api = api();
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let crd = json!({"metadata": {"name": format!("{plural}.example.com")}, "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}],
        }});
        api.create(DEFINITIONS, crd).await.unwrap();
        let kind = api.0.find("example.com", "v1", plural).unwrap();
        // With these fields, a pod gets a grace period and a namespace waits for its
        // finalizers.
        let spec = json!({"nodeName": "n", "finalizers": ["kubernetes"]});
        let create = Create {
            kind: kind.clone(),
            namespace: Some("default".into()),
            object: json!({"metadata": {"name": "a", "finalizers": ["example.com/hold"]},
                "spec": spec}),
            options: WriteOptions::default(),
        };
        api.0.create(create).await.unwrap();
        let target = Target {
            kind: kind.clone(),
            namespace: Some("default".into()),
            name: "a".into(),
        };
        let delete = Delete {
            target: target.clone(),
            options: DeleteOptions::default(),
        };
        api.0.delete(delete).await.unwrap();
        let marked = api.0.get(&kind, Some("default"), "a", ReadVersion::Latest);
        assert_eq!(
            marked.unwrap().value()["metadata"]["deletionGracePeriodSeconds"],
            0,
            "{plural}"
        );
        let release = Patch {
            target,
            subresource: Subresource::None,
            kind: PatchKind::Merge,
            body: json!({"metadata": {"finalizers": null}}),
            options: WriteOptions::default(),
        };
        api.0.patch(release).await.unwrap();
        let gone = api.0.get(&kind, Some("default"), "a", ReadVersion::Latest);
        assert!(matches!(gone, Err(Error::NotFound(_))), "{plural}");
    }
}
