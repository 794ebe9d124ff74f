//! Long work is done in pieces.

use longshore_engine::{WatchEvent, WatchRequest, WatchStart};
use serde_json::json;

use crate::support::{api, config, kind};

/// A watch finds its event behind thousands of events that it does not select.
#[tokio::test]
async fn rule_05_a_watch_finds_its_event_behind_many_others() {
    let api = api();
    api.create("configmaps", config("a")).await.unwrap();
    let start = api.0.revision();
    for n in 0..9000 {
        let change = json!({"data": {"n": n.to_string()}});
        api.merge("configmaps", "a", change).await.unwrap();
    }
    let mut request = WatchRequest::of(kind("configmaps"), WatchStart::After(start));
    request.fields = "metadata.name=b".parse().unwrap();
    let mut watch = api.0.watch(&request).unwrap();
    // A single turn does not examine all events.
    assert!(watch.try_next().unwrap().is_none());
    assert!(watch.bookmark().unwrap() < api.0.revision());
    api.create("configmaps", config("b")).await.unwrap();
    let found = watch.next().await.unwrap();
    assert!(matches!(found, WatchEvent::Added(made) if made.name() == "b"));
    assert_eq!(watch.bookmark().unwrap(), api.0.revision());
}
