//! Fault injection in process: the requests that a rule matches, the effects on them, and the
//! counters; and the HTTP endpoint.

use std::time::Duration;

use crate::{
    common::{CONFIG_MAPS, PODS, Server},
    watches::Lines,
};
use http::Request;
use http_body_util::Full;
use longshore_apiserver::{ConnectionDropped, FaultRule, WatchEnd};
use serde_json::{Value, json};
use tower::ServiceExt as _;

const FAULTS: &str = "/longshore.dev/v1/faults";

#[tokio::test]
async fn injected_errors_have_the_messages_of_kubernetes() {
    let server = Server::new();
    let mut shown = Vec::new();
    for code in [400, 401, 403, 404, 409, 410, 418, 429, 500, 503, 504] {
        let rule = FaultRule::answer(code).times(1);
        let id = server.api.faults().add(rule.retry_after(7)).unwrap();
        let answer = server.get(&format!("{PODS}/p")).await;
        assert_eq!(answer.code, code);
        assert_eq!(answer.header("retry-after"), "7");
        assert_eq!(answer.json()["code"], code);
        let report = server.api.faults().remove(&id).unwrap();
        assert_eq!((report.matched, report.fired), (1, 1));
        shown.push(answer.json());
    }
    insta::assert_json_snapshot!("fault_answers", shown);
    let own = FaultRule::answer(409)
        .reason("AlreadyExists")
        .message("mine");
    server.api.faults().add(own).unwrap();
    let answer = server.post(PODS, &json!({})).await.json();
    assert_eq!(
        (&answer["reason"], &answer["message"]),
        (&json!("AlreadyExists"), &json!("mine"))
    );
}

#[tokio::test]
async fn only_matching_requests_are_affected() {
    let server = Server::new();
    server.config_map("a").await;
    let item = format!("{CONFIG_MAPS}/a");
    let hits = async |rule: FaultRule, method: &str, path: &str| {
        let id = server.api.faults().add(rule).unwrap();
        let headers = [
            ("user-agent", "kubectl/v1.34"),
            ("content-type", "application/json"),
        ];
        server.call(method, path, &headers, "").await;
        server.api.faults().remove(&id).unwrap().fired == 1
    };
    let rule = || FaultRule::answer(500);
    for (rule, method, path, expected) in [
        (rule(), "GET", "/version", true),
        (rule().resource("*"), "GET", "/version", false),
        (rule().resource("configmaps"), "GET", CONFIG_MAPS, true),
        (rule().resource("pods"), "GET", CONFIG_MAPS, false),
        (
            rule().resource("pods"),
            "GET",
            "/api/v1/namespaces/a/pods/p/status",
            false,
        ),
        (
            rule().resource("pods/status"),
            "GET",
            "/api/v1/namespaces/a/pods/p/status",
            true,
        ),
        (
            rule().resource("pods/*"),
            "GET",
            "/api/v1/namespaces/a/pods/p/status",
            true,
        ),
        (rule().verbs(["list"]), "GET", CONFIG_MAPS, true),
        (rule().verbs(["get", "create"]), "GET", CONFIG_MAPS, false),
        (rule().verbs(["get"]), "GET", &item, true),
        (rule().group("batch"), "GET", "/apis/batch/v1/jobs", true),
        (rule().group("batch"), "GET", CONFIG_MAPS, false),
        (rule().group(""), "GET", CONFIG_MAPS, true),
        (rule().namespace("default"), "GET", CONFIG_MAPS, true),
        (rule().namespace("other"), "GET", CONFIG_MAPS, false),
        (rule().name("a"), "GET", &item, true),
        (rule().name("b"), "GET", &item, false),
        (rule().path("/api/v1/"), "GET", CONFIG_MAPS, true),
        (rule().path("/apis/"), "GET", CONFIG_MAPS, false),
        (rule().user_agent("kubectl"), "GET", CONFIG_MAPS, true),
        (rule().user_agent("python"), "GET", CONFIG_MAPS, false),
    ] {
        let text = format!("{rule:?} {method} {path}");
        assert_eq!(hits(rule, method, path).await, expected, "{text}");
    }
}

