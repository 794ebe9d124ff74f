//! Rule 8: PUT, stale resource versions, UID mismatches.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::json;

use crate::common::{config_map, number, pod, version, with};

#[tokio::test]
async fn rule_08_a_stale_resource_version_conflicts() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    let first = test.create(&maps, &config_map("a")).await;
    let second = with(first.clone(), &[("/data/key", json!("second"))]);
    let second = test.put(&one, &second).await.ok();
    let stale = with(first.clone(), &[("/data/key", json!("stale"))]);
    let status = test.put(&one, &stale).await.refused(409, "Conflict");
    let details = json!({"name": "a", "kind": "configmaps"});
    assert_eq!(status["details"], details);
    assert_eq!(
        status["message"],
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
    let kept = test.get(&one).await.ok();
    assert_eq!(kept, second);
    // A future resource version conflicts, too.
    let future = (number(&second) + 1_000_000).to_string();
    let future = with(first, &[("/metadata/resourceVersion", json!(future))]);
    test.put(&one, &future).await.refused(409, "Conflict");
}

#[tokio::test]
async fn rule_08_a_stale_resource_version_conflicts_in_the_status() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    let first = test.create(&pods, &pod("a")).await;
    let one = format!("{pods}/a/status");
    let patch = json!({"status": {"message": "second"}});
    test.patch(&one, PatchType::Merge, &patch).await.ok();
    test.put(&one, &first).await.refused(409, "Conflict");
}

#[tokio::test]
async fn rule_08_a_different_uid_conflicts() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    let map = test.create(&maps, &config_map("a")).await;
    let other = json!("11111111-2222-3333-4444-555555555555");
    let other = with(map.clone(), &[("/metadata/uid", other)]);
    let status = test.put(&one, &other).await.refused(409, "Conflict");
    let message = status["message"].as_str().unwrap();
    assert!(
        message.contains("Precondition failed: UID in precondition:"),
        "{message}"
    );
    // A new object with the same name also has a different UID.
    test.delete(&one).await.ok();
    test.create(&maps, &config_map("a")).await;
    let unversioned = with(map, &[("/metadata/resourceVersion", json!(""))]);
    test.put(&one, &unversioned).await.refused(409, "Conflict");
}

#[tokio::test]
async fn rule_08_without_a_resource_version_the_last_write_wins() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    test.create(&maps, &config_map("a")).await;
    for version in [json!(null), json!("")] {
        let map = with(
            config_map("a"),
            &[
                ("/data/key", json!(format!("{version}"))),
                ("/metadata/resourceVersion", version),
            ],
        );
        let written = test.put(&one, &map).await.ok();
        assert_eq!(written["data"], map["data"]);
    }
    // The same for other common kinds.
    for (group_version, plural, object) in [
        (
            "v1",
            "secrets",
            json!({"metadata": {"name": "a"}, "stringData": {"a": "b"}}),
        ),
        ("v1", "serviceaccounts", json!({"metadata": {"name": "a"}})),
        ("apps/v1", "deployments", crate::common::deployment("a")),
    ] {
        let path = test.path(group_version, plural);
        test.create(&path, &object).await;
        let changed = with(object, &[("/metadata/labels", json!({"a": "b"}))]);
        let written = test.put(&format!("{path}/a"), &changed).await.ok();
        assert_eq!(written["metadata"]["labels"]["a"], "b");
    }
}

#[tokio::test]
async fn rule_08_a_lease_update_requires_a_resource_version() {
    let test = ApiTest::start().await;
    let leases = test.path("coordination.k8s.io/v1", "leases");
    let lease = json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}});
    let made = test.create(&leases, &lease).await;
    let response = test.put(&format!("{leases}/a"), &lease).await;
    response.refused_for(
        422,
        "Invalid",
        &[("FieldValueInvalid", "metadata.resourceVersion")],
    );
    test.put(&format!("{leases}/a"), &made).await.ok();
}

#[tokio::test]
async fn rule_08_name_and_namespace_must_match_the_path() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    let map = test.create(&maps, &config_map("a")).await;
    let named = with(map.clone(), &[("/metadata/name", json!("b"))]);
    let status = test.put(&one, &named).await.refused(400, "BadRequest");
    assert_eq!(
        status["message"],
        "the name of the object (b) does not match the name on the URL (a)"
    );
    let elsewhere = with(map.clone(), &[("/metadata/namespace", json!("default"))]);
    test.put(&one, &elsewhere).await.refused(400, "BadRequest");
    // PUT requires the name.
    let nameless = with(map.clone(), &[("/metadata/name", json!(""))]);
    test.put(&one, &nameless).await.refused(400, "BadRequest");
    // The namespace is optional.
    let placeless = with(map, &[("/metadata/namespace", json!(""))]);
    test.put(&one, &placeless).await.ok();
}

#[tokio::test]
async fn rule_08_a_missing_object_is_not_found() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let response = test.put(&format!("{maps}/a"), &config_map("a")).await;
    let status = response.refused(404, "NotFound");
    assert_eq!(
        status["details"],
        json!({"name": "a", "kind": "configmaps"})
    );
    assert_eq!(status["message"], "configmaps \"a\" not found");
}

#[tokio::test]
async fn rule_08_server_managed_metadata_is_not_overwritten() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let made = test.create(&maps, &config_map("a")).await;
    let changed = with(
        made.clone(),
        &[
            ("/metadata/creationTimestamp", json!("2001-02-03T04:05:06Z")),
            ("/metadata/generation", json!(77)),
            ("/metadata/selfLink", json!("/somewhere")),
            ("/data/key", json!("changed")),
        ],
    );
    let written = test.put(&format!("{maps}/a"), &changed).await.ok();
    assert_eq!(written["data"]["key"], "changed");
    for field in [
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "uid",
        "selfLink",
    ] {
        assert_eq!(
            written["metadata"][field], made["metadata"][field],
            "{field}"
        );
    }
    assert_ne!(version(&written), version(&made));
    // An update cannot mark an object for deletion.
    let ended = with(
        made,
        &[
            ("/metadata/resourceVersion", json!("")),
            ("/metadata/deletionTimestamp", json!("2001-02-03T04:05:06Z")),
            ("/metadata/deletionGracePeriodSeconds", json!(5)),
        ],
    );
    let response = test.put(&format!("{maps}/a"), &ended).await;
    let invalid = |field| ("FieldValueInvalid", field);
    let causes = [
        "metadata.deletionTimestamp",
        "metadata.deletionGracePeriodSeconds",
    ];
    response.refused_for(422, "Invalid", &causes.map(invalid));
}
