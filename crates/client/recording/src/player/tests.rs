//! Tests of the choice of responses.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::request::tests::request;

/// Recorded requests, each with its method, target and body.
fn player(recorded: &[(&str, &str, &str)], matching: Matching) -> Player {
    let mut text = "{\"recording\":1,\"namespace\":\"default\"}\n".to_owned();
    for (index, (method, target, body)) in recorded.iter().enumerate() {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).collect();
        let mut request = serde_json::json!({"method": method, "path": path, "query": query});
        if !body.is_empty() {
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            request["body"] = serde_json::json!({"json": body});
        }
        let is_stream = query.contains(&"watch=true");
        let response = serde_json::json!({"status": 200, "stream": is_stream});
        let line = serde_json::json!({"id": index + 1, "request": request, "response": response});
        text += &format!("{line}\n");
    }
    let recording = Recording::parse(text.as_bytes()).unwrap();
    Player::new(Arc::new(recording), matching)
}

fn ask(player: &mut Player, (method, target, body): (&str, &str, &str)) -> Result<usize, String> {
    match player.respond(&request(method, target, "application/json", body)) {
        Decision::Serve(index) => Ok(index),
        Decision::Idle => Err("idle".to_owned()),
        Decision::NotRecorded(message) => Err(message),
    }
}

const GET: (&str, &str, &str) = ("GET", "/api/v1/pods", "");

#[test]
fn responses_are_used_in_order_and_the_last_one_of_a_get_is_repeated() {
    let mut player = player(&[GET, ("GET", "/version", ""), GET], Matching::default());
    let chosen: Vec<_> = (0..4).map(|_| ask(&mut player, GET)).collect();
    assert_eq!(chosen, [Ok(0), Ok(2), Ok(2), Ok(2)]);
    let report = player.report();
    assert_eq!((report.served, report.is_complete()), (4, true));
    assert_eq!(report.unused, ["GET /version"]);
}

#[test]
fn a_strict_replay_repeats_nothing_and_needs_every_request() {
    let strict = Matching {
        strict: true,
        ..Matching::default()
    };
    let mut player = player(&[GET, ("GET", "/version", "")], strict);
    assert_eq!(ask(&mut player, GET), Ok(0));
    assert!(!player.report().is_complete());
    let message = ask(&mut player, GET).unwrap_err();
    assert_eq!(
        message,
        "GET /api/v1/pods was not recorded: all recorded responses to it have been used; the \
         first is that of request 1"
    );
    assert_eq!(player.report().not_recorded[0].count, 1);
}

#[test]
fn writes_are_matched_by_their_body_and_not_repeated() {
    let post = |body| ("POST", "/api/v1/namespaces/a/configmaps", body);
    let recorded = [post(r#"{"a":1}"#), post(r#"{"a":2}"#)];
    let mut strict_order = player(&recorded, Matching::default());
    assert_eq!(ask(&mut strict_order, post(r#"{"a":2}"#)), Ok(1));
    assert_eq!(ask(&mut strict_order, post(r#"{"a":1}"#)), Ok(0));
    assert!(ask(&mut strict_order, post(r#"{"a":1}"#)).is_err());
    let message = ask(&mut strict_order, post(r#"{"a":3}"#)).unwrap_err();
    assert!(
        message.contains("the nearest recorded request is 1")
            && message.contains("its .a is 1, not 3"),
        "{message}"
    );

    let any = Matching {
        ignore_bodies: true,
        ..Matching::default()
    };
    let mut any_body = player(&recorded, any);
    assert_eq!(ask(&mut any_body, post(r#"{"a":2}"#)), Ok(1));
    assert_eq!(ask(&mut any_body, post(r#"{"a":3}"#)), Ok(0));
    assert!(ask(&mut any_body, post(r#"{"a":3}"#)).is_err());
}

#[test]
fn events_and_leases_match_with_any_body() {
    let event = |body| ("POST", "/api/v1/namespaces/a/events", body);
    let mut player = player(&[event(r#"{"time":1}"#)], Matching::default());
    assert_eq!(ask(&mut player, event(r#"{"time":2}"#)), Ok(0));
}

#[test]
fn a_watch_that_continues_a_replayed_one_stays_open() {
    let watch = |version| format!("/api/v1/pods?watch=true&resourceVersion={version}");
    let recorded = watch(5);
    let later = watch(9);
    let mut player_of_watch = player(&[("GET", &recorded, "")], Matching::default());
    let early = ask(&mut player_of_watch, ("GET", &later, ""));
    assert!(
        early
            .unwrap_err()
            .contains("its resourceVersion is \"5\", not \"9\"")
    );
    assert_eq!(ask(&mut player_of_watch, ("GET", &recorded, "")), Ok(0));
    let continued = ask(&mut player_of_watch, ("GET", &later, ""));
    assert_eq!(continued, Err("idle".to_owned()));
    let other = "/api/v1/nodes?watch=true&resourceVersion=9";
    assert!(
        ask(&mut player_of_watch, ("GET", other, ""))
            .unwrap_err()
            .contains("path")
    );
}

#[test]
fn a_refused_watch_is_refused_again() {
    // The response has no stream.
    let refused = "/api/v1/pods?watch=1&resourceVersion=5";
    let mut player = player(&[("GET", refused, "")], Matching::default());
    for _ in 0..2 {
        assert_eq!(ask(&mut player, ("GET", refused, "")), Ok(0));
    }
    let later = "/api/v1/pods?watch=1&resourceVersion=6";
    let message = ask(&mut player, ("GET", later, "")).unwrap_err();
    assert!(message.contains("its resourceVersion is"), "{message}");
}

#[test]
fn a_table_is_not_the_response_to_a_request_for_objects() {
    let mut player = player(&[GET], Matching::default());
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let decision = player.respond(&request("GET", GET.1, table, ""));
    let Decision::NotRecorded(message) = decision else {
        panic!("{decision:?}");
    };
    assert!(message.contains("its Accept is"), "{message}");
}

#[test]
fn repeated_requests_are_listed_once() {
    let mut player = player(&[GET], Matching::default());
    for _ in 0..3 {
        assert!(ask(&mut player, ("GET", "/api/v1/nodes", "")).is_err());
    }
    let report = player.report();
    assert_eq!(report.not_recorded.len(), 1);
    assert_eq!(report.not_recorded[0].count, 3);
    assert_eq!(report.not_recorded[0].request, "GET /api/v1/nodes");
}