#[tokio::test]
async fn a_rule_can_be_limited_to_three_requests() {
    let server = Server::new();
    let rule = FaultRule::answer(503).skip(1).times(3);
    let id = server.api.faults().add(rule).unwrap();
    let mut codes = Vec::new();
    for _ in 0..6 {
        codes.push(server.get(CONFIG_MAPS).await.code);
    }
    assert_eq!(codes, [200, 503, 503, 503, 200, 200]);
    assert_eq!(server.api.faults().get(&id).unwrap().matched, 6);
    server.api.faults().clear();
    assert!(server.api.faults().list().is_empty());
    assert_eq!(server.get(CONFIG_MAPS).await.code, 200);
}

#[tokio::test]
async fn lost_responses() {
    let server = Server::new();
    let body = json!({"metadata": {"name": "a"}});
    let send = || {
        let request = Request::post(CONFIG_MAPS).body(Full::from(body.to_string()));
        server.api.service().oneshot(request.unwrap())
    };
    let faults = server.api.faults();
    faults.add(FaultRule::drop_connection().times(1)).unwrap();
    assert_eq!(send().await.unwrap_err(), ConnectionDropped);
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await.code, 404);

    // The object was created, but its client does not know.
    let rule = FaultRule::drop_connection().after_handling().times(1);
    faults.add(rule).unwrap();
    assert_eq!(send().await.unwrap_err(), ConnectionDropped);
    assert_eq!(send().await.unwrap().status(), 409);

    let whole = server.get(CONFIG_MAPS).await;
    faults.add(FaultRule::garble().times(1)).unwrap();
    let half = server.get(CONFIG_MAPS).await;
    assert_eq!((half.code, half.bytes.len()), (200, whole.bytes.len() / 2));
    assert!(serde_json::from_slice::<Value>(&half.bytes).is_err());
}

#[tokio::test]
async fn delays_add_up() {
    let server = Server::new();
    let faults = server.api.faults();
    faults
        .add(FaultRule::delay(Duration::from_millis(30)))
        .unwrap();
    faults
        .add(FaultRule::delay(Duration::from_millis(40)).verbs(["get"]))
        .unwrap();
    // Delays have a lower bound only: the upper bound depends on the machine.
    let begin = std::time::Instant::now();
    assert_eq!(server.get(CONFIG_MAPS).await.code, 200);
    assert!(begin.elapsed() >= Duration::from_millis(30));
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await.code, 404);
    assert!(begin.elapsed() >= Duration::from_millis(100));
}

#[tokio::test]
async fn internal_clients_are_not_affected() {
    let server = Server::new();
    server.api.faults().add(FaultRule::answer(500)).unwrap();
    let request = || Request::get(CONFIG_MAPS).body(Full::<bytes::Bytes>::default());
    let sheltered = server.api.sheltered_service();
    let answer = sheltered.oneshot(request().unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200);
    let answer = server.send(request().unwrap()).await;
    assert_eq!(answer.status(), 500);
}

