//! Responses of servers that send too much, on a fake API server.

use bytes::Bytes;
use longshore_client::Error;
use serde_json::json;

use crate::fake::{Answer, Fake, list, pod};

const TOO_LARGE: &str = "the response to GET /api/v1/pods";

fn assert_refused<T>(outcome: Result<T, Error>, what: &str, problem: &str) {
    let error = outcome.map(drop).unwrap_err();
    assert!(matches!(error, Error::Decode { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(what) && text.contains(problem), "{text}");
}

#[tokio::test]
async fn a_response_that_declares_too_large_a_body_is_not_read() {
    let headers = vec![("content-length", (300 << 20).to_string())];
    let fake = Fake::new([Answer::Plain(200, headers, Bytes::from("{}"))]);
    let outcome = fake.cluster().pods().list().await;
    assert_refused(
        outcome,
        TOO_LARGE,
        "larger than 256 MiB: select fewer objects",
    );
}

#[tokio::test]
async fn an_endless_body_ends_at_the_limit() {
    let endless = || Answer::Endless(200, Bytes::from(vec![b' '; 4 << 20]));
    let fake = Fake::new([endless(), endless()]);
    let pods = fake.cluster().pods();
    assert_refused(pods.list().await, TOO_LARGE, "larger than 256 MiB");
    assert_refused(pods.table().await, TOO_LARGE, "larger than 256 MiB");
}

#[tokio::test]
async fn endless_discovery_ends_at_a_limit_of_its_own() {
    let endless = || Answer::Endless(200, Bytes::from(vec![b' '; 4 << 20]));
    let fake = Fake::new([endless(), endless()]);
    let cluster = fake.cluster();
    let outcome = cluster.kind("widgets").await;
    assert_refused(outcome, "the response to GET /api", "larger than 32 MiB");
}

#[tokio::test]
async fn an_endless_error_response_is_quoted_in_part() {
    let fake = Fake::new([Answer::Endless(403, Bytes::from(vec![b'x'; 1 << 20]))]);
    let error = fake.cluster().pods().list().await.unwrap_err();
    assert!(error.is_forbidden(), "{error}");
    assert!(
        error.to_string().len() < 1000,
        "{}",
        error.to_string().len()
    );
}

#[tokio::test]
async fn an_endless_line_of_a_watch_is_an_error() {
    let chunk = Bytes::from(vec![b'x'; 1 << 20]);
    let fake = Fake::new((0..20).map(|_| Answer::Endless(200, chunk.clone())));
    let mut watch = fake.cluster().pods().watch_since("5").await.unwrap();
    assert_refused(
        watch.next(None).await,
        "a line of a response",
        "longer than 64 MiB",
    );
}

#[tokio::test]
async fn objects_instead_of_a_table_are_shown_by_name() {
    let mut with_time = pod("a", 1);
    with_time["metadata"]["creationTimestamp"] = json!("2026-01-02T03:04:05Z");
    let objects = list(9, &[with_time, pod("b", 2)]);
    let fake = Fake::new([
        Answer::json(200, &objects),
        Answer::json(200, &pod("c", 3)),
        Answer::json(200, &json!({})),
    ]);
    let pods = fake.cluster().pods().in_namespace("n").unwrap();
    let table = pods.table().await.unwrap();
    let columns: Vec<&str> = table.columns.iter().map(|column| &*column.name).collect();
    assert_eq!(columns, ["Name", "Created At"]);
    assert_eq!(
        table.rows[0].cells,
        [json!("a"), json!("2026-01-02T03:04:05Z")]
    );
    assert_eq!(
        (
            table.rows[1].name.as_str(),
            table.rows[1].namespace.as_str()
        ),
        ("b", "n")
    );
    let one = pods.table_of("c").await.unwrap();
    assert_eq!(one.rows[0].cells, [json!("c"), json!(null)]);
    assert_refused(
        pods.table().await,
        "the response to GET",
        "it is not a list",
    );
}
