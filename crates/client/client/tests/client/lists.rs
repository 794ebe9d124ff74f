//! Lists and their items, on a fake API server.

use crate::fake::{Answer, End, Fake, list, pod, status};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use longshore_client::{Error, Expired, Paging};
use serde_json::{Value, json};

fn text(body: impl Into<Bytes>) -> Answer {
    Answer::Plain(200, Vec::new(), body.into())
}

#[tokio::test]
async fn an_invalid_item_is_an_error_of_that_item() {
    let mut wrong = pod("wrong", 2);
    wrong["metadata"]["name"] = json!({"of": "another type"});
    let body = list(9, &[pod("a", 1), wrong, pod("b", 3)]);
    let fake = Fake::new([Answer::json(200, &body)]);
    let pods = fake.cluster().pods().list().await.unwrap();
    assert_eq!(pods.items.len(), 3);
    assert_eq!((pods.items[0].name(), pods.items[2].name()), ("a", "b"));
    let bad = &pods.items[1];
    let text = "items[1] of the response to GET /api/v1/pods cannot be read: ";
    for error in [
        bad.check().unwrap_err(),
        bad.phase().unwrap_err(),
        bad.raw().unwrap_err(),
        bad.checked_meta().unwrap_err(),
        bad.typed::<Value>().unwrap_err(),
        bad.field::<Value>(&["spec"]).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Decode { .. }));
        assert!(error.to_string().starts_with(text), "{error}");
    }
    // The bytes of an invalid object can be read; an operation on an object without a name fails.
    let value: Value = serde_json::from_slice(bad.bytes()).unwrap();
    assert_eq!(value["metadata"]["name"]["of"], "another type");
    assert_eq!((bad.name(), bad.namespace(), bad.version()), ("", None, ""));
    assert!(bad.fetch().await.is_err());
    assert_eq!(fake.requests().len(), 1);
}

