//! Reads and watches.

use std::sync::Arc;

use crate::support::{
    Api, ManualClock, api, available_events, config, kind, names, options, pod, status,
};
use jiff::SignedDuration;
use longshore_engine::{
    Engine, Error, ListRequest, Options, ReadVersion, WatchEvent, WatchRequest, WatchStart,
};
use serde_json::json;

async fn filled(count: usize) -> Api {
    let api = api();
    for i in 0..count {
        let mut object = config(&format!("c{i}"));
        object["metadata"]["labels"] = json!({"odd": (i % 2).to_string()});
        api.create("configmaps", object).await.unwrap();
    }
    api
}

fn configs() -> ListRequest {
    ListRequest {
        namespace: Some("default".into()),
        ..ListRequest::of(kind("configmaps"))
    }
}

fn watch_configs(since: WatchStart) -> WatchRequest {
    WatchRequest::of(kind("configmaps"), since)
}

#[tokio::test]
async fn pages_are_one_consistent_snapshot() {
    let api = filled(5).await;
    let first = api
        .0
        .list(&ListRequest {
            limit: Some(2),
            ..configs()
        })
        .unwrap();
    assert_eq!(
        (names(&first), first.remaining),
        (vec!["c0", "c1"], Some(3))
    );
    api.delete("configmaps", "c3").await.unwrap();
    api.create("configmaps", config("c2x")).await.unwrap();
    api.merge("configmaps", "c4", json!({"data": {"a": "new"}}))
        .await
        .unwrap();
    let next = ListRequest {
        limit: Some(2),
        cursor: first.cursor.clone(),
        ..configs()
    };
    let second = api.0.list(&next).unwrap();
    assert_eq!(
        (names(&second), second.remaining),
        (vec!["c2", "c3"], Some(1))
    );
    let next = ListRequest {
        limit: Some(2),
        cursor: second.cursor.clone(),
        ..configs()
    };
    let third = api.0.list(&next).unwrap();
    assert_eq!(
        (names(&third), &third.cursor, third.remaining),
        (vec!["c4"], &None, None)
    );
    assert_eq!(third.items[0].value()["data"]["a"], "1");
    assert_eq!(
        (first.revision, second.revision),
        (third.revision, third.revision)
    );
}

#[tokio::test]
async fn an_expired_continue_token_offers_an_inconsistent_one() {
    let api = filled(4).await;
    let first = api
        .0
        .list(&ListRequest {
            limit: Some(2),
            ..configs()
        })
        .unwrap();
    api.create("configmaps", config("c9")).await.unwrap();
    api.0.expire_history().await;
    let next = ListRequest {
        limit: Some(2),
        cursor: first.cursor,
        ..configs()
    };
    let error = api.0.list(&next).unwrap_err().status();
    assert_eq!((error.code, error.reason.as_str()), (410, "Expired"));
    let token = error.metadata["continue"].as_str().unwrap().to_owned();
    let rest = api
        .0
        .list(&ListRequest {
            cursor: Some(token),
            ..configs()
        })
        .unwrap();
    assert_eq!(
        (names(&rest), rest.revision),
        (vec!["c2", "c3", "c9"], api.0.revision())
    );
}

#[tokio::test]
async fn a_continue_token_excludes_a_resource_version_and_must_be_valid() {
    let api = filled(3).await;
    let first = api
        .0
        .list(&ListRequest {
            limit: Some(1),
            ..configs()
        })
        .unwrap();
    let with = ListRequest {
        cursor: first.cursor,
        version: ReadVersion::Exact(1),
        ..configs()
    };
    assert_eq!(api.0.list(&with).unwrap_err().status().code, 400);
    let garbage = ListRequest {
        cursor: Some("garbage!".into()),
        ..configs()
    };
    assert_eq!(api.0.list(&garbage).unwrap_err().status().code, 400);
}

#[tokio::test]
async fn remaining_items_are_not_counted_with_selectors() {
    let api = filled(6).await;
    let odd = ListRequest {
        labels: "odd=1".parse().unwrap(),
        limit: Some(2),
        ..configs()
    };
    let page = api.0.list(&odd).unwrap();
    assert_eq!((names(&page), page.remaining), (vec!["c1", "c3"], None));
    let last = api
        .0
        .list(&ListRequest {
            cursor: page.cursor,
            ..odd
        })
        .unwrap();
    assert_eq!((names(&last), &last.cursor), (vec!["c5"], &None));
}