#[tokio::test]
async fn watches_end_according_to_the_rule() {
    let server = Server::new();
    for name in ["a", "b", "c"] {
        server.config_map(name).await;
    }
    let path = format!("{CONFIG_MAPS}?watch=true");
    let faults = server.api.faults();
    for (end, last) in [(WatchEnd::Close, None), (WatchEnd::Expire, Some("ERROR -"))] {
        let rule = FaultRule::watches(end).after_events(2).times(1);
        let id = faults.add(rule).unwrap();
        let mut watch = Lines::open(&server, &path, "*/*").await;
        assert_eq!(watch.brief().await, "ADDED a");
        assert_eq!(watch.brief().await, "ADDED b");
        if let Some(last) = last {
            assert_eq!(watch.brief().await, last);
        }
        assert_eq!(watch.next().await, None, "{end:?}");
        assert_eq!(faults.remove(&id).unwrap().fired, 1);
    }
    faults
        .add(FaultRule::watches(WatchEnd::Break).times(1))
        .unwrap();
    let watch = Lines::open(&server, &path, "*/*").await;
    assert_eq!(watch.rest().await, Err(String::new()));
    faults
        .add(FaultRule::watches(WatchEnd::Garble).times(1))
        .unwrap();
    let rest = Lines::open(&server, &path, "*/*")
        .await
        .rest()
        .await
        .unwrap();
    assert!(rest.starts_with(r#"{"type":"ADDED","#), "{rest}");
    assert!(serde_json::from_str::<Value>(&rest).is_err());
}

#[tokio::test]
async fn a_rule_affects_running_watches() {
    let server = Server::new();
    server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}?watch=true");
    let mut near = Lines::open(&server, &path, "*/*").await;
    let mut far = Lines::open(&server, "/api/v1/pods?watch=true", "*/*").await;
    assert_eq!(near.brief().await, "ADDED a");
    let rule = FaultRule::watches(WatchEnd::Expire).resource("configmaps");
    let id = server.api.faults().add(rule).unwrap();
    assert_eq!(near.brief().await, "ERROR -");
    assert_eq!(near.next().await, None);
    server.pod("p", &["c"]).await;
    assert_eq!(far.brief().await, "ADDED p");
    assert_eq!(server.api.faults().fired(&id), 1);
}

#[tokio::test]
async fn a_stalled_watch_is_open_and_silent() {
    let server = Server::new();
    server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1");
    let rule = FaultRule::watches(WatchEnd::Stall).after_events(1);
    server.api.faults().add(rule).unwrap();
    let mut watch = Lines::open(&server, &path, "*/*").await;
    assert_eq!(watch.brief().await, "ADDED a");
    server.config_map("b").await;
    let silent = tokio::spawn(async move { watch.next().await });
    // The timeout has passed: even the timeout does not end a stalled watch.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert!(!silent.is_finished());
    server.api.close();
    assert_eq!(silent.await.unwrap(), None);
}

#[tokio::test]
async fn the_history_expires_on_demand() {
    let server = Server::new();
    server.config_map("a").await;
    server.config_map("b").await;
    server.api.faults().expire_history().await;
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion=1");
    let event = Lines::open(&server, &path, "*/*")
        .await
        .next()
        .await
        .unwrap();
    assert_eq!(event["object"]["code"], 410);
}

#[tokio::test]
async fn the_endpoint() {
    let server = Server::with_faults();
    let rule = json!({"match": {"resource": "configmaps"}, "effect": {"answer": {"code": 503}}});
    let made = server.post(FAULTS, &rule).await;
    assert_eq!(made.code, 201, "{}", made.text());
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(server.get(CONFIG_MAPS).await.code, 503);
    let one = server.get(&format!("{FAULTS}/{id}")).await.json();
    assert_eq!((&one["fired"], &one["matched"]), (&json!(1), &json!(1)));
    assert_eq!(one["effect"], rule["effect"]);
    let list = server.get(FAULTS).await.json();
    assert_eq!(list["items"], json!([one]));
    let removed = server
        .call("DELETE", &format!("{FAULTS}/{id}"), &[], "")
        .await;
    assert_eq!(removed.json(), one);
    assert_eq!(server.get(CONFIG_MAPS).await.code, 200);
    assert_eq!(server.get(&format!("{FAULTS}/{id}")).await.code, 404);

    // A rule that matches everything does not lock its creator out.
    let yaml = "effect: drop";
    assert_eq!(server.call("POST", FAULTS, &[], yaml).await.code, 201);
    assert_eq!(server.call("DELETE", FAULTS, &[], "").await.code, 200);
    assert_eq!(server.get(FAULTS).await.json()["items"], json!([]));

    let expired = server
        .call("POST", "/longshore.dev/v1/expire", &[], "")
        .await;
    assert_eq!(expired.json()["status"], "Success");
    for (method, path, body, code) in [
        ("POST", FAULTS, "{}", 400),
        ("POST", FAULTS, "{", 400),
        ("POST", FAULTS, r#"{"effect":{"answer":{"code":200}}}"#, 400),
        ("PUT", FAULTS, "", 405),
        ("GET", "/longshore.dev/v1/expire", "", 405),
        ("GET", "/longshore.dev/v1", "", 404),
        ("DELETE", "/longshore.dev/v1/faults/nope", "", 404),
    ] {
        let answer = server.call(method, path, &[], body).await;
        assert_eq!(answer.code, code, "{method} {path}: {}", answer.text());
        assert_eq!(answer.json()["kind"], "Status");
    }
}

#[tokio::test]
async fn the_endpoint_must_be_enabled() {
    let server = Server::new();
    assert_eq!(server.get(FAULTS).await.code, 404);
    let answer = server
        .call("POST", FAULTS, &[], r#"{"effect":"drop"}"#)
        .await;
    assert_eq!(answer.code, 404);
}
