//! Rule 28: Events of the core group and of events.k8s.io share one store.

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

fn new_event(test: &ApiTest, name: &str) -> Value {
    json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name},
        "eventTime": "2026-01-02T03:04:05.678901Z", "reason": "Tried", "action": "Trying",
        "note": "it was tried", "type": "Normal",
        "reportingController": "example.com/me", "reportingInstance": "me-1",
        "regarding": {"kind": "Pod", "namespace": test.namespace(), "name": "p"}})
}

#[tokio::test]
async fn rule_28_an_event_is_visible_in_both_groups() {
    let test = ApiTest::start().await;
    let (core, new) = (
        test.path("v1", "events"),
        test.path("events.k8s.io/v1", "events"),
    );
    let mut watch = test.watch(&format!("{core}?watch=true")).await;
    let made = test.create(&new, &new_event(&test, "a")).await;
    assert_eq!(made["note"], "it was tried");
    let added = watch.event_of("ADDED", "a").await;
    assert_eq!(added["message"], "it was tried");
    let seen = test.get(&format!("{core}/a")).await.ok();
    assert_eq!(seen["apiVersion"], "v1");
    assert_eq!(seen["involvedObject"]["name"], "p");
    assert_eq!(seen["reportingComponent"], "example.com/me");
    assert_eq!(seen["eventTime"], "2026-01-02T03:04:05.678901Z");
    let old = json!({"metadata": {"name": "b"}, "reason": "Old", "message": "an old one", "count": 3,
        "source": {"component": "me"}, "firstTimestamp": "2026-01-02T03:04:05Z", "type": "Warning",
        "involvedObject": {"kind": "Pod", "namespace": test.namespace(), "name": "p"}});
    test.create(&core, &old).await;
    let seen = test.get(&format!("{new}/b")).await.ok();
    assert_eq!(
        (&seen["note"], &seen["deprecatedCount"]),
        (&json!("an old one"), &json!(3))
    );
    assert_eq!(seen["deprecatedSource"]["component"], "me");
    assert_eq!(seen["deprecatedFirstTimestamp"], "2026-01-02T03:04:05Z");
    let list = test
        .get(&format!(
            "{new}?fieldSelector=regarding.name=p,type=Warning"
        ))
        .await
        .ok();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(list["items"][0]["metadata"]["name"], "b");
}

#[tokio::test]
async fn rule_28_a_watch_of_either_group_reports_events_in_its_form() {
    let test = ApiTest::start().await;
    let groups = [("v1", "message"), ("events.k8s.io/v1", "note")];
    let path = |version: &str| test.path(version, "events");
    let mut watches = Vec::new();
    for (version, _) in groups {
        watches.push(test.watch(&format!("{}?watch=true", path(version))).await);
    }
    let one = format!("{}/a", path("events.k8s.io/v1"));
    test.create(&path("events.k8s.io/v1"), &new_event(&test, "a"))
        .await;
    let series = json!({"series": {"count": 2, "lastObservedTime": "2026-01-02T03:05:05.000000Z"}});
    test.patch(&one, PatchType::Merge, &series).await.ok();
    test.delete(&one).await.ok();
    for (watch, (version, text)) in watches.iter_mut().zip(groups) {
        for what in ["ADDED", "MODIFIED", "DELETED"] {
            let event = watch.event_of(what, "a").await;
            assert_eq!(event["apiVersion"], version, "{what}: {event}");
            assert_eq!(event[text], "it was tried", "{what}: {event}");
        }
    }
}

#[tokio::test]
async fn rule_28_events_k8s_io_events_have_stricter_validation() {
    let test = ApiTest::start().await;
    let new = test.path("events.k8s.io/v1", "events");
    let mut event = new_event(&test, "a");
    event["eventTime"] = Value::Null;
    test.post(&new, &event).await.refused_for(
        422,
        "Invalid",
        &[("FieldValueRequired", "eventTime")],
    );
    for (field, reason) in [
        ("action", "FieldValueRequired"),
        ("reason", "FieldValueRequired"),
        ("reportingInstance", "FieldValueRequired"),
    ] {
        let mut event = new_event(&test, "a");
        event[field] = json!("");
        test.post(&new, &event)
            .await
            .refused_for(422, "Invalid", &[(reason, field)]);
    }
    let mut event = new_event(&test, "a");
    event["deprecatedCount"] = json!(2);
    test.post(&new, &event)
        .await
        .refused_for(422, "Invalid", &[("FieldValueInvalid", "count")]);
    test.create(&new, &new_event(&test, "a")).await;
    let one = format!("{new}/a");
    let series = json!({"series": {"count": 2, "lastObservedTime": "2026-01-02T03:05:05.000000Z"}});
    let response = test.patch(&one, PatchType::Merge, &series).await.ok();
    assert_eq!(response["series"]["count"], 2);
    if test.is_newer("the note of an events.k8s.io Event is immutable") {
        let another = json!({"note": "another"});
        let response = test.patch(&one, PatchType::Merge, &another).await;
        response.refused_for(422, "Invalid", &[("FieldValueInvalid", "message")]);
    }
}