#[tokio::test]
async fn resource_versions_of_lists_and_gets() {
    let api = filled(2).await;
    let then = api.0.revision();
    api.delete("configmaps", "c0").await.unwrap();
    let at = |version| {
        api.0.list(&ListRequest {
            version,
            ..configs()
        })
    };
    assert_eq!(names(&at(ReadVersion::Exact(then)).unwrap()), ["c0", "c1"]);
    assert_eq!(at(ReadVersion::Exact(then)).unwrap().revision, then);
    for version in [
        ReadVersion::Latest,
        ReadVersion::Any,
        ReadVersion::AtLeast(then),
    ] {
        assert_eq!(names(&at(version).unwrap()), ["c1"]);
    }
    let (code, reason, message) = status(at(ReadVersion::AtLeast(then + 10)));
    assert_eq!((code, &*reason), (504, "Timeout"));
    assert_eq!(
        message,
        format!(
            "Too large resource version: {}, current: {}",
            then + 10,
            then + 1
        )
    );
    let get = |version| {
        api.0
            .get(&kind("configmaps"), Some("default"), "c0", version)
    };
    assert_eq!(get(ReadVersion::Exact(then)).unwrap().name(), "c0");
    assert_eq!(
        status(get(ReadVersion::Latest)).2,
        r#"configmaps "c0" not found"#
    );
    api.0.expire_history().await;
    assert_eq!(status(at(ReadVersion::Exact(then))).0, 410);
}

#[tokio::test]
async fn a_list_is_limited_to_its_namespace() {
    let api = filled(1).await;
    for name in ["default-2", "defaul"] {
        api.create("namespaces", json!({"metadata": {"name": name}}))
            .await
            .unwrap();
        api.create_in(name, "configmaps", json!({"metadata": {"name": "x"}}))
            .await
            .unwrap();
    }
    assert_eq!(names(&api.0.list(&configs()).unwrap()), ["c0"]);
    assert_eq!(api.list("configmaps").items.len(), 3);
    let field = "metadata.namespace=defaul".parse().unwrap();
    let page = api.0.list(&ListRequest {
        fields: field,
        ..ListRequest::of(kind("configmaps"))
    });
    assert_eq!(names(&page.unwrap()), ["x"]);
}

#[tokio::test]
async fn pods_are_selected_by_their_fields() {
    let api = api();
    for name in ["a", "b"] {
        api.create("pods", pod(name)).await.unwrap();
    }
    api.bind("a", "here").await.unwrap();
    let by = |fields: &str| {
        let fields = fields.parse().unwrap();
        api.0.list(&ListRequest {
            fields,
            ..ListRequest::of(kind("pods"))
        })
    };
    assert_eq!(names(&by("spec.nodeName=here").unwrap()), ["a"]);
    assert_eq!(names(&by("spec.nodeName=").unwrap()), ["b"]);
    assert_eq!(
        names(&by("status.phase!=Running,metadata.name=b").unwrap()),
        ["b"]
    );
    let (code, _, message) = status(by("spec.shoes=1"));
    assert_eq!(code, 400);
    assert_eq!(message, "field label not supported: spec.shoes");
}

#[tokio::test]
async fn a_watch_from_the_newest_revision_begins_with_the_current_state() {
    let api = filled(2).await;
    let mut watch = api.0.watch(&watch_configs(WatchStart::Latest)).unwrap();
    assert_eq!(available_events(&mut watch), ["ADDED c0", "ADDED c1"]);
    api.delete("configmaps", "c0").await.unwrap();
    api.create("pods", pod("p")).await.unwrap();
    assert_eq!(available_events(&mut watch), ["DELETED c0"]);
    assert_eq!(watch.bookmark().unwrap(), api.0.revision());
}

#[tokio::test]
async fn a_watch_from_a_version_sends_all_later_events() {
    let api = filled(1).await;
    let then = api.0.revision();
    api.create("configmaps", config("x")).await.unwrap();
    api.merge("configmaps", "x", json!({"data": {"a": "2"}}))
        .await
        .unwrap();
    api.delete("configmaps", "x").await.unwrap();
    let mut watch = api
        .0
        .watch(&watch_configs(WatchStart::After(then)))
        .unwrap();
    assert_eq!(
        available_events(&mut watch),
        ["ADDED x", "MODIFIED x", "DELETED x"]
    );
}

#[tokio::test]
async fn a_watch_from_the_future_waits() {
    let api = filled(1).await;
    let future = api.0.revision() + 1;
    let mut watch = api
        .0
        .watch(&watch_configs(WatchStart::After(future)))
        .unwrap();
    api.create("configmaps", config("x")).await.unwrap();
    assert_eq!(api.0.revision(), future);
    assert_eq!(available_events(&mut watch), [""; 0]);
    api.create("configmaps", config("y")).await.unwrap();
    assert_eq!(available_events(&mut watch), ["ADDED y"]);
}

