//! Creates, updates and patches.

use crate::support::{Api, api, config, job, pod, status};
use longshore_engine::{Error, FieldValidation, Subresource, WriteOptions};
use longshore_model::PatchKind;
use serde_json::json;

#[tokio::test]
async fn all_kinds_share_one_increasing_revision() {
    let api = api();
    let mut versions = vec![api.0.revision()];
    versions.push(api.create("pods", pod("a")).await.unwrap().revision());
    versions.push(
        api.create("configmaps", config("a"))
            .await
            .unwrap()
            .revision(),
    );
    api.delete("configmaps", "a").await.unwrap();
    versions.push(api.0.revision());
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
}

#[tokio::test]
async fn a_write_without_changes_keeps_the_resource_version() {
    let api = api();
    let old = api.create("pods", pod("a")).await.unwrap();
    let same = api.update("pods", "a", old.value()).await.unwrap();
    assert_eq!(same.revision(), old.revision());
    let same = api.update("pods", "a", pod("a")).await.unwrap();
    assert_eq!(same.revision(), old.revision());
    let same = api
        .merge("pods", "a", json!({"metadata": {"labels": null}}))
        .await
        .unwrap();
    assert_eq!(
        (same.revision(), api.0.revision()),
        (old.revision(), old.revision())
    );
}

