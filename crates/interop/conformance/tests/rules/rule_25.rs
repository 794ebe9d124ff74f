//! Rule 25: version and health endpoints.

use longshore_conformance::ApiTest;
use longshore_model::release;

#[tokio::test]
async fn rule_25_the_version_is_returned() {
    let test = ApiTest::start().await;
    let version = test.get("/version").await.ok();
    for field in [
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    ] {
        assert!(version[field].is_string(), "{field}: {version}");
    }
    let (old, new) = (("1", "20+"), (release::MAJOR, release::MINOR));
    let (major, minor) = test.old_or_new(old, new, "its own version");
    let minor_given = version["minor"].as_str().unwrap();
    assert_eq!(version["major"], major);
    assert!(minor.starts_with(minor_given), "{version}");
    let git = version["gitVersion"].as_str().unwrap();
    let expected = format!("v{major}.{}.", minor.trim_end_matches('+'));
    assert!(git.starts_with(&expected), "{version}");
}

#[tokio::test]
async fn rule_25_health_endpoints_return_plain_text() {
    let test = ApiTest::start().await;
    for path in [
        "/healthz",
        "/livez",
        "/readyz",
        "/healthz/ping",
        "/livez/ping",
        "/readyz/ping",
        "/healthz/etcd",
        "/readyz?timeout=5s",
    ] {
        let response = test.get(path).await;
        assert_eq!(
            (response.code, response.text().as_str()),
            (200, "ok"),
            "{path}"
        );
        assert!(
            response.header("content-type").starts_with("text/plain"),
            "{path}"
        );
    }
    let verbose = test.get("/livez?verbose").await;
    assert_eq!(verbose.code, 200);
    assert!(verbose.text().contains("[+]ping ok"), "{}", verbose.text());
    assert!(
        verbose.text().ends_with("check passed\n"),
        "{}",
        verbose.text()
    );
}

#[tokio::test]
async fn rule_25_requests_are_counted() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    test.get(&maps).await.ok();
    let response = test.get("/metrics").await;
    assert_eq!(response.code, 200);
    assert!(response.header("content-type").starts_with("text/plain"));
    let text = response.text();
    let counted = text.lines().any(|line| {
        let labels = [
            r#"resource="configmaps""#,
            r#"verb="LIST""#,
            r#"code="200""#,
            r#"scope="namespace""#,
            r#"version="v1""#,
        ];
        line.starts_with("apiserver_request_total{")
            && labels.iter().all(|label| line.contains(label))
    });
    assert!(counted, "{text}");
    for name in [
        "apiserver_current_inflight_requests{request_kind=\"readOnly\"}",
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
    ] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name}");
    }
}
