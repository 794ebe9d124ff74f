//! Rule 1: a single, increasing revision counter for all kinds; a write that changes
//! nothing creates neither a revision nor an event.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::json;

use crate::common::{config_map, number, pod, version, with};

#[tokio::test]
async fn rule_01_all_kinds_share_one_revision_counter() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let mut last = 0;
    let mut grows = |what: &str, now: u64| {
        assert!(now > last, "{what}: {now} after {last}");
        last = now;
    };
    let map = test.create(&maps, &config_map("a")).await;
    grows("create", number(&map));
    let secret = json!({"metadata": {"name": "a"}});
    let secrets = test.path("v1", "secrets");
    grows(
        "another kind",
        number(&test.create(&secrets, &secret).await),
    );
    let lease = json!({"metadata": {"name": "a"}});
    let leases = test.path("coordination.k8s.io/v1", "leases");
    grows("another group", number(&test.create(&leases, &lease).await));
    let namespace = json!({"metadata": {"name": format!("{}-b", test.namespace())}});
    let namespaces = test.cluster_path("v1", "namespaces");
    grows(
        "no namespace",
        number(&test.create(&namespaces, &namespace).await),
    );
    let changed = with(map, &[("/data/key", json!("other"))]);
    let changed = test.put(&format!("{maps}/a"), &changed).await.ok();
    grows("update", number(&changed));
    let patch = json!({"data": {"key": "third"}});
    let one = format!("{maps}/a");
    let patched = test.patch(&one, PatchType::Merge, &patch).await.ok();
    grows("patch", number(&patched));

    let (_, before) = test.list(&secrets).await;
    let mut watch = test
        .watch(&format!("{secrets}?watch=1&resourceVersion={before}"))
        .await;
    test.delete(&format!("{secrets}/a")).await.ok();
    grows("delete", number(&watch.event_of("DELETED", "a").await));
    // The resource version of a list includes the latest write of any kind.
    let (_, now) = test.list(&maps).await;
    assert!(now.parse::<u64>().unwrap() >= last, "{now} after {last}");
}

#[tokio::test]
async fn rule_01_a_resource_version_is_a_decimal_number_without_leading_zeros() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let map = test.create(&maps, &config_map("a")).await;
    let (_, of_list) = test.list(&maps).await;
    for version in [version(&map), of_list] {
        assert!(
            version.bytes().all(|byte| byte.is_ascii_digit()),
            "{version}"
        );
        assert!(!version.starts_with('0'), "{version}");
    }
}

#[tokio::test]
async fn rule_01_a_write_without_changes_creates_no_revision_and_no_event() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    let map = test.create(&maps, &config_map("a")).await;
    let since = version(&map);
    let mut watch = test
        .watch(&format!("{maps}?watch=1&resourceVersion={since}"))
        .await;

    let same = test.put(&one, &map).await.ok();
    assert_eq!(version(&same), since, "PUT of the same object");
    let unversioned = with(map.clone(), &[("/metadata/resourceVersion", json!(""))]);
    let same = test.put(&one, &unversioned).await.ok();
    assert_eq!(version(&same), since, "PUT without a resource version");
    let value = json!({"data": {"key": "value"}});
    for (kind, patch) in [
        (PatchType::Merge, json!({})),
        (PatchType::Merge, value.clone()),
        (PatchType::Strategic, json!({})),
        (PatchType::Strategic, value),
        (PatchType::Json, json!([])),
        (
            PatchType::Json,
            json!([{"op": "replace", "path": "/data/key", "value": "value"}]),
        ),
    ] {
        let same = test.patch(&one, kind, &patch).await.ok();
        assert_eq!(version(&same), since, "{kind:?} {patch}");
    }

    // The next event is for the next change.
    let changed = with(map, &[("/data/key", json!("other"))]);
    let changed = test.put(&one, &changed).await.ok();
    let seen = watch.event_of("MODIFIED", "a").await;
    assert_eq!(version(&seen), version(&changed));
}

#[tokio::test]
async fn rule_01_an_unchanged_status_creates_no_revision() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    test.create(&pods, &pod("a")).await;
    let status = format!("{pods}/a/status");
    let ready = json!({"status": {"message": "here"}});
    let first = test.patch(&status, PatchType::Merge, &ready).await.ok();
    let again = test.patch(&status, PatchType::Merge, &ready).await.ok();
    assert_eq!(version(&first), version(&again));
    let again = test.put(&status, &again).await.ok();
    assert_eq!(version(&first), version(&again));
}
