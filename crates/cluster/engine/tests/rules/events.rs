//! Rule 28: Events of the core group and of events.k8s.io are one store.

use std::sync::Arc;

use crate::support::{Api, ManualClock, api, available_events, status};
use longshore_engine::{
    Create, Error, ListRequest, Object, Patch, ReadVersion, Subresource, Target, WatchRequest,
    WatchStart, WriteOptions,
};
use longshore_model::{KindInfo, PatchKind};
use serde_json::{Value, json};

fn events_v1(api: &Api) -> Arc<KindInfo> {
    api.0.find("events.k8s.io", "v1", "events").unwrap()
}

async fn create(api: &Api, object: Value) -> Result<Arc<Object>, Error> {
    let create = Create {
        kind: events_v1(api),
        namespace: Some("default".into()),
        object,
        options: WriteOptions::default(),
    };
    Ok(api.0.create(create).await?.object)
}

fn event(name: &str) -> Value {
    json!({"metadata": {"name": name}, "eventTime": "2026-01-02T03:04:05.678901Z", "reason": "Tried",
        "action": "Trying", "note": "it was tried", "type": "Normal",
        "reportingController": "example.com/me", "reportingInstance": "me-1",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"}})
}

#[tokio::test]
async fn rule_28_an_event_is_served_in_both_groups() {
    let api = api();
    let made = create(&api, event("a")).await.unwrap().value();
    assert_eq!(
        (&made["apiVersion"], &made["note"]),
        (&json!("events.k8s.io/v1"), &json!("it was tried"))
    );
    let core = api.get("events", "a").unwrap().value();
    assert_eq!(core["apiVersion"], "v1");
    assert_eq!(core["message"], "it was tried");
    assert_eq!(core["involvedObject"]["name"], "p");
    assert_eq!(core["reportingComponent"], "example.com/me");
    assert_eq!(core["eventTime"], "2026-01-02T03:04:05.678901Z");
    assert!(core.get("note").is_none());
    let old = json!({"metadata": {"name": "b"}, "reason": "Old", "message": "an old one", "count": 3,
        "source": {"component": "me"}, "firstTimestamp": "2026-01-02T03:04:05Z", "type": "Warning",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}});
    api.create("events", old).await.unwrap();
    let kind = events_v1(&api);
    let seen = api
        .0
        .get(&kind, Some("default"), "b", ReadVersion::Latest)
        .unwrap()
        .value();
    assert_eq!(seen["note"], "an old one");
    assert_eq!(seen["deprecatedCount"], 3);
    assert_eq!(seen["deprecatedSource"]["component"], "me");
    assert_eq!(seen["deprecatedFirstTimestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(seen["regarding"]["name"], "p");
    assert!(seen.get("message").is_none());
}

#[tokio::test]
async fn rule_28_lists_watches_selectors_and_patches_of_events_k8s_io() {
    let api = api();
    let kind = events_v1(&api);
    let mut watch = api
        .0
        .watch(&WatchRequest::of(kind.clone(), WatchStart::Latest))
        .unwrap();
    create(&api, event("a")).await.unwrap();
    let mut request = ListRequest::of(kind.clone());
    request.fields = "regarding.name=p,reportingController=example.com/me"
        .parse()
        .unwrap();
    let page = api.0.list(&request).unwrap();
    assert_eq!(page.items[0].value()["apiVersion"], "events.k8s.io/v1");
    request.fields = "involvedObject.name=p".parse().unwrap();
    assert_eq!(status(api.0.list(&request)).0, 400);
    let patch = |body| Patch {
        target: Target {
            kind: kind.clone(),
            namespace: Some("default".into()),
            name: "a".into(),
        },
        subresource: Subresource::None,
        kind: PatchKind::Merge,
        body,
        options: WriteOptions::default(),
    };
    let series = json!({"series": {"count": 2, "lastObservedTime": "2026-01-02T03:05:05.000000Z"}});
    let written = api.0.patch(patch(series)).await.unwrap().object.value();
    assert_eq!(
        (&written["series"]["count"], &written["note"]),
        (&json!(2), &json!("it was tried"))
    );
    assert_eq!(
        api.get("events", "a").unwrap().value()["series"]["count"],
        2
    );
    let (code, _, message) = status(api.0.patch(patch(json!({"note": "another"}))).await);
    assert_eq!(code, 422);
    assert!(
        message.contains(r#"message: Invalid value: "another": field is immutable"#),
        "{message}"
    );
    assert_eq!(available_events(&mut watch), ["ADDED a", "MODIFIED a"]);
}

#[tokio::test]
async fn rule_28_events_k8s_io_validates_strictly() {
    let api = api();
    let bare = json!({"metadata": {"name": "a"}, "regarding": {"namespace": "default"}, "deprecatedCount": 1});
    let (code, _, message) = status(create(&api, bare).await);
    assert_eq!(code, 422);
    for part in [
        "eventTime: Required value",
        "type: Invalid value: \"\": has invalid value: ",
        "count: Invalid value: \"\": needs to be unset",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let mut timed = event("a");
    timed["action"] = json!("");
    timed["reportingController"] = json!("");
    let (_, _, message) = status(create(&api, timed).await);
    for part in [
        "reportingController: Required value",
        "action: Required value",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test]
async fn rule_28_events_are_kept_for_an_hour() {
    let clock = Arc::new(ManualClock::default());
    let options = longshore_engine::Options {
        clock: clock.clone(),
        ..crate::support::options(longshore_engine::Storage::Memory)
    };
    let api = Api(longshore_engine::Engine::open(options).unwrap());
    let old = |name: &str| {
        json!({"metadata": {"name": name}, "reason": "Old", "message": "m", "type": "Normal",
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}})
    };
    api.create("events", old("a")).await.unwrap();
    let mut watch = {
        let kind = events_v1(&api);
        api.0
            .watch(&WatchRequest::of(kind, WatchStart::Latest))
            .unwrap()
    };
    assert_eq!(available_events(&mut watch), ["ADDED a"]);
    clock.advance(jiff::SignedDuration::from_mins(30));
    api.create("events", old("b")).await.unwrap();
    assert_eq!(available_events(&mut watch), ["ADDED b"]);
    clock.advance(jiff::SignedDuration::from_mins(31));
    api.create("events", old("c")).await.unwrap();
    assert_eq!(available_events(&mut watch), ["ADDED c", "DELETED a"]);
    assert!(matches!(api.get("events", "a"), Err(Error::NotFound(_))));
    assert!(api.get("events", "b").is_ok());
}
