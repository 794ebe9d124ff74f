//! Texts of other users in the page: notes, commands, names of roles and parameters, statuses,
//! events and log lines. The browser must show all of them as text.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use longshore_client::Patch;
use serde_json::json;

use crate::{driver::Driver, fixture::Fixture, pages::blocking};

/// Texts with a special meaning where they are not escaped. Each text that is executed sets
/// `window.pwned`.
const HOSTILE: [&str; 32] = [
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "<svg onload=window.pwned=1>",
    "<svg><animate onbegin=window.pwned=1 attributeName=x dur=1s>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<iframe src='javascript:parent.pwned=1'></iframe>",
    "<a href='javascript:window.pwned=1' autofocus onfocus=window.pwned=1>a</a>",
    "<body onload=window.pwned=1>",
    "<details open ontoggle=window.pwned=1>",
    "<input autofocus onfocus=window.pwned=1>",
    "<style>*{display:none}</style>",
    "<base href='http://evil.example/'>",
    "<meta http-equiv=refresh content='0;url=http://evil.example/'>",
    "<form action='http://evil.example/'><button>Cancel</button></form>",
    "<object data='javascript:window.pwned=1'>",
    "<template><script>window.pwned=1</script></template>",
    "\"><script>window.pwned=1</script>",
    "' onmouseover='window.pwned=1' x='",
    "\" onmouseover=\"window.pwned=1\" x=\"",
    "` onmouseover=`window.pwned=1` x=`",
    "</title></textarea></style></noscript><script>window.pwned=1</script>",
    "<!--><script>window.pwned=1</script>-->",
    "]]><script>window.pwned=1</script>",
    "&lt;script&gt;window.pwned=1&lt;/script&gt;",
    "javascript:window.pwned=1",
    "data:text/html,<script>window.pwned=1</script>",
    "\u{1b}]8;;javascript:window.pwned=1\u{7}link\u{1b}]8;;\u{7}",
    "\u{1b}[31m<script>window.pwned=1</script>\u{1b}[0m\u{1b}[2J\u{1b}]0;title\u{7}",
    "\u{202e}drowssap\u{2066}\u{200b}\u{feff}\u{2028}\u{2029}",
    "__proto__",
    "\u{fffd}\u{0}\u{8}\u{7f}\u{9b}31m",
];

/// The name of the run with this text.
fn name(number: usize) -> String {
    format!("evil-{number}")
}

/// Fails the test if such a text was interpreted as more than text.
#[track_caller]
fn assert_only_text(browser: &Driver, place: &str) {
    let found = browser.script(
        "const own = document.querySelectorAll('script').length;
         const foreign = 'iframe, object, embed, base, form[action*=evil], meta[http-equiv=refresh], \
            img, template, animate, [onerror], [onload], [onfocus], [onmouseover], [ontoggle], [onbegin], \
            a[href^=\"javascript\"], a[href^=\"data\"], a[href*=\"evil.example\"]';
         const prototype = Object.keys(Object.prototype).length;
         const hidden = getComputedStyle(document.querySelector('header')).display === 'none';
         return {
            pwned: window.pwned === undefined ? null : window.pwned,
            scripts: own,
            foreign: [...document.querySelectorAll(foreign)].map((element) => element.outerHTML),
            prototype, hidden, host: location.hostname,
         }",
    );
    let expected = json!({
        "pwned": null, "scripts": 1, "foreign": [], "prototype": 0, "hidden": false, "host": "127.0.0.1",
    });
    assert_eq!(found, expected, "{place}");
}

