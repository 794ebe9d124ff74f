//! Rule 11: DELETE: grace periods, finalizers, preconditions.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

use crate::common::{config_map, number, pod, version, with};

const HOLD: &str = "example.com/hold";

fn held(object: Value) -> Value {
    with(object, &[("/metadata/finalizers", json!([HOLD]))])
}

/// Creates a pod that is bound to a node, so that it has a grace period.
async fn bound(test: &ApiTest, name: &str) -> String {
    let pods = test.path("v1", "pods");
    test.create(&pods, &with(pod(name), &[("/spec/nodeName", json!("n"))]))
        .await;
    format!("{pods}/{name}")
}

#[tokio::test]
async fn rule_11_deletion_without_finalizers_is_immediate_and_returns_success() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    let made = test.create(&maps, &config_map("a")).await;
    let status = test.delete(&one).await.ok();
    assert_eq!(
        (&status["kind"], &status["apiVersion"]),
        (&json!("Status"), &json!("v1"))
    );
    assert_eq!(status["status"], "Success");
    let details = json!({"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]});
    assert_eq!(status["details"], details);
    test.get(&one).await.refused(404, "NotFound");
    test.delete(&one).await.refused(404, "NotFound");

    let deployments = test.path("apps/v1", "deployments");
    let made = test
        .create(&deployments, &crate::common::deployment("a"))
        .await;
    let status = test.delete(&format!("{deployments}/a")).await.ok();
    let uid = &made["metadata"]["uid"];
    let details = json!({"name": "a", "group": "apps", "kind": "deployments", "uid": uid});
    assert_eq!(status["details"], details);
}

#[tokio::test]
async fn rule_11_finalizers_block_deletion_until_removed() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    let made = test.create(&maps, &held(config_map("a"))).await;
    let pending = test.delete(&one).await.ok();
    assert_eq!(pending["kind"], "ConfigMap");
    assert!(
        pending["metadata"]["deletionTimestamp"].is_string(),
        "{pending}"
    );
    assert_eq!(pending["metadata"]["deletionGracePeriodSeconds"], 0);
    assert!(number(&pending) > number(&made));
    // A second delete changes nothing and sends no event.
    let again = test.delete(&one).await.ok();
    assert_eq!(
        again["metadata"]["deletionTimestamp"],
        pending["metadata"]["deletionTimestamp"]
    );
    assert_eq!(version(&again), version(&pending));
    // The object still exists and can be changed.
    let mut watch = test
        .watch(&format!(
            "{maps}?watch=1&resourceVersion={}",
            version(&pending)
        ))
        .await;
    let patch = json!({"data": {"key": "still"}});
    test.patch(&one, PatchType::Merge, &patch).await.ok();
    watch.event_of("MODIFIED", "a").await;
    // Finalizers can no longer be added.
    let more = json!({"metadata": {"finalizers": [HOLD, "example.com/more"]}});
    let response = test.patch(&one, PatchType::Merge, &more).await;
    response.refused_for(
        422,
        "Invalid",
        &[("FieldValueForbidden", "metadata.finalizers")],
    );
    // The deletion cannot be cancelled.
    let alive = json!({"metadata": {"deletionTimestamp": null}});
    let kept = test.patch(&one, PatchType::Merge, &alive).await.ok();
    assert!(kept["metadata"]["deletionTimestamp"].is_string());

    let free = json!({"metadata": {"finalizers": null}});
    let last = test.patch(&one, PatchType::Merge, &free).await.ok();
    assert_eq!(last["metadata"].get("finalizers"), None);
    let gone = watch.event_of("DELETED", "a").await;
    assert_eq!(gone["data"]["key"], "still");
    test.get(&one).await.refused(404, "NotFound");
}

#[tokio::test]
async fn rule_11_an_update_that_removes_finalizers_completes_the_deletion() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    test.create(&maps, &held(config_map("a"))).await;
    let pending = test.delete(&one).await.ok();
    let free = with(pending, &[("/metadata/finalizers", json!([]))]);
    test.put(&one, &free).await.ok();
    test.get(&one).await.refused(404, "NotFound");
}

