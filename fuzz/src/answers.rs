//! Responses of a server to the client: a list, the events of a watch, an object. The
//! client never panics, and it decodes the same values as serde_json.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use longshore_client::{Cluster, Item, Timing, kinds::Pod};
use serde_json::Value;

/// The maximum number of watch events that are checked.
const MAX_EVENTS: usize = 16;

pub fn check(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let cluster = cluster_returning(Bytes::copy_from_slice(data));
        list(&cluster, data).await;
        object(&cluster, data).await;
        watch(&cluster).await;
    });
}

fn cluster_returning(body: Bytes) -> Cluster {
    let service = tower::service_fn(move |_: Request<_>| {
        let response = Response::new(Full::new(body.clone()));
        async move { Ok::<_, Infallible>(response) }
    });
    let mut timing = Timing::default();
    timing.initial_backoff = Duration::ZERO;
    timing.max_backoff = Duration::ZERO;
    Cluster::from_service(service, "default").with_timing(timing)
}

async fn list(cluster: &Cluster, data: &[u8]) {
    let plain = serde_json::from_slice::<Value>(data).ok();
    let Ok(list) = cluster.pods().list().await else {
        // The client may reject only invalid lists.
        let valid = plain.is_some_and(|value| {
            let items = value["items"].as_array();
            let flat = value["metadata"].is_null();
            flat && items.is_some() && has_unique_keys(data)
        });
        assert!(!valid, "a valid list is rejected");
        return;
    };
    let plain = plain.filter(|_| has_unique_keys(data));
    let items = plain.as_ref().and_then(|value| value["items"].as_array());
    if let Some(items) = items {
        assert_eq!(list.items.len(), items.len());
    }
    for (at, item) in list.items.iter().enumerate() {
        check_item(item, items.map(|items| &items[at]));
    }
}

async fn object(cluster: &Cluster, data: &[u8]) {
    let pods = cluster.pods().in_namespace("default").unwrap();
    if let Ok(pod) = pods.fetch("a").await {
        pod.check().expect("a single object is checked completely");
        let plain = serde_json::from_slice::<Value>(data).ok();
        check_item(&pod, plain.filter(|_| has_unique_keys(data)).as_ref());
    }
}

async fn watch(cluster: &Cluster) {
    let Ok(mut watch) = cluster.pods().watch_since("1").await else {
        return;
    };
    for _ in 0..MAX_EVENTS {
        // The client repeats a watch whose response has no events, so `next` needs a timeout.
        let timeout = Duration::from_millis(2);
        match watch.next(Some(timeout)).await {
            Ok(event) => {
                if let Some(item) = event.item() {
                    assert!(!item.version().is_empty());
                    check_item(item, None);
                }
            }
            Err(_) => return,
        }
    }
}

/// Returns true if all relevant keys are unique. Otherwise the value is ambiguous.
fn has_unique_keys(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    let once = |word: &str| text.matches(word).count() <= 1;
    let words = ["metadata", "status", "items", "phase", "name", "\\u"];
    words.into_iter().all(once)
}

fn check_item(item: &Item<Pod>, plain: Option<&Value>) {
    let _ = (item.meta(), item.checked_meta(), item.labels(), item.link());
    let _ = (item.phase(), item.spec(), item.typed::<Value>());
    let _ = format!("{item:?}");
    let phase = item.field::<Value>(&["status", "phase"]);
    let Some(plain) = plain.filter(|_| item.check().is_ok()) else {
        return;
    };
    let metadata = &plain["metadata"];
    assert_eq!(item.name(), metadata["name"].as_str().unwrap_or_default());
    if plain["status"].is_object() {
        let found = phase.expect("a valid object has a readable phase");
        assert_eq!(found.unwrap_or_default(), plain["status"]["phase"]);
    }
}
