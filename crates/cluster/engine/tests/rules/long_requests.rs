//! No request blocks the writer for long, whatever its content. The time limits are generous, for
//! busy machines: each of these requests once blocked all other writes for many seconds.

use std::time::{Duration, Instant};

use longshore_engine::{
    Create, DeleteCollection, DeleteOptions, FieldValidation, ListRequest, Subresource,
    WriteOptions, Written,
};
use longshore_model::PatchKind;
use serde_json::{Value, json};

use crate::{
    custom::{DEFINITIONS, create, definition, shoe, shoe_kind, shoes},
    support::{Api, api, config, kind, status},
};

/// Maximum duration of a turn of the writer, with a margin for other processes.
const MAX_HOLD: Duration = Duration::from_secs(1);
/// Maximum duration of a whole request.
const MAX_REQUEST: Duration = Duration::from_secs(20);

async fn patch(
    api: &Api,
    plural: &str,
    subresource: Subresource,
    kind: PatchKind,
    body: Value,
) -> Result<Written, longshore_engine::Error> {
    let target = Api::target(plural, "a");
    api.patch_with(target, subresource, kind, body, FieldValidation::Ignore)
        .await
}

fn check(api: &Api, begin: Instant) {
    let hold = api.0.longest_hold();
    assert!(hold < MAX_HOLD, "the writer was held for {hold:?}");
    let time = begin.elapsed();
    assert!(time < MAX_REQUEST, "the request took {time:?}");
}

#[tokio::test]
async fn a_strategic_merge_of_many_conditions() {
    let api = api();
    api.create("nodes", json!({"metadata": {"name": "a"}}))
        .await
        .unwrap();
    let begin = Instant::now();
    let conditions = |status: &str| -> Value {
        let condition = |n: usize| json!({"type": format!("t{n}"), "status": status});
        let list: Vec<_> = (0..10_000).map(condition).collect();
        json!({"status": {"conditions": list}})
    };
    for status in ["True", "False"] {
        let body = conditions(status);
        let written = patch(
            &api,
            "nodes",
            Subresource::Status,
            PatchKind::Strategic,
            body,
        );
        let node = written.await.unwrap().object.value();
        let list = node["status"]["conditions"].as_array().unwrap().clone();
        assert_eq!(
            (list.len(), &list[9999]["status"]),
            (10_000, &json!(status))
        );
    }
    // The result exceeds the size limit of objects.
    let many: Vec<_> = (0..40_000)
        .map(|n| json!({"type": format!("t{n}"), "status": "Unknown"}))
        .collect();
    let body = json!({"status": {"conditions": many}});
    let refused = patch(
        &api,
        "nodes",
        Subresource::Status,
        PatchKind::Strategic,
        body,
    )
    .await;
    assert_eq!(status(refused).0, 500);
    check(&api, begin);
}

#[tokio::test]
async fn a_json_patch_of_many_moves() {
    let api = api();
    let finalizers: Vec<_> = (0..20_000).map(|n| format!("example.com/f{n}")).collect();
    let object = json!({"metadata": {"name": "a", "finalizers": finalizers}});
    api.create("configmaps", object).await.unwrap();
    let begin = Instant::now();
    let list = "/metadata/finalizers";
    for (from, path) in [("0", "19999"), ("-1", "-2")] {
        let (from, path) = (format!("{list}/{from}"), format!("{list}/{path}"));
        let operation = json!({"op": "move", "from": from, "path": path});
        let body = vec![operation; 10_000].into();
        patch(&api, "configmaps", Subresource::None, PatchKind::Json, body)
            .await
            .unwrap();
    }
    check(&api, begin);
}

#[tokio::test]
async fn a_definition_of_many_patterns() {
    let api = api();
    let begin = Instant::now();
    for (pattern, code) in [(r"^\w{15}N", None), (r"\p{L}{200}N", Some(422))] {
        let fields: serde_json::Map<_, _> = (0..400)
            .map(|n| {
                let pattern = pattern.replace('N', &n.to_string());
                (
                    format!("f{n}"),
                    json!({"type": "string", "pattern": pattern}),
                )
            })
            .collect();
        let spec = json!({"type": "object", "properties": fields});
        let version = json!({"name": "v1", "served": true, "storage": true, "schema":
            {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}});
        let made = api.create(DEFINITIONS, definition(json!([version]))).await;
        match code {
            None => drop(made.unwrap()),
            Some(code) => assert_eq!(status(made).0, code),
        }
        let _ = api.delete(DEFINITIONS, "shoes.example.com").await;
    }
    check(&api, begin);
}