#[tokio::test]
async fn rule_11_a_running_pod_has_a_grace_period() {
    let test = ApiTest::start().await;
    let one = bound(&test, "a").await;
    let pending = test.delete(&one).await.ok();
    assert_eq!(pending["kind"], "Pod");
    assert_eq!(pending["metadata"]["deletionGracePeriodSeconds"], 30);
    let at = |object: &Value| {
        let text = object["metadata"]["deletionTimestamp"].as_str().unwrap();
        text.parse::<jiff::Timestamp>().unwrap().as_second()
    };
    let made = pending["metadata"]["creationTimestamp"].as_str().unwrap();
    let made = made.parse::<jiff::Timestamp>().unwrap().as_second();
    assert!((29..=60).contains(&(at(&pending) - made)), "{pending}");
    // The grace period can be shortened.
    let shorter = test
        .delete_with(&one, &json!({"gracePeriodSeconds": 5}))
        .await
        .ok();
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 5);
    assert!(at(&shorter) < at(&pending));
    // The grace period cannot be extended.
    let longer = test
        .delete_with(&one, &json!({"gracePeriodSeconds": 100}))
        .await
        .ok();
    assert_eq!(longer["metadata"]["deletionGracePeriodSeconds"], 5);
    assert_eq!(at(&longer), at(&shorter));
    test.get(&one).await.ok();
    // The node ends the grace period.
    let over = test
        .delete_with(&one, &json!({"gracePeriodSeconds": 0}))
        .await;
    assert_eq!(over.ok()["metadata"]["name"], "a");
    test.get(&one).await.refused(404, "NotFound");
}

#[tokio::test]
async fn rule_11_a_modified_event_precedes_the_deleted_event() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    let made = test.create(&pods, &pod("a")).await;
    let one = format!("{pods}/a");
    let response = test.delete(&one).await.ok();
    assert_eq!(response["metadata"]["deletionGracePeriodSeconds"], 0);
    let since = version(&made);
    let mut watch = test
        .watch(&format!("{pods}?watch=1&resourceVersion={since}"))
        .await;
    let ended = watch.event("MODIFIED").await;
    let gone = watch.event_of("DELETED", "a").await;
    assert!(number(&gone) > number(&ended));
    for seen in [&ended, &gone] {
        assert_eq!(
            seen["metadata"]["deletionTimestamp"],
            response["metadata"]["deletionTimestamp"]
        );
    }
    let why = "the response has the resource version of the delete: in 1.20, the one before it";
    let version = test.old_or_new(number(&ended), number(&gone), why);
    assert_eq!(number(&response), version);
}

#[tokio::test]
async fn rule_11_deleting_some_kinds_returns_the_object() {
    let test = ApiTest::start().await;
    for (path, object) in [
        (test.path("v1", "pods"), pod("a")),
        (
            test.path("v1", "serviceaccounts"),
            json!({"metadata": {"name": "a"}}),
        ),
    ] {
        let made = test.create(&path, &object).await;
        let gone = test.delete(&format!("{path}/a")).await.ok();
        assert_eq!(gone["kind"], made["kind"]);
        assert_eq!(gone["metadata"]["uid"], made["metadata"]["uid"]);
        test.get(&format!("{path}/a"))
            .await
            .refused(404, "NotFound");
    }
}

#[tokio::test]
async fn rule_11_the_grace_period_is_the_pods_own_or_the_requests() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    let own = json!({"nodeName": "n", "terminationGracePeriodSeconds": 7});
    let mut own_pod = pod("own");
    own_pod["spec"]
        .as_object_mut()
        .unwrap()
        .extend(own.as_object().unwrap().clone());
    test.create(&pods, &own_pod).await;
    let pending = test.delete(&format!("{pods}/own")).await.ok();
    assert_eq!(pending["metadata"]["deletionGracePeriodSeconds"], 7);
    let one = bound(&test, "asked").await;
    let pending = test
        .delete(&format!("{one}?gracePeriodSeconds=11"))
        .await
        .ok();
    assert_eq!(pending["metadata"]["deletionGracePeriodSeconds"], 11);
    let one = bound(&test, "now").await;
    test.delete(&format!("{one}?gracePeriodSeconds=0"))
        .await
        .ok();
    test.get(&one).await.refused(404, "NotFound");
}

#[tokio::test]
async fn rule_11_unscheduled_and_finished_pods_have_no_grace_period() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    test.create(&pods, &pod("unscheduled")).await;
    let one = format!("{pods}/unscheduled");
    test.delete(&one).await.ok();
    test.get(&one).await.refused(404, "NotFound");
    for phase in ["Succeeded", "Failed"] {
        let one = bound(&test, &phase.to_lowercase()).await;
        let status = format!("{one}/status");
        let patch = json!({"status": {"phase": phase}});
        test.patch(&status, PatchType::Merge, &patch).await.ok();
        test.delete(&one).await.ok();
        test.get(&one).await.refused(404, "NotFound");
    }
}

