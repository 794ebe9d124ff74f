//! Rule 20: label selectors.

use longshore_conformance::ApiTest;
use serde_json::json;

use crate::common::{config_map, items, with};

/// A test with ConfigMaps that have labels, and the path of the collection.
async fn test() -> (ApiTest, String) {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    for (name, labels) in [
        ("a", json!({"app": "web", "tier": "front", "size": "5"})),
        ("b", json!({"app": "db", "size": "12"})),
        ("c", json!({"app": "", "example.com/x": "y"})),
        ("d", json!({})),
    ] {
        let map = with(config_map(name), &[("/metadata/labels", labels)]);
        test.create(&maps, &map).await;
    }
    (test, maps)
}

fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => {
                (byte as char).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

#[tokio::test]
async fn rule_20_each_operator_is_supported() {
    let (test, maps) = test().await;
    for (selector, expected) in [
        ("", &["a", "b", "c", "d"][..]),
        ("app=web", &["a"]),
        ("app==web", &["a"]),
        (" app = web ", &["a"]),
        ("app=", &["c"]),
        ("app!=web", &["b", "c", "d"]),
        ("app in (web,db)", &["a", "b"]),
        ("app in (web, none)", &["a"]),
        ("app in (web,)", &["a", "c"]),
        ("app notin (web,db)", &["c", "d"]),
        ("app", &["a", "b", "c"]),
        ("!app", &["d"]),
        ("! tier", &["b", "c", "d"]),
        ("size>5", &["b"]),
        ("size>4", &["a", "b"]),
        ("size<12", &["a"]),
        ("size>4,size<6", &["a"]),
        ("app=web,tier=front", &["a"]),
        ("app=web,tier!=front", &[]),
        ("app,!tier", &["b", "c"]),
        ("example.com/x=y", &["c"]),
        ("example.com/x", &["c"]),
        ("in in (in)", &[]),
        ("none>1", &[]),
    ] {
        let query = format!("{maps}?labelSelector={}", encode(selector));
        let list = test.get(&query).await.ok();
        assert_eq!(items(&list), expected, "{selector:?}");
    }
}

#[tokio::test]
async fn rule_20_bad_syntax_is_a_bad_request() {
    let (test, maps) = test().await;
    for selector in [
        "app=web=x",
        "app in web",
        "app in (web",
        "app in",
        "=web",
        "app!",
        "app,,tier",
        ",",
        "app notin ()x",
        "size>big",
        "size<",
        "app=-x",
        "a/b/c=d",
        "-app",
        "app=UP DOWN",
        "!app=web",
        "app=x(y)",
        "app === web",
    ] {
        let query = format!("{maps}?labelSelector={}", encode(selector));
        test.get(&query).await.refused(400, "BadRequest");
        test.delete(&query).await.refused(400, "BadRequest");
        test.get(&format!("{query}&watch=1"))
            .await
            .refused(400, "BadRequest");
    }
    let list = test.get(&maps).await.ok();
    assert_eq!(items(&list).len(), 4);
}

#[tokio::test]
async fn rule_20_syntax_errors_have_kubernetes_messages() {
    let (test, maps) = test().await;
    let message = async |parameter: &str, selector: &str| {
        let query = format!("{maps}?{parameter}={}", encode(selector));
        let status = test.get(&query).await.refused(400, "BadRequest");
        status["message"].as_str().unwrap().to_owned()
    };
    for (selector, expected) in [
        ("a=b,", "found '', expected: identifier after ','"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        (
            "=b",
            "found '=', expected: !, identifier, or 'end of string'",
        ),
        (
            "a in b",
            "unable to parse requirement: found 'b' expected: '('",
        ),
        (
            "!",
            "unable to parse requirement: found '', expected: identifier",
        ),
        (
            "a in (=)",
            "unable to parse requirement: found '=', expected: ',', ')' or identifier",
        ),
    ] {
        assert_eq!(
            message("labelSelector", selector).await,
            expected,
            "{selector:?}"
        );
    }
    let why = "the message of 1.20 lacks the path of the value";
    let prefix = "unable to parse requirement: ";
    for (selector, old, new) in [
        (
            "-a=b",
            "invalid label key \"-a\": ",
            "<nil>: Invalid value: \"-a\": ",
        ),
        (
            "a=-b",
            "invalid label value: \"-b\": at key: \"a\": ",
            "values[0][a]: Invalid value: \"-b\": ",
        ),
        (
            "a>b",
            "for 'Gt', 'Lt' operators",
            "values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators",
        ),
    ] {
        let expected = format!("{prefix}{}", test.old_or_new(old, new, why));
        let message = message("labelSelector", selector).await;
        assert!(message.starts_with(&expected), "{selector:?}: {message}");
    }
    for (selector, expected) in [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        (
            "metadata.name=a\\x",
            "invalid field selector: invalid escape sequence: \\x",
        ),
        (
            "metadata.name=a=b",
            "invalid field selector: unescaped character in value: 61",
        ),
        (
            "=b",
            "\"\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
    ] {
        assert_eq!(
            message("fieldSelector", selector).await,
            expected,
            "{selector:?}"
        );
    }
}

#[tokio::test]
async fn rule_20_label_and_field_selectors_can_be_combined() {
    let (test, maps) = test().await;
    let query = format!("{maps}?labelSelector=app&fieldSelector=metadata.name!%3Da");
    assert_eq!(items(&test.get(&query).await.ok()), ["b", "c"]);
    let mut watch = test.watch(&format!("{query}&watch=1")).await;
    // The order of initial events is not specified.
    let both = [watch.event("ADDED").await, watch.event("ADDED").await];
    let mut both = crate::common::names(&both);
    both.sort();
    assert_eq!(both, ["b", "c"]);
}