/// Visits the list and each run with all its tabs.
fn visit(browser: &Driver, names: &[String]) {
    browser.wait_text("table.runs", names.last().map_or("", String::as_str));
    browser.wait_ready();
    assert_only_text(browser, "the list");
    for text in HOSTILE {
        let text = serde_json::to_string(text).unwrap();
        browser.script(&format!(
            "const box = document.getElementById('filter'); box.value = {text};
             box.dispatchEvent(new Event('input'))"
        ));
    }
    assert_only_text(browser, "the filter");
    for name in names {
        let path = format!("location.href = document.body.dataset.base + 'runs/default/{name}'");
        browser.script(&path);
        browser.wait(&format!("return location.pathname.endsWith('/{name}')"));
        browser.wait_ready();
        for tab in ["1", "2", "3", "4", "5", "6", "7"] {
            browser.keys(tab);
            assert_only_text(browser, &format!("{name}, tab {tab}"));
        }
        browser.wait_text("#status", "connected");
        assert_only_text(browser, name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Chromium: cargo xtask test --browser"]
async fn texts_of_objects_are_texts() {
    let fixture = Fixture::without_node().await;
    let pods = fixture.cluster.pods().in_namespace("default").unwrap();
    let events = fixture.cluster.events().in_namespace("default").unwrap();
    for (number, text) in HOSTILE.iter().enumerate() {
        let (run, pod) = (name(number), format!("evil-{number}-worker-0"));
        fixture.run(&run, 1, "true").await;
        let job = fixture.jobs.fetch(&format!("{run}-worker")).await.unwrap();
        let annotations = json!({
            "longshore.dev/note": text,
            "longshore.dev/command": json!(["sh", "-c", text]).to_string(),
            "longshore.dev/owner": text,
            "longshore.dev/metrics": json!([text]).to_string(),
            "longshore.dev/submitted": text,
        });
        let patch = Patch::merge(json!({"metadata": {"annotations": annotations}}));
        job.patch(&patch).await.unwrap();
        let labels = json!({
            "app.kubernetes.io/managed-by": "longshore",
            "longshore.dev/run": run,
            "longshore.dev/role": "worker",
        });
        let object = json!({
            "metadata": {
                "name": pod, "labels": labels,
                "annotations": {"batch.kubernetes.io/job-completion-index": "0", "longshore.dev/note": text},
            },
            "spec": {"containers": [{"name": "main", "image": text.replace('\0', " ").trim(), "args": [text],
                                     "env": [{"name": "A", "value": text}]}]},
        });
        pods.create(&object).await.unwrap();
        let ended = json!({
            "exitCode": 1, "reason": text, "message": text,
            "startedAt": "2027-01-15T08:00:00Z", "finishedAt": "2027-01-15T08:01:00Z",
        });
        let state = match number % 2 {
            0 => json!({"terminated": ended}),
            _ => json!({"waiting": {"reason": text, "message": text}}),
        };
        let status = json!({"status": {
            "phase": if number % 2 == 0 { "Failed" } else { "Pending" },
            "reason": text, "message": text,
            "conditions": [{"type": "Ready", "status": "False", "reason": "Odd", "message": text}],
            "containerStatuses": [{
                "name": "main", "image": "any", "imageID": text, "ready": false, "restartCount": 1,
                "state": state, "lastState": {"terminated": ended},
            }],
        }});
        pods.patch_status(&pod, &Patch::merge(status))
            .await
            .unwrap();
        let event = json!({
            "metadata": {"name": format!("{pod}.1")},
            "type": "Warning", "reason": text, "message": text, "count": 1,
            "source": {"component": text},
            "firstTimestamp": "2027-01-15T08:00:00Z", "lastTimestamp": "2027-01-15T08:00:00Z",
            "involvedObject": {"kind": "Pod", "name": pod, "namespace": "default"},
        });
        events.create(&event).await.unwrap();
    }
    let huge = "<b>".repeat(60_000);
    fixture.run("evil-huge", 1, "true").await;
    let job = fixture.jobs.fetch("evil-huge-worker").await.unwrap();
    let patch = json!({"metadata": {"annotations": {"longshore.dev/note": huge}}});
    job.patch(&Patch::merge(patch)).await.unwrap();

    let link = fixture.links.create();
    blocking(move || {
        let browser = Driver::start(1280, 800);
        browser.open(&link);
        let mut names: Vec<String> = (0..HOSTILE.len()).map(name).collect();
        names.push("evil-huge".to_owned());
        visit(&browser, &names);
        // The objects themselves.
        browser.script("location.href = document.body.dataset.base + 'objects'");
        browser.wait_text("table.objects", "evil-0");
        assert_only_text(&browser, "objects");
        for number in 0..HOSTILE.len() {
            let name = format!("evil-{number}-worker-0");
            let link = format!("object?kind=pods&namespace=default&name={name}");
            browser.script(&format!(
                "location.href = document.body.dataset.base + '{link}'"
            ));
            browser.wait(&format!("return location.href.endsWith('{name}')"));
            browser.wait_text("pre.yaml", "kind: Pod");
            assert_only_text(&browser, &link);
        }
        assert_eq!(browser.errors(), [""; 0]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Chromium: cargo xtask test --browser"]
async fn lines_of_tasks_are_texts() {
    let fixture = Fixture::start().await;
    let mut lines: Vec<String> = HOSTILE.map(str::to_owned).to_vec();
    lines.extend(HOSTILE.iter().map(|text| format!("{text}=0.5 loss={text}")));
    lines.push("https://evil.example/ http://127.0.0.1/'onclick='window.pwned=1".to_owned());
    lines.push("last".to_owned());
    let text = STANDARD.encode(lines.join("\n") + "\n");
    let long = "yes '<i>' | head -n 100000 | tr -d '\\n'; echo";
    let script = format!("{long}; echo {text} | base64 -d");
    fixture.run("evil-lines", 1, &script).await;
    let link = fixture.links.create();
    blocking(move || {
        let browser = Driver::start(1280, 800);
        browser.open(&link);
        browser.wait_text("table.runs", "evil-lines");
        browser.click("table.runs a");
        browser.wait_text("#log-state", "complete");
        browser.wait_text("#rows", "last");
        assert_only_text(&browser, "the end");
        // From the beginning, with searches of the texts.
        browser.script("document.getElementById('lines').focus()");
        browser.keys("\u{e011}");
        browser.wait_text("#rows", "<script>window.pwned=1</script>");
        assert_only_text(&browser, "the beginning");
        for text in HOSTILE {
            let text = serde_json::to_string(text).unwrap();
            browser.script(&format!(
                "const box = document.getElementById('search'); box.value = {text};
                 box.dispatchEvent(new Event('input'))"
            ));
            assert_only_text(&browser, &text);
        }
        browser.script("document.querySelectorAll('#rows a').forEach((link) => link.click())");
        assert_only_text(&browser, "links");
        assert_eq!(browser.errors(), [""; 0]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Chromium: cargo xtask test --browser"]
async fn parameters_and_their_values_are_texts() {
    let fixture = Fixture::without_node().await;
    fixture.sweep("evil-sweep", &HOSTILE, "true").await;
    let secrets = fixture.cluster.secrets().in_namespace("default").unwrap();
    let combinations: Vec<_> = HOSTILE
        .iter()
        .map(|text| json!([text, text, "1"]))
        .collect();
    let config = json!({
        "run": "evil-sweep",
        "roles": [{"name": "worker", "tasks": [], "env": {}}],
        "peer_timeout": 60,
        "bundle": null,
        "sweep": {"parameters": [HOSTILE[0], "__proto__", "constructor"], "combinations": combinations},
    });
    let data = STANDARD.encode(config.to_string());
    let patch = Patch::merge(json!({"data": {"run.json": data}}));
    secrets.patch("evil-sweep", &patch).await.unwrap();
    let link = fixture.links.create();
    blocking(move || {
        let browser = Driver::start(1280, 800);
        browser.open(&link);
        browser.wait_text("table.runs", "evil-sweep");
        browser.click("table.runs a");
        browser.keys("7");
        let rows = format!("return document.querySelectorAll('table.sweep tbody tr').length === {}", HOSTILE.len());
        browser.wait(&rows);
        assert_only_text(&browser, "the sweep");
        browser.script("document.querySelectorAll('table.sweep th button').forEach((button) => button.click())");
        assert_only_text(&browser, "sorted");
        browser.script("location.reload()");
        browser.wait_ready();
        assert_only_text(&browser, "again");
        assert_eq!(browser.errors(), [""; 0]);
    })
    .await;
}