#[tokio::test]
async fn rule_11_deletion_waits_for_finalizers_and_the_grace_period() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    let object = with(held(pod("a")), &[("/spec/nodeName", json!("n"))]);
    test.create(&pods, &object).await;
    let one = format!("{pods}/a");
    let pending = test.delete(&one).await.ok();
    assert_eq!(pending["metadata"]["deletionGracePeriodSeconds"], 30);
    // Without finalizers, the grace period still delays the deletion.
    let free = json!({"metadata": {"finalizers": null}});
    test.patch(&one, PatchType::Merge, &free).await.ok();
    test.get(&one).await.ok();
    test.delete_with(&one, &json!({"gracePeriodSeconds": 0}))
        .await
        .ok();
    test.get(&one).await.refused(404, "NotFound");
    // After the grace period, finalizers still block the deletion.
    test.create(&pods, &object).await;
    test.delete(&one).await.ok();
    let over = test
        .delete_with(&one, &json!({"gracePeriodSeconds": 0}))
        .await
        .ok();
    assert_eq!(over["metadata"]["deletionGracePeriodSeconds"], 0);
    test.get(&one).await.ok();
    test.patch(&one, PatchType::Merge, &free).await.ok();
    test.get(&one).await.refused(404, "NotFound");
}

#[tokio::test]
async fn rule_11_preconditions_are_checked() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    let made = test.create(&maps, &config_map("a")).await;
    let (uid, old) = (&made["metadata"]["uid"], version(&made));
    let changed = with(made.clone(), &[("/data/key", json!("changed"))]);
    let now = version(&test.put(&one, &changed).await.ok());
    let other = "11111111-2222-3333-4444-555555555555";
    for wrong in [
        json!({"uid": other}),
        json!({"resourceVersion": old}),
        json!({"uid": uid, "resourceVersion": old}),
        json!({"uid": other, "resourceVersion": now}),
    ] {
        let options = json!({"preconditions": wrong});
        let status = test
            .delete_with(&one, &options)
            .await
            .refused(409, "Conflict");
        assert_eq!(status["details"], json!({"name": "a", "kind": "ConfigMap"}));
        let message = status["message"].as_str().unwrap();
        assert!(message.contains("in the precondition ("), "{message}");
    }
    test.get(&one).await.ok();
    let right = json!({"preconditions": {"uid": uid, "resourceVersion": now}});
    test.delete_with(&one, &right).await.ok();
}

#[tokio::test]
async fn rule_11_options_in_the_body_override_the_query() {
    let test = ApiTest::start().await;
    let one = bound(&test, "a").await;
    let options = json!({
        "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 9,
    });
    let path = format!("{one}?gracePeriodSeconds=3");
    let pending = test.delete_with(&path, &options).await.ok();
    assert_eq!(pending["metadata"]["deletionGracePeriodSeconds"], 9);
}

#[tokio::test]
async fn rule_11_invalid_options_are_rejected() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    test.create(&maps, &config_map("a")).await;
    let wrong = json!({"kind": "ConfigMap", "apiVersion": "v1"});
    let response = test.delete_with(&one, &wrong).await;
    if test.is_newer("options of another kind: 1.20 returns 500") {
        response.refused(400, "BadRequest");
    }
    let response = test
        .request("DELETE", &one)
        .body("application/json", "{not json")
        .send()
        .await;
    if test.is_newer("options that are not JSON: 1.20 returns 500") {
        response.refused(400, "BadRequest");
    }
    test.get(&one).await.ok();
}

#[tokio::test]
async fn rule_11_a_collection_is_deleted_by_selector() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    for (name, app) in [("a", "web"), ("b", "web"), ("c", "db")] {
        let map = with(
            config_map(name),
            &[("/metadata/labels", json!({"app": app}))],
        );
        test.create(&maps, &map).await;
    }
    let hold = json!({"metadata": {"finalizers": [HOLD]}});
    test.patch(&format!("{maps}/b"), PatchType::Merge, &hold)
        .await
        .ok();
    let response = test
        .delete(&format!("{maps}?labelSelector=app%3Dweb"))
        .await
        .ok();
    assert_eq!(response["kind"], "ConfigMapList");
    let left = test.get(&maps).await.ok();
    assert_eq!(crate::common::items(&left), ["b", "c"]);
    assert!(left["items"][0]["metadata"]["deletionTimestamp"].is_string());
    // Deleting an empty collection succeeds.
    let secrets = test.path("v1", "secrets");
    test.delete(&secrets).await.ok();
}
