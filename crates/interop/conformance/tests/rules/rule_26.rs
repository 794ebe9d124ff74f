//! Rule 26: container logs.

use std::time::Duration;

use longshore_conformance::{ApiTest, Response};
use serde_json::json;

use crate::common::{pod, with};

/// Creates a pod with two containers and an init container, bound to no node. Returns the
/// path of its log.
async fn pod_with_several_containers(test: &ApiTest) -> String {
    let pods = test.path("v1", "pods");
    let two = json!([{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]);
    let object = with(
        pod("p"),
        &[
            ("/spec/containers", two),
            ("/spec/initContainers", json!([{"name": "i", "image": "x"}])),
            // The server ignores this annotation.
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
async fn rule_26_a_container_must_be_specified_if_there_are_several() {
    let test = ApiTest::start().await;
    let log = pod_with_several_containers(&test).await;
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
    // The log of a pod that is not bound to a node is empty.
    for container in ["a", "i"] {
        let response = test.get(&format!("{log}?container={container}")).await;
        assert_eq!((response.code, response.text().as_str()), (204, ""));
    }
    let none = test.path("v1", "pods/none/log");
    test.get(&none).await.refused(404, "NotFound");
}

#[tokio::test]
async fn rule_26_invalid_options_are_rejected() {
    let test = ApiTest::start().await;
    let log = pod_with_several_containers(&test).await;
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

/// Creates a pod that runs a script. Returns the path of its log.
async fn pod_with_script(test: &ApiTest, script: &str) -> String {
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

/// Repeats a request until the response meets a condition.
async fn until(test: &ApiTest, path: &str, holds: impl Fn(&Response) -> bool) -> Response {
    for _ in 0..600 {
        let response = test.get(path).await;
        if holds(&response) {
            return response;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{path}: {:?}", test.get(path).await);
}

#[tokio::test]
async fn rule_26_options_limit_the_log() {
    let test = ApiTest::with_node().await;
    if test.skip_on_real("a node that runs pods") {
        return;
    }
    let log = pod_with_script(&test, "for i in 1 2 3; do echo line $i; done; sleep 1000").await;
    let whole = "line 1\nline 2\nline 3\n";
    until(&test, &log, |response| response.text() == whole).await;
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
    // An RFC 3339 timestamp with nanoseconds, which is valid as `sinceTime`.
    assert!(time.len() > 20 && time.ends_with('Z'), "{time}");
    assert!(ask(&format!("sinceTime={time}")).await.ends_with(line));
}

#[tokio::test]
async fn rule_26_a_followed_log_ends_with_its_container() {
    let test = ApiTest::with_node().await;
    if test.skip_on_real("a node that runs pods") {
        return;
    }
    let log = pod_with_script(
        &test,
        "echo one; sleep 1; echo two; sleep 0.3; printf three",
    )
    .await;
    until(&test, &log, |response| response.text().starts_with("one\n")).await;
    let followed = test.get(&format!("{log}?follow=true")).await;
    assert_eq!(followed.text(), "one\ntwo\nthree\n");
}

#[tokio::test]
async fn rule_26_logs_of_the_previous_container() {
    let test = ApiTest::with_node().await;
    if test.skip_on_real("a node that runs pods") {
        return;
    }
    let script = "test -e seen && echo second && sleep 1000; touch seen; echo first; exit 1";
    let log = pod_with_script(&test, script).await;
    let previous = format!("{log}?previous=true");
    until(&test, &log, |response| response.text() == "second\n").await;
    assert_eq!(test.get(&previous).await.text(), "first\n");
    let waiting = test.path("v1", "pods");
    let blocked = with(
        pod("w"),
        &[("/spec/containers", json!([{"name": "main", "image": "x"}]))],
    );
    test.create(&waiting, &blocked).await;
    let response = until(&test, &format!("{waiting}/w/log"), |response| {
        response.code == 400
    })
    .await;
    let status = response.refused(400, "BadRequest");
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with("container \"main\" in pod \"w\" is waiting to start"),
        "{message}"
    );
}
