//! Usage, sweeps, their retries, and the objects of the cluster.

use serde_json::json;

use crate::fixture::Fixture;

#[tokio::test]
async fn the_usage_of_tasks_is_sent_while_its_tab_is_shown() {
    let fixture = Fixture::without_node().await;
    let browser = fixture.browser().await;
    fixture.run("busy-x7k2p", 2, "true").await;
    let page = "runs/default/busy-x7k2p";
    browser.wait_for(page, "2 pending").await;
    let events = browser
        .events(
            &format!("{page}/events?shown=usage"),
            &["No task has started."],
        )
        .await;
    assert!(events.contains(r#""id":"usage""#), "{events}");
    fixture.ended_pods("busy-x7k2p", 2).await;
    let wanted = ["0.50 cores", "sum of all tasks", "worker/1", "<path"];
    let path = format!("{page}/events?shown=usage");
    let events = browser.events(&path, &wanted).await;
    assert!(!events.contains("style="), "{events}");
    // Without the tab, nothing is queried.
    let events = browser
        .events(&format!("{page}/events"), &["timeline"])
        .await;
    assert!(!events.contains(r#""id":"usage""#), "{events}");
}

#[tokio::test]
async fn a_sweep_is_shown_and_its_failed_combinations_are_run_again() {
    let fixture = Fixture::start().await;
    let browser = fixture.browser().await;
    let page = "runs/default/grid-x7k2p";
    let script = r#"echo "loss=0.$JOB_COMPLETION_INDEX"; test "$JOB_COMPLETION_INDEX" != 1"#;
    fixture
        .sweep("grid-x7k2p", &["0.1", "0.2", "0.3"], script)
        .await;
    browser.wait_for(page, "s-failed").await;
    let head = browser.wait_for(page, r#"data-action="retry""#).await;
    assert!(head.body.contains("tab-sweep"), "{}", head.body);
    let wanted = ["2 succeeded, 1 failed", "<path", "role=\\\"slider\\\""];
    let path = format!("{page}/events?shown=sweep");
    let events = browser.events(&path, &wanted).await;
    assert!(events.contains(r#""id":"sweep""#), "{events}");

    // Like every change, a retry needs the token of the page.
    let path = format!("{}{page}/retry", browser.base);
    let cookie = ("cookie", browser.cookie.as_str());
    let refused = crate::fixture::request(browser.address, "POST", &path, &[cookie]).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(browser.get(&format!("{page}/retry")).await.status, 405);

    let answer = browser.post(&format!("{page}/retry")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let (_, created) = answer.body.split_once(&browser.base).unwrap();
    browser.wait_for(created, "tab-sweep").await;
    // The combination is run again already.
    let answer = browser.post(&format!("{page}/retry")).await;
    assert_eq!(answer.status, 502, "{answer:?}");
    assert!(
        answer.body.contains("no failed combinations"),
        "{}",
        answer.body
    );
    fixture.run("plain-x7k2p", 1, "false").await;
    browser
        .wait_for("runs/default/plain-x7k2p", "s-failed")
        .await;
    let answer = browser.post("runs/default/plain-x7k2p/retry").await;
    assert_eq!(answer.status, 409, "{answer:?}");
}

#[tokio::test]
async fn objects_of_the_cluster_have_no_values_of_secrets() {
    let fixture = Fixture::without_node().await;
    let browser = fixture.browser().await;
    let secrets = fixture.cluster.secrets().in_namespace("default").unwrap();
    let secret = json!({"metadata": {"name": "key"}, "stringData": {"password": "hunter2"}});
    secrets.create(&secret).await.unwrap();
    let list = browser.get("objects?kind=secrets&namespace=default").await;
    assert_eq!(list.status, 200, "{list:?}");
    assert!(
        list.body
            .contains("object?kind=secrets&amp;namespace=default&amp;name=key"),
        "{}",
        list.body
    );
    let shown = browser
        .get("object?kind=secrets&namespace=default&name=key")
        .await;
    assert!(
        shown.body.contains("(hidden, 12 characters)"),
        "{}",
        shown.body
    );
    assert!(shown.body.contains("No events."), "{}", shown.body);
    assert!(!shown.body.contains("hunter2") && !shown.body.contains("aHVudGVyMg"));

    let pod = fixture.cluster.pods().in_namespace("default").unwrap();
    let spec = json!({"containers": [{"name": "main", "image": "any"}]});
    pod.create(&json!({"metadata": {"name": "web"}, "spec": spec}))
        .await
        .unwrap();
    let list = browser.get("objects").await;
    assert!(
        list.body.contains("Pending") && list.body.contains("all namespaces"),
        "{}",
        list.body
    );
    let roles = browser
        .get("objects?kind=clusterroles.rbac.authorization.k8s.io")
        .await;
    assert!(!roles.body.contains("all namespaces"), "{}", roles.body);

    let statuses = [
        ("objects?kind=shoes", 404),
        ("object?kind=pods&namespace=default&name=none", 404),
        ("object?kind=pods&namespace=default&name=..", 404),
        ("object?kind=pods&name=web", 502),
    ];
    for (path, status) in statuses {
        let answer = browser.get(path).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
    assert_eq!(browser.post("objects").await.status, 405);
}

#[tokio::test]
async fn other_clusters_have_no_page_of_all_objects() {
    let embedded = longshore_embedded::start_server().await.unwrap();
    let fixture = Fixture::with(embedded, |options| options.browse = false).await;
    let browser = fixture.browser().await;
    for path in ["objects", "object?kind=pods&namespace=default&name=web"] {
        let answer = browser.get(path).await;
        assert_eq!(answer.status, 404, "{answer:?}");
        assert!(
            answer.body.contains("embedded cluster only"),
            "{}",
            answer.body
        );
    }
    assert!(!browser.get("").await.body.contains("/objects\""));
}