#[tokio::test]
async fn a_waiting_watch_wakes_and_a_cancelled_call_loses_no_event() {
    let api = filled(0).await;
    let since = WatchStart::After(api.0.revision());
    let mut watch = api.0.watch(&watch_configs(since)).unwrap();
    let cancelled = tokio::time::timeout(std::time::Duration::from_millis(5), watch.next()).await;
    assert!(cancelled.is_err());
    let waiting = tokio::spawn(async move { watch.next().await });
    api.create("configmaps", config("x")).await.unwrap();
    let event = waiting.await.unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Added(object) if object.name() == "x"));
}

#[tokio::test]
async fn deleted_events_have_their_own_version_and_the_last_state() {
    let api = filled(1).await;
    let since = WatchStart::After(api.0.revision());
    let mut watch = api.0.watch(&watch_configs(since)).unwrap();
    api.delete("configmaps", "c0").await.unwrap();
    let Some(WatchEvent::Deleted(object)) = watch.try_next().unwrap() else {
        panic!("deleted")
    };
    assert_eq!(object.revision(), api.0.revision());
    let value = object.value();
    assert_eq!(
        value["metadata"]["resourceVersion"],
        api.0.revision().to_string()
    );
    assert_eq!(value["data"]["a"], "1");
}

#[tokio::test]
async fn objects_that_leave_a_selector_are_deleted_and_those_that_enter_are_added() {
    let api = filled(1).await;
    let labels = "odd=1".parse().unwrap();
    let since = WatchStart::After(api.0.revision());
    let mut watch = api
        .0
        .watch(&WatchRequest {
            labels,
            ..watch_configs(since)
        })
        .unwrap();
    let set = |odd: &str| json!({"metadata": {"labels": {"odd": odd}}});
    api.merge("configmaps", "c0", set("1")).await.unwrap();
    api.merge("configmaps", "c0", json!({"data": {"a": "2"}}))
        .await
        .unwrap();
    assert_eq!(available_events(&mut watch), ["ADDED c0", "MODIFIED c0"]);
    api.merge("configmaps", "c0", set("0")).await.unwrap();
    let Some(WatchEvent::Deleted(object)) = watch.try_next().unwrap() else {
        panic!("deleted")
    };
    assert_eq!(
        (object.revision(), &*object.labels()["odd"]),
        (api.0.revision(), "1")
    );
    api.delete("configmaps", "c0").await.unwrap();
    assert_eq!(available_events(&mut watch), [""; 0]);
}

#[tokio::test]
async fn a_watch_that_is_too_old_or_too_slow_expires() {
    let api = filled(1).await;
    let then = api.0.revision();
    let mut slow = api
        .0
        .watch(&watch_configs(WatchStart::After(then)))
        .unwrap();
    api.create("configmaps", config("x")).await.unwrap();
    api.0.expire_history().await;
    let old = api.0.watch(&watch_configs(WatchStart::After(then)));
    let (code, reason, message) = status(old);
    assert_eq!((code, &*reason), (410, "Expired"));
    assert_eq!(
        message,
        format!("too old resource version: {then} ({})", then + 1)
    );
    assert!(matches!(slow.try_next(), Err(Error::Expired { .. })));
    assert!(
        api.0
            .watch(&watch_configs(WatchStart::After(then + 1)))
            .is_ok()
    );
}

#[tokio::test]
async fn history_is_bounded_by_number_and_by_bytes() {
    for (history, history_bytes) in [(3, usize::MAX), (usize::MAX, 2000)] {
        let limits = options(longshore_engine::Storage::Memory);
        let api = Api(Engine::open(Options {
            history,
            history_bytes,
            ..limits
        })
        .unwrap());
        let start = api.0.revision();
        api.create("configmaps", config("x")).await.unwrap();
        for i in 0..30 {
            api.merge("configmaps", "x", json!({"data": {"a": format!("n{i}")}}))
                .await
                .unwrap();
        }
        let watch = |after| api.0.watch(&watch_configs(WatchStart::After(after)));
        assert!(matches!(watch(start), Err(Error::Expired { .. })));
        assert!(watch(api.0.revision() - 2).is_ok());
        // Kinds have separate histories.
        let pods = WatchRequest::of(kind("pods"), WatchStart::After(start));
        assert!(api.0.watch(&pods).is_ok());
    }
}

