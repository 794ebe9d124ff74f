//! The clock over HTTP, for tests in other languages.

use longshore_client::Error;
use longshore_embedded::{Clock, EmbeddedCluster, Options};
use serde_json::{Value, json};

use crate::common::START;

const CLOCK: &str = "/longshore.dev/v1/clock";
const ADVANCE: &str = "/longshore.dev/v1/clock/advance";

fn message(refused: Result<Value, Error>) -> (Option<u16>, String) {
    let error = refused.unwrap_err();
    let status = error.status().unwrap();
    (error.code(), status.message.clone())
}

#[tokio::test]
async fn clients_advance_the_clock() {
    let mut options = Options::server();
    options.faults = true;
    options.clock = Clock::manual(START.parse().unwrap());
    let embedded = EmbeddedCluster::start(options).await.unwrap();
    let cluster = embedded.cluster();
    let proxy = cluster.proxy();
    let shown = |time: &str| json!({"kind": "Clock", "apiVersion": "longshore.dev/v1", "time": time, "manual": true});
    assert_eq!(proxy.get(CLOCK, &[]).await.unwrap(), shown(START));
    let advanced = proxy.post(ADVANCE, &[], &json!({"seconds": 90.5})).await;
    assert_eq!(advanced.unwrap(), shown("2026-01-01T03:00:30.5Z"));
    let next = json!({"time": "2026-01-02T00:00:00Z"});
    let set = proxy.put(CLOCK, &[], &next).await;
    assert_eq!(set.unwrap(), shown("2026-01-02T00:00:00Z"));
    assert_eq!(embedded.clock().now().to_string(), "2026-01-02T00:00:00Z");

    let back = proxy.put(CLOCK, &[], &json!({"time": START})).await;
    let (code, text) = message(back);
    assert_eq!(code, Some(400));
    assert!(
        text.contains("cannot be set back to 2026-01-01T02:59:00Z"),
        "{text}"
    );
    for step in [json!(-1), json!(1e300), json!("soon"), json!(null)] {
        let refused = proxy.post(ADVANCE, &[], &json!({"seconds": step})).await;
        assert_eq!(message(refused).0, Some(400), "{step}");
    }
    assert_eq!(embedded.clock().now().to_string(), "2026-01-02T00:00:00Z");
    embedded.stop().await;
}

#[tokio::test]
async fn the_path_exists_only_with_fault_injection() {
    let mut options = Options::server();
    options.clock = Clock::manual(START.parse().unwrap());
    let embedded = EmbeddedCluster::start(options).await.unwrap();
    let refused = embedded.cluster().proxy().get(CLOCK, &[]).await;
    assert!(refused.unwrap_err().is_not_found());
    embedded.stop().await;

    let mut options = Options::server();
    options.faults = true;
    let embedded = EmbeddedCluster::start(options).await.unwrap();
    let cluster = embedded.cluster();
    let refused = cluster
        .proxy()
        .post(ADVANCE, &[], &json!({"seconds": 1}))
        .await;
    let (code, text) = message(refused);
    assert_eq!(code, Some(400));
    assert!(
        text.contains("start the cluster with a manual clock"),
        "{text}"
    );
    embedded.stop().await;
}
