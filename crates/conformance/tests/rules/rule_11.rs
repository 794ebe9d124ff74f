//! Rule 11: DELETE, its options, grace and finalizers.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

use crate::common::{config_map, number, pod, version, with};

const HOLD: &str = "example.com/hold";

fn held(object: Value) -> Value {
    with(object, &[("/metadata/finalizers", json!([HOLD]))])
}

/// Makes a pod of this name that is bound to a node, so that it has a grace.
async fn bound(test: &ApiTest, name: &str) -> String {
    let pods = test.path("v1", "pods");
    test.create(&pods, &with(pod(name), &[("/spec/nodeName", json!("n"))]))
        .await;
    format!("{pods}/{name}")
}

#[tokio::test]
async fn rule_11_what_nothing_holds_goes_at_once_with_a_success() {
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
async fn rule_11_finalizers_hold_it_until_they_are_gone() {
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
    // Again: the same, and no new event.
    let again = test.delete(&one).await.ok();
    assert_eq!(
        again["metadata"]["deletionTimestamp"],
        pending["metadata"]["deletionTimestamp"]
    );
    assert_eq!(version(&again), version(&pending));
    // It is there, and can be written.
    let mut watch = test
        .watch(&format!(
            "{maps}?watch=1&resourceVersion={}",
            version(&pending)
        ))
        .await;
    let patch = json!({"data": {"key": "still"}});
    test.patch(&one, PatchType::Merge, &patch).await.ok();
    watch.event_of("MODIFIED", "a").await;
    // No new finalizer now.
    let more = json!({"metadata": {"finalizers": [HOLD, "example.com/more"]}});
    let answer = test.patch(&one, PatchType::Merge, &more).await;
    answer.refused_for(
        422,
        "Invalid",
        &[("FieldValueForbidden", "metadata.finalizers")],
    );
    // The deletion cannot be taken back.
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
async fn rule_11_an_update_without_finalizers_ends_it_too() {
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
async fn rule_11_a_running_pod_has_its_grace() {
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
    // It can shrink.
    let shorter = test
        .delete_with(&one, &json!({"gracePeriodSeconds": 5}))
        .await
        .ok();
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 5);
    assert!(at(&shorter) < at(&pending));
    // But not grow.
    let longer = test
        .delete_with(&one, &json!({"gracePeriodSeconds": 100}))
        .await
        .ok();
    assert_eq!(longer["metadata"]["deletionGracePeriodSeconds"], 5);
    assert_eq!(at(&longer), at(&shorter));
    test.get(&one).await.ok();
    // The node says that it is over.
    let over = test
        .delete_with(&one, &json!({"gracePeriodSeconds": 0}))
        .await;
    assert_eq!(over.ok()["metadata"]["name"], "a");
    test.get(&one).await.refused(404, "NotFound");
}

#[tokio::test]
async fn rule_11_the_end_of_a_grace_is_seen_before_the_object_goes() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    let made = test.create(&pods, &pod("a")).await;
    let one = format!("{pods}/a");
    let answer = test.delete(&one).await.ok();
    assert_eq!(answer["metadata"]["deletionGracePeriodSeconds"], 0);
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
            answer["metadata"]["deletionTimestamp"]
        );
    }
    let why = "the answer has the version of the delete: 1.20 has the one before it";
    let version = test.old_or_new(number(&ended), number(&gone), why);
    assert_eq!(number(&answer), version);
}

#[tokio::test]
async fn rule_11_some_kinds_answer_with_what_they_deleted() {
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
async fn rule_11_the_grace_is_the_pods_own_or_the_requests() {
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
async fn rule_11_unscheduled_and_finished_pods_have_no_grace() {
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
async fn rule_11_finalizers_and_grace_are_both_waited_for() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    let object = with(held(pod("a")), &[("/spec/nodeName", json!("n"))]);
    test.create(&pods, &object).await;
    let one = format!("{pods}/a");
    let pending = test.delete(&one).await.ok();
    assert_eq!(pending["metadata"]["deletionGracePeriodSeconds"], 30);
    // Finalizers gone first: the grace holds it.
    let free = json!({"metadata": {"finalizers": null}});
    test.patch(&one, PatchType::Merge, &free).await.ok();
    test.get(&one).await.ok();
    test.delete_with(&one, &json!({"gracePeriodSeconds": 0}))
        .await
        .ok();
    test.get(&one).await.refused(404, "NotFound");
    // The grace over first: the finalizers hold it.
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
async fn rule_11_preconditions_must_hold() {
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
async fn rule_11_the_bodys_options_win() {
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
async fn rule_11_options_that_make_no_sense_are_refused() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let one = format!("{maps}/a");
    test.create(&maps, &config_map("a")).await;
    let wrong = json!({"kind": "ConfigMap", "apiVersion": "v1"});
    let answer = test.delete_with(&one, &wrong).await;
    if test.newer("options of another kind: 1.20 answers 500") {
        answer.refused(400, "BadRequest");
    }
    let answer = test
        .call("DELETE", &one)
        .body("application/json", "{not json")
        .send()
        .await;
    if test.newer("options that are no JSON: 1.20 answers 500") {
        answer.refused(400, "BadRequest");
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
    let answer = test
        .delete(&format!("{maps}?labelSelector=app%3Dweb"))
        .await
        .ok();
    assert_eq!(answer["kind"], "ConfigMapList");
    let left = test.get(&maps).await.ok();
    assert_eq!(crate::common::items(&left), ["b", "c"]);
    assert!(left["items"][0]["metadata"]["deletionTimestamp"].is_string());
    // A collection that does not exist or is empty: nothing to do.
    let secrets = test.path("v1", "secrets");
    test.delete(&secrets).await.ok();
}
