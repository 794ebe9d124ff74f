//! Invalid arguments and responses, each with its exact error.

use std::{fmt::Write as _, time::Duration};

use longshore_client::{Cluster, DeleteOptions, Patch, Result};
use longshore_model::FieldSelector;
use serde_json::{Value, json};

use crate::fake::{Answer, Fake, pod};

/// Inputs and their errors, one per line.
#[derive(Default)]
struct Report(String);

impl Report {
    fn add<T>(&mut self, given: &str, outcome: Result<T>) {
        let error_text = outcome.err().map_or("no error".to_owned(), |error| {
            let variant = format!("{error:?}");
            let variant = variant.split([' ', '(']).next().unwrap();
            format!("{variant}: {error}")
        });
        writeln!(self.0, "{given}\n    {error_text}").unwrap();
    }
}

#[tokio::test]
async fn invalid_arguments_are_rejected_before_any_request() {
    let fake = Fake::new([]);
    let cluster = fake.cluster();
    let pods = || cluster.pods().in_namespace("n").unwrap();
    let mut report = Report::default();
    for url in [
        "",
        "localhost:8001",
        "ftp://there",
        "http://",
        "http://a b/",
    ] {
        report.add(&format!("URL {url:?}"), Cluster::from_url(url));
    }
    for name in ["", ".", "..", "a/b", "%2e"] {
        report.add(&format!("name {name:?}"), pods().fetch(name).await);
    }
    for namespace in ["", "N!", "a/b"] {
        let view = cluster.pods().in_namespace(namespace);
        report.add(&format!("namespace {namespace:?}"), view);
    }
    report.add("a namespace for nodes", cluster.nodes().in_namespace("n"));
    report.add("a second namespace", pods().in_namespace("m"));
    report.add(
        "no namespace to fetch from",
        cluster.pods().fetch("a").await,
    );
    for selector in ["", " ", "a=b=c", "a in b", "-x", "a=é", "a>b"] {
        report.add(&format!("selector {selector:?}"), pods().filter(selector));
    }
    for selector in ["status.phase", "a!b"] {
        let outcome: Result<FieldSelector, _> = selector.parse();
        let outcome = outcome.map_err(longshore_client::Error::from);
        report.add(&format!("field selector {selector:?}"), outcome);
    }
    let mut create = async |given: &str, object: Value| {
        report.add(given, pods().create(&object).await);
    };
    let meta = json!({"name": "a"});
    create("another kind", json!({"kind": "Job", "metadata": meta})).await;
    let version = json!({"apiVersion": "v2", "metadata": meta});
    create("another version", version).await;
    let elsewhere = json!({"metadata": {"name": "a", "namespace": "m"}});
    create("another namespace", elsewhere).await;
    create("a list", json!([])).await;
    create("a word", json!("pod")).await;
    let nowhere = json!({"metadata": {"name": "a"}});
    report.add("nowhere to create", cluster.pods().create(&nowhere).await);
    report.add(
        "nothing said of the kind",
        cluster.create(&nowhere, None).await,
    );
    let words = json!({"kind": "Pod", "apiVersion": "v/1/2", "metadata": meta});
    report.add("an invalid apiVersion", cluster.create(&words, None).await);
    for yaml in [
        "",
        "a: [",
        "- 1",
        "kind: Pod",
        "{kind: Pod, apiVersion: v1}\n---\n3",
    ] {
        let outcome = cluster.create_manifest(yaml, Some("n")).await;
        report.add(&format!("YAML {yaml:?}"), outcome);
    }
    let patch = pods().patch("", &Patch::merge(json!({}))).await;
    report.add("no name to patch", patch);
    let delete = pods().delete("a/b", &DeleteOptions::default()).await;
    report.add("a path to delete", delete);
    insta::assert_snapshot!(report.0);
    assert!(fake.requests().is_empty(), "{:?}", fake.requests());
}

#[tokio::test]
async fn invalid_kinds_and_labels() {
    let mut report = Report::default();
    let fake = Fake::new([Answer::json(200, &pod("a", 1))]);
    let item = fake.cluster().pods().in_namespace("n").unwrap();
    let item = item.fetch("a").await.unwrap();
    for (key, value) in [
        ("", "x"),
        ("-bad", "x"),
        ("a/b/c", "x"),
        ("Upper.example/a", "x"),
        ("good", "b a d"),
        ("good", "-"),
        ("good", &"x".repeat(64)),
    ] {
        let given = format!("label {key:?} = {value:?}");
        report.add(&given, item.labels().set(key, value).await);
    }
    assert_eq!(fake.requests().len(), 1);
    for word in ["", "hats", "hats.example.org", "a b", "pods/log"] {
        let nothing = json!({"kind": "APIGroupList", "groups": [], "versions": []});
        let fake = Fake::new([&nothing, &nothing].map(|answer| Answer::json(200, answer)));
        report.add(&format!("kind {word:?}"), fake.cluster().kind(word).await);
        let again = Fake::new([&nothing, &nothing].map(|answer| Answer::json(200, answer)));
        let outcome = again.cluster().kind_in("example.org/v1", word).await;
        report.add(&format!("kind {word:?} of example.org/v1"), outcome);
    }
    insta::assert_snapshot!(report.0);
}

#[tokio::test]
async fn invalid_responses() {
    let mut report = Report::default();
    let page = "<html><body>Please log in</body></html>";
    let success = r#"{"kind": "Status", "apiVersion": "v1", "status": "Success"}"#;
    let failure = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "code": 500}"#;
    let list = r#"{"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": []}"#;
    let object = pod("a", 1).to_string();
    for (code, body) in [
        (200, ""),
        (200, page),
        (200, "{"),
        (200, "[]"),
        (200, "null"),
        (200, r#"{"items":[{]}"#),
        (200, r#"{"items":[{}"#),
        (200, "\u{1}"),
        (200, success),
        (200, failure),
        (200, list),
        (200, &object),
        (200, &object[..60]),
        (204, ""),
        (302, ""),
        (403, page),
        (404, ""),
        (418, "short and stout"),
        (500, success),
        (502, page),
    ] {
        let headers = match code {
            302 => vec![(
                "location",
                "https://login.example/start?state=secret".to_owned(),
            )],
            _ if body == page => vec![("content-type", "text/html; charset=utf-8".to_owned())],
            _ => Vec::new(),
        };
        let answer = |body: &str| Answer::Plain(code, headers.clone(), body.to_owned().into());
        let fake = Fake::new([answer(body), answer(body), answer(body)]);
        let view = fake.cluster().pods().in_namespace("n").unwrap();
        let begin: String = body.chars().take(60).collect();
        report.add(&format!("list: {code} {begin}"), view.list().await);
        report.add(&format!("table: {code} {begin}"), view.table().await);
        report.add(&format!("fetch: {code} {begin}"), view.fetch("a").await);
        let line = format!("{body}\n");
        for _ in 0..20 {
            fake.push(answer(&line));
        }
        report.add(&format!("watch: {code} {begin}"), {
            match view.watch_since("5").await {
                Ok(mut watch) => watch.next(Some(Duration::from_secs(1))).await.map(drop),
                Err(error) => Err(error),
            }
        });
    }
    insta::assert_snapshot!(report.0);
}