#[tokio::test]
async fn deep_and_wide_merges_applies_and_owners() {
    let api = api();
    let begin = Instant::now();
    let data: serde_json::Map<_, _> = (0..30_000)
        .map(|n| (format!("key-{n}"), json!("value")))
        .collect();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a"}, "data": data});
    for force in [false, true] {
        let options = WriteOptions {
            field_manager: Some("m".into()),
            force,
            ..WriteOptions::default()
        };
        let apply = longshore_engine::Patch {
            target: Api::target("configmaps", "a"),
            subresource: Subresource::None,
            kind: PatchKind::Apply,
            body: object.clone(),
            options,
        };
        // Rejected if the object or its managed fields are too large.
        let _ = api.0.patch(apply).await;
    }
    let _ = patch(
        &api,
        "configmaps",
        Subresource::None,
        PatchKind::Merge,
        json!({"data": data}),
    )
    .await;
    let owners: Vec<_> = (0..10_000)
        .map(|n| json!({"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": n.to_string()}))
        .collect();
    let mut owned = config("owned");
    owned["metadata"]["ownerReferences"] = json!(owners);
    let _ = api.create("configmaps", owned).await;
    let entry = |n: usize| {
        json!({"manager": format!("m{n}"), "operation": "Update", "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {format!("f:k{n}"): {}}}})
    };
    let mut managed = config("managed");
    managed["metadata"]["managedFields"] = (0..8000).map(entry).collect();
    let _ = api.create("configmaps", managed).await;
    check(&api, begin);
}

#[tokio::test]
async fn a_collection_of_ten_thousand_objects() {
    let api = api();
    for n in 0..10_000 {
        api.create("configmaps", config(&format!("c{n}")))
            .await
            .unwrap();
    }
    api.0.longest_hold();
    let begin = Instant::now();
    let request = DeleteCollection {
        list: ListRequest {
            namespace: Some("default".into()),
            ..ListRequest::of(kind("configmaps"))
        },
        options: DeleteOptions::default(),
    };
    let deleted = api.0.delete_collection(request).await.unwrap();
    assert_eq!(deleted.items.len(), 10_000);
    assert!(api.list("configmaps").items.is_empty());
    check(&api, begin);
}

/// The objects are deleted in batches; the definition is deleted after the last batch.
#[tokio::test]
async fn a_definition_with_many_objects_is_deleted() {
    let api = shoes().await;
    for n in 0..2000 {
        let mut object = shoe(&format!("s{n}"));
        if n == 1999 {
            object["metadata"]["finalizers"] = json!(["example.com/stay"]);
        }
        create(&api, "v1", object).await.unwrap();
    }
    api.0.longest_hold();
    let begin = Instant::now();
    api.delete(DEFINITIONS, "shoes.example.com").await.unwrap();
    // Creates are rejected, and the remaining objects are deleted without another request.
    let late = Create {
        kind: shoe_kind(&api, "v1"),
        namespace: Some("default".into()),
        object: shoe("late"),
        options: WriteOptions::default(),
    };
    assert_eq!(status(api.0.create(late).await).0, 403);
    let left = || api.0.count(&shoe_kind(&api, "v1"));
    while left() > 1 && begin.elapsed() < MAX_REQUEST {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(left(), 1);
    check(&api, begin);
    let body = json!({"metadata": {"finalizers": null}});
    let patch = longshore_engine::Patch {
        target: crate::custom::target(&api, "v1", "s1999"),
        subresource: Subresource::None,
        kind: PatchKind::Merge,
        body,
        options: WriteOptions::default(),
    };
    api.0.patch(patch).await.unwrap();
    assert!(api.0.find("example.com", "v1", "shoes").is_none());
    let gone = api.get(DEFINITIONS, "shoes.example.com");
    assert_eq!(status(gone).0, 404);
}

/// Large objects are changed outside the writer's turn; no change is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_of_a_large_object_by_many_writers_are_all_kept() {
    let api = api();
    let mut object = config("a");
    object["data"]["large"] = "x".repeat(100_000).into();
    api.create("configmaps", object).await.unwrap();
    let writers = (0..6).map(|writer| {
        let api = api.clone();
        tokio::spawn(async move {
            for n in 0..20 {
                let change = json!({"data": {format!("w{writer}-{n}"): "1"}});
                // Too many concurrent changes: the error equals Kubernetes'.
                while let Err(error) = api.merge("configmaps", "a", change.clone()).await {
                    assert_eq!(error.status().code, 409, "{error}");
                }
                let small = format!("small-{writer}-{n}");
                api.create("configmaps", config(&small)).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let value = api.get("configmaps", "a").unwrap().value();
    assert_eq!(value["data"].as_object().unwrap().len(), 2 + 6 * 20);
    let revision = api.get("configmaps", "a").unwrap().revision();
    assert_eq!(value["metadata"]["resourceVersion"], revision.to_string());
}

/// The response is the stored object, also when other writes happened in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_large_write_returns_its_stored_revision() {
    let api = api();
    let others = {
        let api = api.clone();
        tokio::spawn(async move {
            for n in 0..300 {
                api.create("configmaps", config(&format!("o{n}")))
                    .await
                    .unwrap();
            }
        })
    };
    for n in 0..20 {
        let mut object = config(&format!("large-{n}"));
        object["data"]["large"] = "x".repeat(200_000).into();
        let made = api.create("configmaps", object).await.unwrap();
        let kept = api.get("configmaps", &format!("large-{n}")).unwrap();
        assert_eq!(made.revision(), kept.revision());
        assert_eq!(made.bytes(), kept.bytes());
    }
    others.await.unwrap();
}

#[tokio::test]
async fn a_large_dry_run_stores_nothing() {
    let api = api();
    let mut object = config("a");
    object["data"]["large"] = "x".repeat(100_000).into();
    let options = WriteOptions {
        dry_run: true,
        ..WriteOptions::default()
    };
    let revision = api.0.revision();
    api.create_with("configmaps", object, options)
        .await
        .unwrap();
    assert_eq!(api.0.revision(), revision);
    assert_eq!(status(api.get("configmaps", "a")).0, 404);
}
