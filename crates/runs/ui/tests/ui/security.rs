//! Access control, tested with raw requests.

use crate::fixture::{Fixture, request};

#[tokio::test]
async fn nothing_is_served_without_a_session() {
    let fixture = Fixture::without_node().await;
    let browser = fixture.browser().await;
    let base = browser.base.clone();
    for path in [
        "/".to_owned(),
        "/open".to_owned(),
        "/open?token=".to_owned(),
        "/open?token=guess".to_owned(),
        base.clone(),
        format!("{base}events"),
        format!("{base}assets/main.js"),
        format!("{base}runs/default/x/objects"),
    ] {
        let answer = request(fixture.address, "GET", &path, &[]).await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.body.contains("longshore ui"), "{answer:?}");
    }
    let wrong = [("cookie", "longshore-ui=guess")];
    let answer = request(fixture.address, "GET", &base, &wrong).await;
    assert_eq!(answer.status, 401);
    assert_eq!(browser.get("").await.status, 200);
}

#[tokio::test]
async fn a_link_works_once() {
    let fixture = Fixture::without_node().await;
    let link = fixture.links.create();
    let path = link.split_once("/open").unwrap().1;
    let path = format!("/open{path}");
    // Neither of these requests uses the token.
    let answer = request(fixture.address, "HEAD", &path, &[]).await;
    assert_eq!(answer.status, 405);
    let answer = request(fixture.address, "POST", &path, &[("content-length", "0")]).await;
    assert_eq!(answer.status, 405);
    let first = request(fixture.address, "GET", &path, &[]).await;
    assert_eq!(first.status, 200);
    let cookie = first.header("set-cookie").unwrap();
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!first.body.contains("token="), "{}", first.body);
    let second = request(fixture.address, "GET", &path, &[]).await;
    assert_eq!(second.status, 401);
    assert_eq!(second.header("set-cookie"), None);
}

#[tokio::test]
async fn names_that_resolve_to_loopback_are_refused() {
    let fixture = Fixture::without_node().await;
    let browser = fixture.browser().await;
    let port = fixture.address.port();
    for host in [
        format!("evil.example:{port}"),
        format!("localhost:{port}"),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1:{}", port ^ 1),
    ] {
        let headers = [("host", host.as_str()), ("cookie", &browser.cookie)];
        let answer = request(fixture.address, "GET", &browser.base, &headers).await;
        assert_eq!(answer.status, 421, "{host}");
    }
    // Such a request does not use up the link.
    let link = fixture.links.create();
    let path = link.split_at(link.find("/open").unwrap()).1;
    let host = [("host", "evil.example")];
    assert_eq!(
        request(fixture.address, "GET", path, &host).await.status,
        421
    );
    assert_eq!(request(fixture.address, "GET", path, &[]).await.status, 200);
}

#[tokio::test]
async fn requests_of_other_sites_are_refused() {
    let fixture = Fixture::without_node().await;
    fixture.run("kept-x7k2p", 1, "true").await;
    let browser = fixture.browser().await;
    browser.wait_for("", "kept-x7k2p").await;
    let cookie = ("cookie", browser.cookie.as_str());
    for site in ["cross-site", "same-site"] {
        let headers = [cookie, ("sec-fetch-site", site)];
        let answer = request(fixture.address, "GET", &browser.base, &headers).await;
        assert_eq!(answer.status, 403, "{site}");
    }

    let path = format!("{}runs/default/kept-x7k2p/remove", browser.base);
    let own = format!("http://{}", fixture.address);
    let (token, length) = (
        ("x-longshore-token", browser.csrf.as_str()),
        ("content-length", "0"),
    );
    let other = fixture.browser().await;
    let attempts: [&[(&str, &str)]; 6] = [
        &[cookie, length],
        &[cookie, length, token],
        &[cookie, length, ("origin", &own)],
        &[cookie, length, token, ("origin", "https://evil.example")],
        &[
            cookie,
            length,
            ("origin", &own),
            ("x-longshore-token", &other.csrf),
        ],
        &[
            cookie,
            length,
            token,
            ("origin", &own),
            ("sec-fetch-site", "cross-site"),
        ],
    ];
    for headers in attempts {
        let answer = request(fixture.address, "POST", &path, headers).await;
        assert_eq!(answer.status, 403, "{headers:?}");
    }
    let without_session = [length, token, ("origin", own.as_str())];
    let answer = request(fixture.address, "POST", &path, &without_session).await;
    assert_eq!(answer.status, 401);
    // A link on another page cannot act, either.
    let answer = browser.get("runs/default/kept-x7k2p/remove").await;
    assert_eq!(answer.status, 405);
    assert!(fixture.removed.lock().unwrap().is_empty());
}

#[tokio::test]
async fn responses_forbid_foreign_content() {
    let fixture = Fixture::without_node().await;
    let browser = fixture.browser().await;
    let answers = [
        request(fixture.address, "GET", "/", &[]).await,
        browser.get("").await,
        browser.get("assets/main.js").await,
        browser.get("nothing").await,
        browser.get("runs/default/no-such-run").await,
    ];
    for answer in answers {
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none';"), "{policy}");
        for part in [
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(
            answer.header("cross-origin-resource-policy"),
            Some("same-origin")
        );
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
}

#[tokio::test]
async fn only_the_loopback_address_is_open() {
    let fixture = Fixture::without_node().await;
    assert!(fixture.address.ip().is_loopback());
    assert_eq!(fixture.address.ip().to_string(), "127.0.0.1");
}
