//! Arguments and answers that are none: each with its exact error.

use std::{fmt::Write as _, time::Duration};

use longshore_client::{Cluster, DeleteOptions, Patch, Result};
use longshore_model::FieldSelector;
use serde_json::{Value, json};

use crate::fake::{Answer, Fake, pod};

/// What was given, and what is said of it, a line each.
#[derive(Default)]
struct Told(String);

impl Told {
    fn add<T>(&mut self, given: &str, outcome: Result<T>) {
        let told = outcome.err().map_or("no error".to_owned(), |error| {
            let variant = format!("{error:?}");
            let variant = variant.split([' ', '(']).next().unwrap();
            format!("{variant}: {error}")
        });
        writeln!(self.0, "{given}\n    {told}").unwrap();
    }
}

#[tokio::test]
async fn arguments_are_refused_before_any_request() {
    let fake = Fake::new([]);
    let cluster = fake.cluster();
    let pods = || cluster.pods().in_namespace("n").unwrap();
    let mut told = Told::default();
    for url in [
        "",
        "localhost:8001",
        "ftp://there",
        "http://",
        "http://a b/",
    ] {
        told.add(&format!("URL {url:?}"), Cluster::from_url(url));
    }
    for name in ["", ".", "..", "a/b", "%2e"] {
        told.add(&format!("name {name:?}"), pods().fetch(name).await);
    }
    for namespace in ["", "N!", "a/b"] {
        let view = cluster.pods().in_namespace(namespace);
        told.add(&format!("namespace {namespace:?}"), view);
    }
    told.add("a namespace for nodes", cluster.nodes().in_namespace("n"));
    told.add("a second namespace", pods().in_namespace("m"));
    told.add(
        "no namespace to fetch from",
        cluster.pods().fetch("a").await,
    );
    for selector in ["", " ", "a=b=c", "a in b", "-x", "a=é", "a>b"] {
        told.add(&format!("selector {selector:?}"), pods().filter(selector));
    }
    for selector in ["status.phase", "a!b"] {
        let outcome: Result<FieldSelector, _> = selector.parse();
        let outcome = outcome.map_err(longshore_client::Error::from);
        told.add(&format!("field selector {selector:?}"), outcome);
    }
    let mut create = async |given: &str, object: Value| {
        told.add(given, pods().create(&object).await);
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
    told.add("nowhere to create", cluster.pods().create(&nowhere).await);
    told.add(
        "nothing said of the kind",
        cluster.create(&nowhere, None).await,
    );
    let words = json!({"kind": "Pod", "apiVersion": "v/1/2", "metadata": meta});
    told.add("a version that is none", cluster.create(&words, None).await);
    for yaml in [
        "",
        "a: [",
        "- 1",
        "kind: Pod",
        "{kind: Pod, apiVersion: v1}\n---\n3",
    ] {
        let outcome = cluster.create_manifest(yaml, Some("n")).await;
        told.add(&format!("YAML {yaml:?}"), outcome);
    }
    let patch = pods().patch("", &Patch::merge(json!({}))).await;
    told.add("no name to patch", patch);
    let delete = pods().delete("a/b", &DeleteOptions::default()).await;
    told.add("a path to delete", delete);
    insta::assert_snapshot!(told.0);
    assert!(fake.seen().is_empty(), "{:?}", fake.seen());
}

#[tokio::test]
async fn kinds_and_labels_that_are_none() {
    let mut told = Told::default();
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
        told.add(&given, item.labels().set(key, value).await);
    }
    assert_eq!(fake.seen().len(), 1);
    for word in ["", "hats", "hats.example.org", "a b", "pods/log"] {
        let nothing = json!({"kind": "APIGroupList", "groups": [], "versions": []});
        let fake = Fake::new([&nothing, &nothing].map(|answer| Answer::json(200, answer)));
        told.add(&format!("kind {word:?}"), fake.cluster().kind(word).await);
        let again = Fake::new([&nothing, &nothing].map(|answer| Answer::json(200, answer)));
        let outcome = again.cluster().kind_in("example.org/v1", word).await;
        told.add(&format!("kind {word:?} of example.org/v1"), outcome);
    }
    insta::assert_snapshot!(told.0);
}

#[tokio::test]
async fn answers_that_are_none() {
    let mut told = Told::default();
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
        let fake = Fake::new([answer(body), answer(body)]);
        let view = fake.cluster().pods().in_namespace("n").unwrap();
        let begin: String = body.chars().take(60).collect();
        told.add(&format!("list: {code} {begin}"), view.list().await);
        told.add(&format!("fetch: {code} {begin}"), view.fetch("a").await);
        let line = format!("{body}\n");
        for _ in 0..20 {
            fake.push(answer(&line));
        }
        told.add(&format!("watch: {code} {begin}"), {
            match view.watch_since("5").await {
                Ok(mut watch) => watch.next(Some(Duration::from_secs(1))).await.map(drop),
                Err(error) => Err(error),
            }
        });
    }
    insta::assert_snapshot!(told.0);
}