#[tokio::test]
async fn history_is_bounded_by_time() {
    let clock = Arc::new(ManualClock::default());
    let api = Api(Engine::open(Options {
        clock: clock.clone(),
        ..options(longshore_engine::Storage::Memory)
    })
    .unwrap());
    let start = api.0.revision();
    let watch = |after| api.0.watch(&watch_configs(WatchStart::After(after)));
    api.create("configmaps", config("a")).await.unwrap();
    let first = api.0.revision();
    clock.advance(SignedDuration::from_mins(4));
    api.create("configmaps", config("b")).await.unwrap();
    assert_eq!(
        available_events(&mut watch(start).unwrap()),
        ["ADDED a", "ADDED b"]
    );
    clock.advance(SignedDuration::from_mins(2));
    // Any write trims the history, also a write to another kind.
    api.create("pods", pod("p")).await.unwrap();
    assert!(matches!(watch(start), Err(Error::Expired { .. })));
    assert_eq!(available_events(&mut watch(first).unwrap()), ["ADDED b"]);
    let pods = WatchRequest::of(kind("pods"), WatchStart::After(start));
    assert_eq!(
        available_events(&mut api.0.watch(&pods).unwrap()),
        ["ADDED p"]
    );
}

#[tokio::test]
async fn a_token_expires_with_time_also_without_later_changes_of_its_kind() {
    let clock = Arc::new(ManualClock::default());
    let api = Api(Engine::open(Options {
        clock: clock.clone(),
        ..options(longshore_engine::Storage::Memory)
    })
    .unwrap());
    for name in ["a", "b", "c"] {
        api.create("configmaps", config(name)).await.unwrap();
    }
    let page = ListRequest {
        limit: Some(1),
        ..configs()
    };
    let first = api.0.list(&page).unwrap();
    let next = ListRequest {
        cursor: first.cursor,
        ..page
    };
    let exact = ListRequest {
        version: ReadVersion::Exact(first.revision),
        ..configs()
    };
    api.create("pods", pod("p")).await.unwrap();
    assert_eq!(names(&api.0.list(&next).unwrap()), ["b"]);
    for minutes in [1, 3, 3] {
        clock.advance(SignedDuration::from_mins(minutes));
        let count = format!("q{}", api.0.revision());
        api.create("pods", pod(&count)).await.unwrap();
    }
    for request in [next, exact] {
        let expired = api.0.list(&request);
        assert!(matches!(expired, Err(Error::Expired { .. })), "{expired:?}");
    }
    // A watch that has received all events continues.
    assert!(
        api.0
            .watch(&watch_configs(WatchStart::After(first.revision)))
            .is_ok()
    );
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let api = filled(2).await;
    let request = WatchRequest {
        initial_events: true,
        bookmarks: true,
        ..watch_configs(WatchStart::After(1))
    };
    let revision = api.0.revision();
    let mut watch = api.0.watch(&request).unwrap();
    assert_eq!(
        available_events(&mut watch),
        [
            "ADDED c0".into(),
            "ADDED c1".into(),
            format!("END {revision}")
        ]
    );
    let without = WatchRequest {
        bookmarks: false,
        ..request.clone()
    };
    assert_eq!(
        available_events(&mut api.0.watch(&without).unwrap()),
        ["ADDED c0", "ADDED c1"]
    );
    let future = WatchRequest {
        since: WatchStart::After(revision + 1),
        ..request
    };
    assert!(matches!(
        api.0.watch(&future),
        Err(Error::VersionTooLarge { .. })
    ));
}

#[tokio::test]
async fn a_watch_ends_when_the_engine_is_closed() {
    let api = filled(0).await;
    let mut watch = api.0.watch(&watch_configs(WatchStart::Latest)).unwrap();
    drop(api);
    assert!(watch.try_next().unwrap().is_none());
}

#[tokio::test]
async fn a_waiting_watch_expires_when_its_history_is_trimmed() {
    let api = api();
    let request = WatchRequest::of(kind("configmaps"), WatchStart::After(api.0.revision()));
    let mut watch = api.0.watch(&request).unwrap();
    let trim = async {
        // A write to another kind does not wake the watch, which is now behind the newest
        // revision.
        api.create("pods", pod("a")).await.unwrap();
        api.0.expire_history().await;
        std::future::pending::<()>().await;
    };
    let event = tokio::select! {
        biased;
        event = watch.next() => event,
        () = trim => unreachable!(),
    };
    assert!(matches!(event, Err(Error::Expired { .. })));
}
