//! The routes, with runs whose tasks are executed.

use serde_json::json;

use crate::fixture::Fixture;

#[tokio::test]
async fn a_run_is_shown_live_with_its_tasks_and_logs() {
    let fixture = Fixture::start().await;
    let browser = fixture.browser().await;
    assert!(browser.get("").await.body.contains("No runs."));
    let script = r"printf 'hello \033[31mred\033[0m\n'; echo '<b>bold</b>'";
    let listing = browser.events("events", &["digits-x7k2p", "s-succeeded"]);
    let ((), list) = futures::join!(fixture.run("digits-x7k2p", 3, script), listing);
    assert!(list.contains("event: parts"), "{list}");

    let page = "runs/default/digits-x7k2p";
    let shown = browser.wait_for(page, "3 succeeded").await;
    for part in [r#"data-task="worker/2""#, "exit code", "b-running"] {
        assert!(
            shown.body.to_lowercase().contains(part),
            "{part}: {}",
            shown.body
        );
    }
    let path = format!("{page}/events");
    let events = browser.events(&path, &["event: parts", "worker/0"]).await;
    assert!(events.contains(r#""id":"tasks""#), "{events}");

    let wanted = [
        "event: reset",
        "event: end",
        "worker/2",
        r"\u001b[31mred\u001b[0m",
    ];
    let logs = browser.events(&format!("{page}/logs"), &wanted).await;
    assert_eq!(logs.matches("hello").count(), 3, "{logs}");
    assert_eq!(logs.matches("<b>bold</b>").count(), 3, "{logs}");

    // The next tab gets the same lines, and a tab that has all lines gets no more.
    let again = browser
        .events(&format!("{page}/logs"), &["event: end"])
        .await;
    assert_eq!(again.matches("hello").count(), 3, "{again}");
    let last = logs.lines().rfind(|line| line.starts_with("id: ")).unwrap();
    let after = format!("{page}/logs?after={}", last.strip_prefix("id: ").unwrap());
    let rest = browser.events(&after, &["event: end"]).await;
    assert!(!rest.contains("hello") && !rest.contains("reset"), "{rest}");
    let stale = browser
        .events(&format!("{page}/logs?after=1-2"), &["event: end"])
        .await;
    assert!(
        stale.contains("event: reset") && stale.contains("hello"),
        "{stale}"
    );
}

#[tokio::test]
async fn a_failed_run_is_explained() {
    let fixture = Fixture::start().await;
    let browser = fixture.browser().await;
    fixture.run("broken-x7k2p", 1, "exit 3").await;
    let page = "runs/default/broken-x7k2p";
    browser.wait_for(page, "1 failed").await;
    let why = browser
        .wait_for(&format!("{page}/why"), "exit code 3")
        .await;
    assert!(why.body.contains("Remedy:"), "{}", why.body);
    assert!(why.body.contains("<li>main: Error 3</li>"), "{}", why.body);
}

#[tokio::test]
async fn objects_are_shown_without_the_contents_of_secrets() {
    let fixture = Fixture::without_node().await;
    let browser = fixture.browser().await;
    let run = "digits-x7k2p";
    fixture.run(run, 1, "true").await;
    let secrets = fixture.cluster.secrets().in_namespace("default").unwrap();
    let values = json!({"stringData": {"password": "hunter2"}});
    secrets
        .create(&Fixture::labelled("own", run, values.clone()))
        .await
        .unwrap();
    secrets
        .create(&Fixture::labelled("other", "other-run", values))
        .await
        .unwrap();

    let page = format!("runs/default/{run}");
    browser.wait_for("", run).await;
    let list = browser.get(&format!("{page}/objects")).await;
    assert!(list.body.contains("digits-x7k2p-worker"), "{}", list.body);
    assert!(list.body.contains(">own<"), "{}", list.body);
    assert!(!list.body.contains(">other<"), "{}", list.body);

    let secret = browser
        .get(&format!("{page}/object?kind=Secret&name=own"))
        .await;
    assert_eq!(
        secret.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert!(
        secret.body.contains("(hidden, 12 characters)"),
        "{}",
        secret.body
    );
    assert!(!secret.body.contains("aHVudGVyMg"), "{}", secret.body);
    let job = format!("{page}/object?kind=Job&name={run}-worker");
    let job = browser.get(&job).await;
    assert!(job.body.contains("completionMode: Indexed"), "{}", job.body);
    assert!(!job.body.contains("managedFields"), "{}", job.body);

    for query in [
        "kind=Secret&name=other",
        "kind=Secret&name=missing",
        "kind=Node&name=x",
        "kind=Secret",
    ] {
        let answer = browser.get(&format!("{page}/object?{query}")).await;
        assert_eq!(answer.status, 404, "{query}");
    }
}

#[tokio::test]
async fn unknown_pages_and_runs() {
    let fixture = Fixture::without_node().await;
    let browser = fixture.browser().await;
    for path in ["nothing", "assets/none.js", "runs/default/no-such-run/logs"] {
        let answer = browser.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(
            answer.header("content-type"),
            Some("text/plain; charset=utf-8")
        );
    }
    let page = browser.get("runs/default/no-such-run").await;
    assert_eq!(page.status, 404);
    assert!(page.body.contains("does not exist"), "{}", page.body);
}

#[tokio::test]
async fn scripts_and_styles_are_served() {
    let fixture = Fixture::without_node().await;
    let browser = fixture.browser().await;
    let script = browser.get("assets/main.js").await;
    assert_eq!(
        script.header("content-type"),
        Some("text/javascript; charset=utf-8")
    );
    // All imported modules exist.
    for line in script
        .body
        .lines()
        .filter(|line| line.starts_with("import"))
    {
        let name = line.split('"').nth(1).unwrap().strip_prefix("./").unwrap();
        let module = browser.get(&format!("assets/{name}")).await;
        assert_eq!(module.status, 200, "{name}");
    }
    let style = browser.get("assets/style.css").await;
    assert_eq!(
        style.header("content-type"),
        Some("text/css; charset=utf-8")
    );
}

#[tokio::test]
async fn the_page_of_a_schedule_lists_its_runs() {
    let fixture = Fixture::without_node().await;
    let browser = fixture.browser().await;
    let labels = json!({
        "app.kubernetes.io/managed-by": "longshore",
        "longshore.dev/run": "nightly-x7k2p",
        "longshore.dev/role": "main",
    });
    let container = json!({"name": "main", "image": "any"});
    let pod = json!({"restartPolicy": "Never", "containers": [container]});
    let schedule = json!({
        "metadata": {"name": "nightly-x7k2p-main", "labels": labels},
        "spec": {
            "schedule": "0 2 * * *",
            "jobTemplate": {"spec": {"template": {"spec": pod}}},
        },
    });
    let schedules = fixture.cluster.cronjobs().in_namespace("default").unwrap();
    schedules.create(&schedule).await.unwrap();
    fixture.run("other-x7k2p", 1, "true").await;
    browser.wait_for("", "other-x7k2p").await;
    let page = browser
        .wait_for("runs/default/nightly-x7k2p", "0 2 * * *")
        .await;
    assert!(page.body.contains("No runs."), "{}", page.body);
    assert!(!page.body.contains("other-x7k2p"), "{}", page.body);
    assert!(
        page.body.contains(r#"data-schedule="true""#),
        "{}",
        page.body
    );
    let events = "runs/default/nightly-x7k2p/events";
    browser.events(events, &["event: parts", "No runs."]).await;
}