#[tokio::test]
async fn an_invalid_nested_value_is_an_error_when_it_is_read() {
    let items = [
        r#"{"metadata":{"name":"a"},"status":{"phase":"Running","x":tru}}"#,
        r#"{"metadata":{"name":"b"},"status":{"phase":"Run]ning"},"spec":[}}"#,
    ];
    let body = format!(r#"{{"items":[{}]}}"#, items.join(","));
    let fake = Fake::new([text(body)]);
    let pods = fake.cluster().pods().list().await.unwrap();
    assert_eq!(pods.items[0].phase().unwrap().as_str(), "Running");
    assert_eq!(pods.items[1].phase().unwrap().as_str(), "Run]ning");
    for pod in &pods.items {
        let error = pod.check().unwrap_err().to_string();
        let start = format!("pods {} cannot be read: ", pod.name());
        assert!(error.starts_with(&start), "{error}");
        assert!(pod.raw().is_err());
    }
}

#[tokio::test]
async fn invalid_utf8_is_an_error() {
    let bad = b"{\"metadata\":{\"name\":\"a\"},\"status\":{\"phase\":\"\xff\"}}";
    let body = [b"{\"items\":[", &bad[..], b"]}"].concat();
    let fake = Fake::new([text(body), text(&bad[..])]);
    let pods = fake.cluster().pods().in_namespace("n").unwrap();
    let found = pods.list().await.unwrap();
    assert_eq!(found.items[0].name(), "a");
    assert!(found.items[0].phase().is_err() && found.items[0].check().is_err());
    assert!(pods.fetch("a").await.is_err());
}

/// An object of a custom kind with `levels` levels in its spec, as real API servers accept
/// them.
fn deep(levels: usize) -> String {
    let (open, close) = ("{\"a\":".repeat(levels), "}".repeat(levels));
    format!(r#"{{"metadata":{{"name":"deep"}},"spec":{open}1{close}}}"#)
}

#[tokio::test]
async fn deeply_nested_values_are_read_by_path_without_a_stack_overflow() {
    for levels in [100, 5_000, 9_990] {
        let one = deep(levels);
        let body = format!(r#"{{"items":[{one}]}}"#);
        let fake = Fake::new([text(one), text(body)]);
        let view = fake.cluster().pods().in_namespace("n").unwrap();
        let fetched = view.fetch("deep").await.unwrap();
        let listed = view.list().await.unwrap().items.remove(0);
        for item in [fetched, listed] {
            item.check().unwrap();
            let path = [vec!["spec"], vec!["a"; levels]].concat();
            assert_eq!(item.field::<u8>(&path).unwrap(), Some(1));
            // The limit of serde_json is 128.
            assert_eq!(item.raw().is_ok(), levels == 100);
        }
    }
    // Far beyond the limits of any API server.
    let (one, open) = (deep(1_000_000), "[".repeat(1_000_000));
    let body = format!(r#"{{"items":[{one},{}]}}"#, deep(1));
    let fake = Fake::new([text(one), text(body), text(open.clone()), text(open)]);
    let view = fake.cluster().pods().in_namespace("n").unwrap();
    let error = view.fetch("deep").await.unwrap_err().to_string();
    assert!(error.contains("nested too deeply"), "{error}");
    let listed = view.list().await.unwrap();
    assert_eq!(listed.items[0].name(), "deep");
    assert!(listed.items[0].check().is_err() && listed.items[0].raw().is_err());
    listed.items[1].check().unwrap();
    assert!(view.fetch("deep").await.is_err() && view.list().await.is_err());
}

#[tokio::test]
async fn a_duplicate_field_of_an_item_is_an_error() {
    let duplicate = r#"{"metadata":{"name":"a"},"status":{"phase":"Failed"},"status":{}}"#;
    let inside = r#"{"metadata":{"name":"b"},"status":{"phase":"Failed","phase":"Running"}}"#;
    let body = format!(r#"{{"items":[{duplicate},{inside}]}}"#);
    let fake = Fake::new([text(body)]);
    let pods = fake.cluster().pods().list().await.unwrap();
    let error = pods.items[0].phase().unwrap_err().to_string();
    assert!(error.contains("duplicate field"), "{error}");
    // Duplicates of nested fields are not detected: the first one is used.
    assert_eq!(pods.items[1].phase().unwrap().as_str(), "Failed");
}

#[tokio::test]
async fn a_truncated_list_is_an_error() {
    let body = list(9, &[pod("a", 1), pod("b\u{e9}", 2)]).to_string();
    let answers = (0..body.len()).map(|cut| text(body.as_bytes()[..cut].to_vec()));
    let fake = Fake::new(answers);
    let pods = fake.cluster().pods();
    for cut in 0..body.len() {
        let outcome = pods.list().await;
        assert!(matches!(outcome, Err(Error::Decode { .. })), "{cut}");
    }
}

#[tokio::test]
async fn a_large_item_among_small_ones() {
    let mut large = pod("large", 2);
    large["metadata"]["annotations"] = json!({"a": "x\"]}".repeat(4 << 20)});
    let body = list(9, &[pod("a", 1), large, pod("b", 3)]);
    let fake = Fake::new([Answer::json(200, &body)]);
    let pods = fake.cluster().pods().list().await.unwrap();
    let names: Vec<&str> = pods.items.iter().map(|pod| pod.name()).collect();
    assert_eq!(names, ["a", "large", "b"]);
    assert_eq!(pods.items[1].meta().annotations["a"].len(), 16 << 20);
}

#[tokio::test]
async fn page_size_and_resource_version_are_configurable() {
    let page = |cursor: &str| {
        let mut page = list(9, &[pod("a", 1)]);
        page["metadata"]["continue"] = cursor.into();
        Answer::json(200, &page)
    };
    let fake = Fake::new([page("more"), page(""), page("")]);
    let mut paging = Paging::default();
    paging.limit = 7;
    let pods = fake.cluster().pods().from_cache();
    let found: Vec<_> = pods.stream_by(paging).try_collect().await.unwrap();
    assert_eq!(found.len(), 2);
    pods.list().await.unwrap();
    let seen = fake.requests();
    let asked: Vec<_> = seen
        .iter()
        .map(|seen| {
            let query = |name| seen.query(name).unwrap_or_default();
            (query("limit"), query("continue"), query("resourceVersion"))
        })
        .collect();
    assert_eq!(asked, [("7", "", "0"), ("7", "more", ""), ("", "", "0")]);
}

#[tokio::test]
async fn an_expired_snapshot_is_an_error_for_a_consistent_list() {
    let mut first = list(9, &[pod("a", 1)]);
    first["metadata"]["continue"] = "x".into();
    let mut expired = status(410, "Expired", "too old");
    expired["metadata"] = json!({"continue": "newer"});
    let fake = Fake::new([Answer::json(200, &first), Answer::json(410, &expired)]);
    let mut paging = Paging::default();
    paging.expired = Expired::Fail;
    let items: Vec<_> = fake.cluster().pods().stream_by(paging).collect().await;
    assert_eq!(items.len(), 2);
    assert!(items[0].is_ok() && items[1].as_ref().unwrap_err().is_expired());
    assert_eq!(fake.requests().len(), 2);
}

#[tokio::test]
async fn the_next_page_arrives_while_this_one_is_used() {
    let mut first = list(9, &[pod("a", 1), pod("b", 2)]);
    first["metadata"]["continue"] = "x".into();
    let fake = Fake::new([
        Answer::json(200, &first),
        Answer::json(200, &list(9, &[pod("c", 3)])),
    ]);
    let mut items = std::pin::pin!(fake.cluster().pods().stream());
    assert_eq!(items.try_next().await.unwrap().unwrap().name(), "a");
    let asked = async {
        while fake.requests().len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    let timeout = std::time::Duration::from_secs(20);
    tokio::time::timeout(timeout, asked).await.unwrap();
    let rest: Vec<_> = items.try_collect().await.unwrap();
    assert_eq!(rest.len(), 2);
}

#[tokio::test]
async fn the_next_page_is_requested_while_this_one_arrives() {
    let head =
        r#"{"kind":"PodList","metadata":{"resourceVersion":"9","continue":"two"},"items":[{"#;
    let half = Answer::Lines(
        vec![head[..50].to_owned(), head[50..].to_owned()],
        End::Silent,
    );
    let fake = Fake::new([half, Answer::json(200, &list(9, &[pod("b", 2)]))]);
    let view = fake.cluster().pods();
    let pages = tokio::spawn(async move { view.list().await });
    let begun = std::time::Instant::now();
    while fake.requests().len() < 2 {
        assert!(
            begun.elapsed().as_secs() < 20,
            "the next page is not requested"
        );
        tokio::task::yield_now().await;
    }
    assert_eq!(fake.requests()[1].query("continue"), Some("two"));
    pages.abort();
}