#[tokio::test]
async fn the_server_sets_uid_time_version_and_generation() {
    let api = api();
    let sent = json!({"metadata": {"name": "a", "uid": "mine", "generation": 7, "selfLink": "x",
        "creationTimestamp": "2020-01-01T00:00:00Z", "deletionTimestamp": "2020-01-01T00:00:00Z",
        "managedFields": [{"manager": "x"}]},
        "spec": {"containers": [{"name": "c", "image": "i"}]}, "status": {"phase": "Running"}});
    let pod = api.create("pods", sent).await.unwrap();
    let value = pod.value();
    let metadata = &value["metadata"];
    assert!(metadata["uid"].as_str().unwrap().starts_with("uid-"));
    assert_eq!(metadata["creationTimestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(metadata["generation"], 1);
    assert_eq!(metadata["resourceVersion"], pod.revision().to_string());
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["managedFields"][0]["manager"], "unknown");
    for absent in ["deletionTimestamp", "selfLink"] {
        assert!(metadata.get(absent).is_none(), "{absent}");
    }
    assert_eq!(value["status"]["phase"], "Pending");
    assert_eq!(
        (&value["apiVersion"], &value["kind"]),
        (&json!("v1"), &json!("Pod"))
    );
}

#[tokio::test]
async fn an_existing_name_is_rejected() {
    let api = api();
    api.create("pods", pod("x")).await.unwrap();
    let error = api.create("pods", pod("x")).await.unwrap_err().status();
    assert_eq!(
        (error.code, &*error.message),
        (409, r#"pods "x" already exists"#)
    );
    let details = error.details.unwrap();
    assert_eq!((&*details.name, &*details.kind), ("x", "pods"));
}

#[tokio::test]
async fn a_create_with_a_resource_version_is_rejected() {
    let api = api();
    let sent = json!({"metadata": {"name": "a", "resourceVersion": "1"}});
    assert_eq!(status(api.create("configmaps", sent).await).0, 400);
}

#[tokio::test]
async fn namespaces_of_body_and_request_must_agree() {
    let api = api();
    let sent = json!({"metadata": {"name": "a", "namespace": "other"}});
    let (code, _, message) = status(api.create("configmaps", sent).await);
    assert_eq!(code, 400);
    assert_eq!(
        message,
        "the namespace of the provided object does not match the namespace sent on the request"
    );
}

#[tokio::test]
async fn a_missing_namespace_is_not_found() {
    let api = api();
    let (code, reason, message) = status(api.create_in("x", "pods", json!({})).await);
    assert_eq!(
        (code, &*reason, &*message),
        (404, "NotFound", r#"namespaces "x" not found"#)
    );
}

#[tokio::test]
async fn generated_names_are_truncated_and_retried() {
    let api = api();
    let long = "a".repeat(70);
    let generated = |prefix: &str| json!({"metadata": {"generateName": prefix}});
    let one = api.create("configmaps", generated(&long)).await.unwrap();
    assert_eq!(one.name(), format!("{}00000", "a".repeat(58)));
    let two = api.create("configmaps", generated(&long)).await.unwrap();
    assert_ne!(one.name(), two.name());
    let job = api.create(
        "jobs",
        json!({"metadata": {"generateName": "j-"}, "spec": job("")["spec"]}),
    );
    let job = job.await.unwrap();
    assert_eq!(
        job.value()["spec"]["template"]["metadata"]["labels"]["job-name"],
        job.name()
    );
    let (code, _, message) = status(api.create("configmaps", json!({"metadata": {}})).await);
    assert_eq!(code, 422);
    assert!(
        message.ends_with("metadata.name: Required value: name or generateName is required"),
        "{message}"
    );
}

#[tokio::test]
async fn a_stale_resource_version_or_another_uid_is_a_conflict() {
    let api = api();
    let old = api.create("pods", pod("x")).await.unwrap();
    api.merge("pods", "x", json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .unwrap();
    let (code, reason, message) = status(api.update("pods", "x", old.value()).await);
    assert_eq!((code, &*reason), (409, "Conflict"));
    assert_eq!(
        message,
        r#"Operation cannot be fulfilled on pods "x": the object has been modified; please apply your changes to the latest version and try again"#
    );
    let stale = json!({"metadata": {"resourceVersion": old.revision().to_string()}});
    assert_eq!(status(api.merge("pods", "x", stale).await).0, 409);
    let mut other = api.get("pods", "x").unwrap().value();
    other["metadata"]["uid"] = json!("other");
    assert_eq!(status(api.update("pods", "x", other).await).0, 409);
}

#[tokio::test]
async fn an_update_without_resource_version_is_allowed_except_for_leases() {
    let api = api();
    api.create("configmaps", config("a")).await.unwrap();
    let new = json!({"metadata": {"name": "a"}, "data": {"a": "2"}});
    assert_eq!(
        api.update("configmaps", "a", new).await.unwrap().value()["data"]["a"],
        "2"
    );
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}});
    let made = api.update("leases", "l", lease.clone()).await.unwrap();
    assert_eq!(made.name(), "l");
    assert_eq!(status(api.update("leases", "l", lease).await).0, 422);
}

#[tokio::test]
async fn an_update_of_a_missing_object_is_not_found_and_of_another_name_bad_request() {
    let api = api();
    let (code, _, message) = status(api.update("pods", "x", pod("x")).await);
    assert_eq!((code, &*message), (404, r#"pods "x" not found"#));
    assert_eq!(
        status(api.update("jobs", "x", job("x")).await).2,
        r#"jobs.batch "x" not found"#
    );
    let (code, _, message) = status(api.update("pods", "x", pod("y")).await);
    assert_eq!(code, 400);
    assert_eq!(
        message,
        "the name of the object (y) does not match the name on the URL (x)"
    );
}

#[tokio::test]
async fn status_and_the_other_fields_change_separately() {
    let api = api();
    api.create("pods", pod("a")).await.unwrap();
    let mut changed = api.get("pods", "a").unwrap().value();
    changed["status"] = json!({"phase": "Running"});
    changed["metadata"]["labels"] = json!({"a": "b"});
    let main = api
        .update("pods", "a", changed.clone())
        .await
        .unwrap()
        .value();
    assert_eq!(
        (&main["status"]["phase"], &main["metadata"]["labels"]["a"]),
        (&json!("Pending"), &json!("b"))
    );
    changed["metadata"]["resourceVersion"] = json!("");
    changed["metadata"]["labels"] = json!({"a": "c"});
    let part = api
        .update_part("pods", "a", Subresource::Status, changed)
        .await
        .unwrap()
        .value();
    assert_eq!(
        (&part["status"]["phase"], &part["metadata"]["labels"]["a"]),
        (&json!("Running"), &json!("c"))
    );
    assert_eq!(part["metadata"]["generation"], 1);
}

#[tokio::test]
async fn generation_counts_changes_of_the_spec_only() {
    let api = api();
    api.create("jobs", job("j")).await.unwrap();
    let generation =
        |object: &longshore_engine::Object| object.value()["metadata"]["generation"].as_i64();
    let labelled = api
        .merge("jobs", "j", json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .unwrap();
    assert_eq!(generation(&labelled), Some(1));
    let grown = api
        .merge("jobs", "j", json!({"spec": {"parallelism": 3}}))
        .await
        .unwrap();
    assert_eq!(generation(&grown), Some(2));
    let status = api
        .merge_status("jobs", "j", json!({"status": {"active": 1}}))
        .await
        .unwrap();
    assert_eq!(generation(&status), Some(2));
}

#[tokio::test]
async fn a_dry_run_responds_and_stores_nothing() {
    let api = api();
    let before = api.0.revision();
    let options = WriteOptions {
        dry_run: true,
        ..WriteOptions::default()
    };
    let written = api.create_with("pods", pod("a"), options).await.unwrap();
    assert_eq!(written.object.name(), "a");
    assert!(matches!(api.get("pods", "a"), Err(Error::NotFound(_))));
    assert_eq!(api.0.revision(), before);
}

#[tokio::test]
async fn unknown_fields_cause_a_warning_or_an_error() {
    let api = api();
    let sent = json!({"metadata": {"name": "a"}, "spec": {"foo": 1}, "data": {}});
    let with = |field_validation| WriteOptions {
        field_validation,
        ..WriteOptions::default()
    };
    let written = api
        .create_with("configmaps", sent.clone(), with(FieldValidation::Warn))
        .await
        .unwrap();
    assert_eq!(written.warnings, [r#"unknown field "spec""#]);
    assert!(written.object.value().get("spec").is_none());
    let strict = api
        .create_with("configmaps", sent, with(FieldValidation::Strict))
        .await;
    let (code, _, message) = status(strict);
    assert_eq!(code, 400);
    assert!(
        message.ends_with(r#"strict decoding error: unknown field "spec""#),
        "{message}"
    );
    let target = Api::target("configmaps", "a");
    let patch = json!({"spec": {"foo": 1}});
    let strict = api
        .patch_with(
            target,
            Subresource::None,
            PatchKind::Merge,
            patch,
            FieldValidation::Strict,
        )
        .await;
    assert_eq!(status(strict).0, 422);
}

#[tokio::test]
async fn each_kind_of_patch_is_applied() {
    let api = api();
    api.create("pods", pod("a")).await.unwrap();
    let target = || Api::target("pods", "a");
    let warn = FieldValidation::Warn;
    let strategic = json!({"spec": {"containers": [{"name": "c", "image": "i:2"}]}});
    let patched = api
        .patch_with(
            target(),
            Subresource::None,
            PatchKind::Strategic,
            strategic,
            warn,
        )
        .await;
    let value = patched.unwrap().object.value();
    assert_eq!(value["spec"]["containers"][0]["image"], "i:2");
    assert_eq!(
        value["spec"]["containers"][0]["imagePullPolicy"],
        "IfNotPresent"
    );
    let json_patch = json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "i:3"}]);
    let patched = api
        .patch_with(
            target(),
            Subresource::None,
            PatchKind::Json,
            json_patch,
            warn,
        )
        .await;
    assert_eq!(
        patched.unwrap().object.value()["spec"]["containers"][0]["image"],
        "i:3"
    );
    let failed = json!([{"op": "test", "path": "/metadata/name", "value": "b"}]);
    let failed = api
        .patch_with(target(), Subresource::None, PatchKind::Json, failed, warn)
        .await;
    assert_eq!(status(failed).0, 422);
    assert_eq!(status(api.merge("pods", "b", json!({})).await).0, 404);
}

#[tokio::test]
async fn binding_sets_the_node_once() {
    let api = api();
    api.create("pods", pod("a")).await.unwrap();
    api.bind("a", "here").await.unwrap();
    let value = api.get("pods", "a").unwrap().value();
    assert_eq!(value["spec"]["nodeName"], "here");
    let condition = &value["status"]["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["status"]),
        (&json!("PodScheduled"), &json!("True"))
    );
    let (code, _, message) = status(api.bind("a", "there").await);
    assert_eq!(code, 409);
    assert_eq!(
        message,
        r#"Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "here""#
    );
    assert_eq!(status(api.bind("b", "there").await).0, 404);
    assert_eq!(status(api.bind("a", "").await).0, 422);
}

#[tokio::test]
async fn concurrent_writers_get_distinct_resource_versions() {
    let api = api();
    let writers = (0..64).map(|i| {
        let api = api.clone();
        tokio::spawn(async move { api.create("configmaps", config(&format!("c{i}"))).await })
    });
    let mut versions = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        versions.push(writer.await.unwrap().unwrap().revision());
    }
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(
        (versions.len(), *versions.last().unwrap()),
        (64, api.0.revision())
    );
}
