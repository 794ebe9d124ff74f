//! Rule 2: resource version semantics of GET and LIST.

use longshore_conformance::{ApiTest, Response};

use crate::common::{config_map, items, number, version};

#[track_caller]
fn too_large(response: &Response) {
    let status = response.refused_for(504, "Timeout", &[("ResourceVersionTooLarge", "")]);
    assert_eq!(status["details"]["retryAfterSeconds"], 1, "{status}");
    assert_eq!(response.header("retry-after"), "1");
}

#[tokio::test]
async fn rule_02_reads_without_a_resource_version_return_the_latest_state() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    for name in ["a", "b", "c"] {
        let made = test.create(&maps, &config_map(name)).await;
        let read = test.get(&format!("{maps}/{name}")).await.ok();
        assert_eq!(read, made);
        let list = test.get(&maps).await.ok();
        assert!(items(&list).contains(&name.to_owned()), "{list}");
        assert!(number(&list) >= number(&made));
    }
    let list = test.get(&format!("{maps}?resourceVersion=")).await.ok();
    assert_eq!(items(&list), ["a", "b", "c"]);
}

#[tokio::test]
async fn rule_02_resource_version_zero_accepts_any_state() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    test.create(&maps, &config_map("a")).await;
    let list = test.get(&format!("{maps}?resourceVersion=0")).await.ok();
    assert_eq!(list["kind"], "ConfigMapList");
    let version = version(&list);
    assert_ne!(version, "0", "the list has the revision of its state");
    // An older state may not contain the object.
    let one = test.get(&format!("{maps}/a?resourceVersion=0")).await;
    assert!([200, 404].contains(&one.code), "{}", one.text());
    let list = test
        .get(&format!(
            "{maps}?resourceVersion=0&resourceVersionMatch=NotOlderThan"
        ))
        .await;
    list.ok();
}

#[tokio::test]
async fn rule_02_a_resource_version_means_not_older_than() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let first = test.create(&maps, &config_map("a")).await;
    let second = test.create(&maps, &config_map("b")).await;
    let newest = version(&second);
    for query in ["", "&resourceVersionMatch=NotOlderThan"] {
        let list = test
            .get(&format!("{maps}?resourceVersion={newest}{query}"))
            .await
            .ok();
        let mut found = items(&list);
        found.sort();
        assert_eq!(found, ["a", "b"]);
        assert!(number(&list) >= number(&second));
    }
    let one = test
        .get(&format!("{maps}/b?resourceVersion={newest}"))
        .await
        .ok();
    assert_eq!(one, second);
    // A resource version older than the object is valid: it means "not older than".
    let older = version(&first);
    let one = test.get(&format!("{maps}/b?resourceVersion={older}")).await;
    assert_eq!(one.ok(), second);
}

#[tokio::test]
async fn rule_02_exact_returns_the_requested_revision() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let first = test.create(&maps, &config_map("a")).await;
    test.create(&maps, &config_map("b")).await;
    test.delete(&format!("{maps}/a")).await.ok();
    let then = version(&first);
    let list = test
        .get(&format!(
            "{maps}?resourceVersion={then}&resourceVersionMatch=Exact"
        ))
        .await
        .ok();
    assert_eq!(items(&list), ["a"]);
    assert_eq!(version(&list), then);
    // With a limit, a resource version without a match also means "exact".
    let page = test
        .get(&format!("{maps}?resourceVersion={then}&limit=10"))
        .await
        .ok();
    assert_eq!(items(&page), ["a"]);
    assert_eq!(version(&page), then);
}

#[tokio::test]
async fn rule_02_a_future_resource_version_is_too_large() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let map = test.create(&maps, &config_map("a")).await;
    let future = number(&map) + 1_000_000;
    too_large(&test.get(&format!("{maps}?resourceVersion={future}")).await);
    too_large(
        &test
            .get(&format!("{maps}/a?resourceVersion={future}"))
            .await,
    );
    let exact = format!("{maps}?resourceVersion={future}&resourceVersionMatch=Exact");
    let response = test.get(&exact).await;
    if test.is_newer("a list at an exact future resource version: 1.20 returns 500") {
        too_large(&response);
    }
}

#[tokio::test]
async fn rule_02_an_invalid_resource_version_is_rejected() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    test.create(&maps, &config_map("a")).await;
    let why = "a list from an invalid resource version: 1.20 returns 500";
    let listed = test.old_or_new(500, 400, why);
    for wrong in ["abc", "-1", "1.5"] {
        for (path, code) in [(maps.clone(), listed), (format!("{maps}/a"), 500)] {
            let response = test.get(&format!("{path}?resourceVersion={wrong}")).await;
            let text = response.is(code)["message"].to_string();
            assert!(text.contains("strconv.ParseUint"), "{text}");
        }
    }
}

#[tokio::test]
async fn rule_02_an_invalid_resource_version_match_is_rejected() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    for name in ["a", "b"] {
        test.create(&maps, &config_map(name)).await;
    }
    let page = test.get(&format!("{maps}?limit=1")).await.ok();
    let token = page["metadata"]["continue"].as_str().unwrap().to_owned();
    let now = version(&page);
    let forbidden = ("FieldValueForbidden", "resourceVersionMatch");
    for (query, cause) in [
        ("resourceVersionMatch=NotOlderThan".to_owned(), forbidden),
        ("resourceVersionMatch=Exact".to_owned(), forbidden),
        (
            "resourceVersion=0&resourceVersionMatch=Exact".to_owned(),
            forbidden,
        ),
        (
            format!("limit=1&continue={token}&resourceVersionMatch=Exact&resourceVersion={now}"),
            forbidden,
        ),
        (
            format!("resourceVersion={now}&resourceVersionMatch=Newest"),
            ("FieldValueNotSupported", "resourceVersionMatch"),
        ),
    ] {
        let response = test.get(&format!("{maps}?{query}")).await;
        response.refused_for(422, "Invalid", &[cause]);
    }
}
