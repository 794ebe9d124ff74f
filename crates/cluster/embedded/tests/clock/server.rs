//! Tokens, Events and times of the API server.

use longshore_client::{Cluster, k8s_openapi::api::authentication::v1::TokenReview};
use serde_json::{Value, json};

use crate::common::{HOUR, START, TIMEOUT, advance, seconds, start};

async fn is_accepted(cluster: &Cluster, token: &Value) -> bool {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": token}});
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let review = cluster.proxy().post(path, &[], &review).await.unwrap();
    let review: TokenReview = serde_json::from_value(review).unwrap();
    review.status.unwrap().authenticated == Some(true)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_expires_after_an_hour() {
    let embedded = start(false).await;
    let cluster = embedded.cluster();
    let accounts = cluster.serviceaccounts().in_namespace("default").unwrap();
    accounts.wait("default", |_| true, TIMEOUT).await.unwrap();
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600}});
    let issued = cluster.proxy().post(path, &[], &request).await.unwrap();
    let status = &issued["status"];
    assert_eq!(status["expirationTimestamp"], "2026-01-01T03:59:00Z");
    advance(&embedded, seconds(3590)).await;
    assert!(is_accepted(&cluster, &status["token"]).await);
    advance(&embedded, seconds(11)).await;
    assert!(!is_accepted(&cluster, &status["token"]).await);
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_removed_after_an_hour() {
    let embedded = start(false).await;
    let events = embedded.cluster().events().in_namespace("default").unwrap();
    let event = json!({"metadata": {"name": "old"}, "reason": "Old", "message": "m",
        "type": "Normal", "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}});
    let created = events.create(&event).await.unwrap();
    let created = created.meta().creation_timestamp.unwrap();
    assert_eq!(created, START.parse().unwrap());
    advance(&embedded, seconds(3599)).await;
    assert!(events.find("old").await.unwrap().is_some());
    advance(&embedded, seconds(1)).await;
    assert!(events.find("old").await.unwrap().is_none());
    embedded.stop().await;
}

/// Watches and their history are not affected: a watch delivers the events of hours.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_continues_when_the_clock_is_advanced() {
    let embedded = start(false).await;
    let maps = embedded
        .cluster()
        .configmaps()
        .in_namespace("default")
        .unwrap();
    let mut watch = maps
        .watch_since(&maps.list().await.unwrap().version)
        .await
        .unwrap();
    for name in ["a", "b", "c"] {
        maps.create(&json!({"metadata": {"name": name}}))
            .await
            .unwrap();
        advance(&embedded, HOUR).await;
    }
    for name in ["a", "b", "c"] {
        match watch.next(Some(TIMEOUT)).await.unwrap() {
            longshore_client::WatchEvent::Added(item) => assert_eq!(item.name(), name),
            other => panic!("{other:?}"),
        }
    }
    embedded.stop().await;
}

#[tokio::test]
async fn the_clock_of_the_system_is_not_advanced() {
    let embedded = longshore_embedded::start_server().await.unwrap();
    let clock = embedded.clock();
    assert!(!clock.is_manual());
    let error = clock.advance(HOUR).await.unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("start the cluster with a manual clock"),
        "{error}"
    );
    embedded.stop().await;
}
