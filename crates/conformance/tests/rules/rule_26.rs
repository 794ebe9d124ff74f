//! Rule 26: the logs of containers.

use std::time::Duration;

use longshore_conformance::{Answer, ApiTest};
use serde_json::json;

use crate::common::{pod, with};

/// A pod with two containers and an init container, on no node.
async fn several(test: &ApiTest) -> String {
    let pods = test.path("v1", "pods");
    let two = json!([{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]);
    let object = with(
        pod("p"),
        &[
            ("/spec/containers", two),
            ("/spec/initContainers", json!([{"name": "i", "image": "x"}])),
            // Only clients heed it.
            (
                "/metadata/annotations",
                json!({"kubectl.kubernetes.io/default-container": "b"}),
            ),
        ],
    );
    test.create(&pods, &object).await;
    format!("{pods}/p/log")
}

#[tokio::test]
async fn rule_26_one_of_several_containers_must_be_chosen() {
    let test = ApiTest::start().await;
    let log = several(&test).await;
    let status = test.get(&log).await.refused(400, "BadRequest");
    assert_eq!(
        status["message"],
        "a container name must be specified for pod p, choose one of: [i a b]"
    );
    let status = test.get(&format!("{log}?container=none")).await;
    assert_eq!(
        status.refused(400, "BadRequest")["message"],
        "container none is not valid for pod p"
    );
    // A pod that no node runs yet has written nothing.
    for container in ["a", "i"] {
        let answer = test.get(&format!("{log}?container={container}")).await;
        assert_eq!((answer.code, answer.text().as_str()), (204, ""));
    }
    let none = test.path("v1", "pods/none/log");
    test.get(&none).await.refused(404, "NotFound");
}

#[tokio::test]
async fn rule_26_options_that_say_nothing_sensible() {
    let test = ApiTest::start().await;
    let log = several(&test).await;
    let ask = async |options: &str| test.get(&format!("{log}?container=a&{options}")).await;
    for (options, reason, field) in [
        ("tailLines=-1", "FieldValueInvalid", "tailLines"),
        ("limitBytes=0", "FieldValueInvalid", "limitBytes"),
        ("sinceSeconds=0", "FieldValueInvalid", "sinceSeconds"),
    ] {
        let refused = ask(options).await;
        let status = refused.refused_for(422, "Invalid", &[(reason, field)]);
        assert_eq!(status["details"]["kind"], "PodLogOptions", "{status}");
        assert_eq!(status["details"]["name"], "p", "{status}");
        let message = status["message"].as_str().unwrap();
        let begin = "PodLogOptions \"p\" is invalid: ";
        assert!(message.starts_with(begin), "{message}");
    }
    let both = ask("sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z").await;
    assert_eq!(both.refused(422, "Invalid")["details"]["name"], "p");
    ask("tailLines=many").await.refused(400, "BadRequest");
}

/// What a container of a pod that runs has written.
async fn written(test: &ApiTest, script: &str) -> String {
    let pods = test.path("v1", "pods");
    let container = json!([{"name": "main", "image": "x", "command": ["sh", "-c", script],
        "workingDir": "/data", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]);
    let object = with(
        pod("p"),
        &[
            ("/spec/containers", container),
            ("/spec/volumes", json!([{"name": "data", "emptyDir": {}}])),
            ("/spec/terminationGracePeriodSeconds", json!(1)),
        ],
    );
    test.create(&pods, &object).await;
    format!("{pods}/p/log")
}

/// Asks until the answer is as it should be in the end.
async fn until(test: &ApiTest, path: &str, is_it: impl Fn(&Answer) -> bool) -> Answer {
    for _ in 0..600 {
        let answer = test.get(path).await;
        if is_it(&answer) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{path}: {:?}", test.get(path).await);
}

#[tokio::test]
async fn rule_26_how_much_of_a_log() {
    let test = ApiTest::with_node().await;
    if test.is_without("a node that runs pods") {
        return;
    }
    let log = written(&test, "for i in 1 2 3; do echo line $i; done; sleep 1000").await;
    let whole = "line 1\nline 2\nline 3\n";
    until(&test, &log, |answer| answer.text() == whole).await;
    let ask = async |options: &str| test.get(&format!("{log}?{options}")).await.text();
    for (options, part) in [
        ("tailLines=0", ""),
        ("tailLines=2", "line 2\nline 3\n"),
        ("tailLines=9", whole),
        ("limitBytes=8", "line 1\nl"),
        ("tailLines=2&limitBytes=3", "lin"),
        ("sinceSeconds=3600", whole),
        ("sinceTime=2000-01-01T00:00:00Z", whole),
        ("sinceTime=2100-01-01T00:00:00Z", ""),
    ] {
        assert_eq!(ask(options).await, part, "{options}");
    }
    let stamped = ask("timestamps=true&tailLines=1").await;
    let (time, line) = stamped.split_once(' ').unwrap();
    assert_eq!(line, "line 3\n");
    // RFC 3339 with nanoseconds, by which the log can be asked for again.
    assert!(time.len() > 20 && time.ends_with('Z'), "{time}");
    assert!(ask(&format!("sinceTime={time}")).await.ends_with(line));
}

#[tokio::test]
async fn rule_26_a_followed_log_ends_with_its_container() {
    let test = ApiTest::with_node().await;
    if test.is_without("a node that runs pods") {
        return;
    }
    let log = written(
        &test,
        "echo one; sleep 1; echo two; sleep 0.3; printf three",
    )
    .await;
    until(&test, &log, |answer| answer.text().starts_with("one\n")).await;
    let followed = test.get(&format!("{log}?follow=true")).await;
    assert_eq!(followed.text(), "one\ntwo\nthree\n");
}

#[tokio::test]
async fn rule_26_the_run_before() {
    let test = ApiTest::with_node().await;
    if test.is_without("a node that runs pods") {
        return;
    }
    let script = "test -e seen && echo second && sleep 1000; touch seen; echo first; exit 1";
    let log = written(&test, script).await;
    let previous = format!("{log}?previous=true");
    until(&test, &log, |answer| answer.text() == "second\n").await;
    assert_eq!(test.get(&previous).await.text(), "first\n");
    let waiting = test.path("v1", "pods");
    let blocked = with(
        pod("w"),
        &[("/spec/containers", json!([{"name": "main", "image": "x"}]))],
    );
    test.create(&waiting, &blocked).await;
    let answer = until(&test, &format!("{waiting}/w/log"), |answer| {
        answer.code == 400
    })
    .await;
    let status = answer.refused(400, "BadRequest");
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with("container \"main\" in pod \"w\" is waiting to start"),
        "{message}"
    );
}
