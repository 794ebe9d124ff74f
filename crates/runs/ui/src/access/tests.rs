//! Tests of the rules, without a server.
#![allow(clippy::unwrap_used)]

use super::{sessions::*, *};

fn own() -> SocketAddr {
    "127.0.0.1:4000".parse().unwrap()
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name: http::HeaderName = name.parse().unwrap();
        headers.append(name, value.parse().unwrap());
    }
    headers
}

#[test]
fn only_the_own_address_is_a_host() {
    let check = |hosts: &[&str]| {
        let pairs: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
        check_target(&Method::GET, &headers(&pairs), own())
    };
    assert_eq!(check(&["127.0.0.1:4000"]), Ok(()));
    for hosts in [
        &[][..],
        &["127.0.0.1"],
        &["127.0.0.1:4001"],
        &["localhost:4000"],
        &["evil.example:4000"],
        &["127.0.0.1:4000.evil.example"],
        &["127.0.0.1:4000", "evil.example"],
    ] {
        assert_eq!(check(hosts), Err(Refusal::Host), "{hosts:?}");
    }
    let host = headers(&[("host", "127.0.0.1:4000")]);
    for method in [Method::HEAD, Method::PUT, Method::OPTIONS, Method::TRACE] {
        assert_eq!(check_target(&method, &host, own()), Err(Refusal::Method));
    }
}

#[test]
fn a_link_is_valid_once_and_for_five_minutes() {
    let (mut sessions, now) = (Sessions::default(), Instant::now());
    let token = sessions.new_link(now);
    assert!(sessions.exchange("", now).is_none());
    assert!(sessions.exchange(&token[1..], now).is_none());
    let cookie = sessions.exchange(&token, now).unwrap();
    assert!(sessions.exchange(&token, now).is_none());
    assert!(sessions.find(&cookie, now).is_some());
    assert!(sessions.find(&token, now).is_none());

    let late = sessions.new_link(now);
    assert!(sessions.exchange(&late, now + LINK_LIFETIME).is_none());
    // An expired link is not valid again with another clock.
    assert!(sessions.exchange(&late, now).is_none());
}

#[test]
fn sessions_expire_and_their_number_is_limited() {
    let (mut sessions, now) = (Sessions::default(), Instant::now());
    let mut open = |now| {
        let token = sessions.new_link(now);
        let cookie = sessions.exchange(&token, now).unwrap();
        (cookie, sessions.find("", now).is_some())
    };
    let (first, nothing) = open(now);
    assert!(!nothing);
    let others: Vec<String> = (0..32).map(|_| open(now).0).collect();
    assert!(sessions.find(&first, now).is_none());
    assert!(sessions.find(&others[31], now).is_some());
    assert!(sessions.find(&others[31], now + SESSION_LIFETIME).is_none());
}

#[test]
fn requests_need_a_session_and_changes_the_token_of_its_pages() {
    let (mut sessions, now) = (Sessions::default(), Instant::now());
    let token = sessions.new_link(now);
    let cookie = sessions.exchange(&token, now).unwrap();
    let csrf = sessions.find(&cookie, now).unwrap().csrf().to_owned();
    let cookie = format!("other=1; longshore-ui={cookie}");
    let check = |method: Method, pairs: &[(&str, &str)]| {
        let found = super::check(&method, &headers(pairs), own(), &sessions, now);
        found.map(|_| ())
    };
    let (get, post) = (Method::GET, Method::POST);
    let origin = "http://127.0.0.1:4000";
    let known = ("cookie", cookie.as_str());
    assert_eq!(check(get.clone(), &[known]), Ok(()));
    assert_eq!(check(get.clone(), &[]), Err(Refusal::NoSession));
    let wrong = [("cookie", "longshore-ui=x; longshore-uix=1")];
    assert_eq!(check(get.clone(), &wrong), Err(Refusal::NoSession));
    for site in ["cross-site", "same-site", "anything"] {
        let caused = [known, ("sec-fetch-site", site)];
        assert_eq!(check(get.clone(), &caused), Err(Refusal::CrossSite));
    }
    for site in ["same-origin", "none"] {
        assert_eq!(
            check(get.clone(), &[known, ("sec-fetch-site", site)]),
            Ok(())
        );
    }

    let token = (CSRF_HEADER, csrf.as_str());
    assert_eq!(
        check(post.clone(), &[known, ("origin", origin), token]),
        Ok(())
    );
    assert_eq!(
        check(post.clone(), &[known, token]),
        Err(Refusal::CrossSite)
    );
    for origin in [
        "null",
        "http://localhost:4000",
        "http://127.0.0.1:4001",
        "http://evil.example",
    ] {
        let foreign = [known, ("origin", origin), token];
        assert_eq!(check(post.clone(), &foreign), Err(Refusal::CrossSite));
    }
    let missing = [known, ("origin", origin)];
    assert_eq!(check(post.clone(), &missing), Err(Refusal::Csrf));
    let wrong = [known, ("origin", origin), (CSRF_HEADER, "x")];
    assert_eq!(check(post.clone(), &wrong), Err(Refusal::Csrf));
    assert_eq!(
        check(post, &[("origin", origin), token]),
        Err(Refusal::NoSession)
    );
}

#[test]
fn the_cookie_is_limited_to_the_pages() {
    let cookie = set_cookie("id", "base");
    assert_eq!(
        cookie,
        "longshore-ui=id; Path=/base/; Max-Age=86400; HttpOnly; SameSite=Strict"
    );
}
