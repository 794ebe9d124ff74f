//! The page as a user sees and operates it.

use serde_json::json;

use crate::{driver::Driver, fixture::Fixture};

/// Runs a blocking part of a test while the page is served.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Chromium: cargo xtask test --browser"]
async fn a_run_is_followed_from_the_list_to_its_lines() {
    let fixture = Fixture::start().await;
    let script = r"printf 'hello \033[31mred\033[0m\n'; echo '<b>bold</b>'; echo done";
    fixture.run("digits-x7k2p", 3, script).await;
    let link = fixture.links.create();
    blocking(move || {
        let browser = Driver::start(1280, 800);
        browser.open(&link);
        browser.wait_text("table.runs", "digits-x7k2p");
        browser.wait_text("table.runs", "succeeded");
        browser.picture("list-light");
        // Moves in the list with keys: the next run, and Enter.
        browser.keys("j");
        browser.wait("return document.activeElement.textContent === 'digits-x7k2p'");
        browser.keys("\u{e007}");
        browser.wait_text("#count", "9 lines");
        browser.wait_text("#log-state", "complete");
        assert_eq!(browser.count(".grid .cell.s-succeeded"), 3);
        // Colours are elements, and the text of tasks is text.
        assert_eq!(browser.count("#rows .fg1"), 3);
        assert_eq!(browser.count("#rows b"), 0);
        assert!(browser.text("#rows").contains("<b>bold</b>"));

        browser.keys("/hel");
        browser.wait_text("#matches", "3 matches");
        assert_eq!(browser.count("#rows mark"), 3);
        browser.click("#only");
        browser.wait_text("#count", "3 of 9 lines");
        // Escape leaves the input.
        browser.keys("\u{e00c}");
        browser.click(".cell[data-task='worker/1']");
        browser.wait_text("#count", "1 of 9 lines");
        assert_eq!(browser.count(".cell[aria-pressed=true]"), 1);
        browser.keys("\u{e00c}");
        browser.wait_text("#count", "3 of 9 lines");

        browser.keys("2");
        browser.wait("return document.querySelectorAll('#timeline tr').length === 3");
        browser.keys("6");
        browser.wait_text("#panel-objects", "digits-x7k2p-worker");
        browser.click("#panel-objects details summary");
        browser.wait_text("#panel-objects pre", "completionMode: Indexed");
        browser.keys("?");
        browser.wait("return document.getElementById('help').open");
        browser.keys("\u{e00c}");
        assert_eq!(browser.errors(), [""; 0]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Chromium: cargo xtask test --browser"]
async fn a_run_is_cancelled_and_removed() {
    let fixture = Fixture::start().await;
    fixture
        .run("long-x7k2p", 2, "echo started; sleep 1000")
        .await;
    let link = fixture.links.create();
    let removed = fixture.removed.clone();
    blocking(move || {
        let browser = Driver::start(1280, 800);
        browser.open(&link);
        browser.wait_text("table.runs", "running");
        browser.click("table.runs a");
        browser.wait_text("#rows", "started");
        browser.wait_text(".counts", "2 running");
        browser.click("[data-action=cancel]");
        browser.wait("return document.getElementById('confirm').open");
        // The harmless button has the focus.
        browser.wait("return document.activeElement.id === 'confirm-no'");
        browser.picture("confirm");
        browser.click("#confirm-yes");
        browser.wait_text(".title .badge", "cancelled");
        assert_eq!(browser.count("[data-action=cancel]"), 0);
        browser.click("[data-action=remove]");
        browser.click("#confirm-yes");
        browser.wait_text("#lost", "was removed");
        browser.keys("r");
        browser.wait_text("#runs", "No runs");
        assert_eq!(browser.errors(), [""; 0]);
    })
    .await;
    assert_eq!(*removed.lock().unwrap(), ["long-x7k2p"]);
}

/// The longest time between two frames, while a script counts them.
const COUNT_FRAMES: &str = "
    window.longest = 0;
    let last = performance.now();
    (function frame() {
        const now = performance.now();
        window.longest = Math.max(window.longest, now - last);
        last = now;
        requestAnimationFrame(frame);
    })();";

/// Script that returns true if the first element is at the top of the box.
const FIRST_LINE_IS_VISIBLE: &str = "
    const box = document.getElementById('lines').getBoundingClientRect();
    const line = document.querySelector('#rows .line').getBoundingClientRect();
    return Math.abs(line.top - box.top) < 20;";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Chromium: cargo xtask test --browser"]
async fn many_lines_do_not_block_the_page() {
    let fixture = Fixture::start().await;
    fixture.run("lines-x7k2p", 1, "seq 400000").await;
    let link = fixture.links.create();
    let page = fixture.browser().await;
    page.wait_for("runs/default/lines-x7k2p", "1 succeeded")
        .await;
    blocking(move || {
        let browser = Driver::start(1280, 800);
        browser.open(&link);
        browser.wait_text("table.runs", "lines-x7k2p");
        browser.click("table.runs a");
        browser.wait("return document.getElementById('lines') !== null");
        browser.script(COUNT_FRAMES);
        browser.wait_text("#log-state", "complete");
        browser.wait_text("#count", "400,000 lines");
        assert!(browser.count("#rows .line") < 100);
        browser.wait("return document.querySelector('#rows').textContent.includes('400000')");
        browser.script("document.getElementById('search').focus()");
        browser.keys("39999");
        browser.wait_text("#matches", "14 matches");
        let longest = browser.script("return window.longest").as_f64().unwrap();
        assert!(longest < 2000.0, "{longest} ms between two frames");
        // From the end to the beginning, and back.
        browser.script("document.getElementById('lines').focus()");
        browser.keys("\u{e011}");
        browser.wait("return !document.getElementById('follow').checked");
        browser.wait("return !document.querySelector('#rows').textContent.includes('400000')");
        browser.wait(FIRST_LINE_IS_VISIBLE);
        browser.keys("\u{e010}");
        browser.wait("return document.getElementById('follow').checked");
        browser.wait("return document.querySelector('#rows').textContent.includes('400000')");
        assert_eq!(browser.errors(), [""; 0]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Chromium: cargo xtask test --browser"]
async fn pages_fit_into_small_windows_and_have_two_themes() {
    let fixture = Fixture::without_node().await;
    fixture
        .run(
            "broad-x7k2p",
            200,
            "python3 train.py --epochs 30 --learning-rate 0.001",
        )
        .await;
    let pods = fixture.cluster.pods().in_namespace("default").unwrap();
    for index in 0..200 {
        let labels = json!({
            "app.kubernetes.io/managed-by": "longshore",
            "longshore.dev/run": "broad-x7k2p",
            "longshore.dev/role": "worker",
            "batch.kubernetes.io/job-completion-index": index.to_string(),
        });
        let containers = json!([{"name": "main", "image": "any"}]);
        let pod = json!({
            "metadata": {"name": format!("broad-x7k2p-worker-{index}"), "labels": labels},
            "spec": {"containers": containers},
        });
        pods.create(&pod).await.unwrap();
    }
    let link = fixture.links.create();
    blocking(move || {
        let browser = Driver::start(1280, 800);
        browser.open(&link);
        browser.wait_text("table.runs", "broad-x7k2p");
        browser.click("table.runs a");
        browser.wait_text(".counts", "200 pending");
        let fits = "return document.documentElement.scrollWidth <= window.innerWidth";
        for (width, height) in [(1280, 800), (400, 800)] {
            browser.size(width, height);
            browser.wait(fits);
            for theme in ["light", "dark"] {
                browser.theme(theme);
                browser.picture(&format!("tasks-{width}-{theme}"));
            }
        }
        let colour = "return getComputedStyle(document.body).backgroundColor";
        let dark = browser.script(colour);
        browser.theme("light");
        assert_ne!(dark, browser.script(colour));
        assert_eq!(browser.errors(), [""; 0]);
    })
    .await;
}

/// Adds 1.2 million lines to the store of a tab, searches in them, and returns the state of the
/// store.
const MILLION: &str = "
    const base = document.body.dataset.base;
    const { Lines } = await import(base + 'assets/lines.js');
    const { Search, matcher } = await import(base + 'assets/search.js');
    const lines = new Lines();
    for (let chunk = 0; chunk < 1200; chunk++) {
        const first = chunk * 1000;
        const made = Array.from({ length: 1000 }, (_, n) => [0, null, `line ${first + n}`, false]);
        lines.add({ first, tasks: ['worker/0'], lines: made });
    }
    const search = new Search(lines);
    search.regex = matcher('99999', false);
    search.isOnly = true;
    let longest = 0;
    while (!search.isDone) {
        const begin = performance.now();
        search.step();
        longest = Math.max(longest, performance.now() - begin);
    }
    const shown = search.shown.map((number) => lines.get(number).text);
    return {
        dropped: lines.dropped, length: lines.length, longest,
        first: lines.get(lines.first).text, last: lines.get(lines.next - 1).text,
        before: lines.get(lines.first - 1), after: lines.get(lines.next), shown,
    };";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Chromium: cargo xtask test --browser"]
async fn a_tab_keeps_a_million_lines_and_searches_them_in_steps() {
    let fixture = Fixture::without_node().await;
    let link = fixture.links.create();
    blocking(move || {
        let browser = Driver::start(800, 600);
        browser.open(&link);
        browser.wait_text("#runs", "No runs");
        let found = browser.script(&format!("return (async () => {{ {MILLION} }})()"));
        assert_eq!(found["dropped"], 200_000);
        assert_eq!(found["length"], 1_000_000);
        assert_eq!(found["first"], "line 200000");
        assert_eq!(found["last"], "line 1199999");
        assert_eq!(
            (&found["before"], &found["after"]),
            (&json!(null), &json!(null))
        );
        let shown = found["shown"].as_array().unwrap();
        assert_eq!(shown.len(), 19, "{shown:?}");
        assert!(shown.contains(&json!("line 999990")), "{shown:?}");
        assert!(found["longest"].as_f64().unwrap() < 500.0, "{found}");
        assert_eq!(browser.errors(), [""; 0]);
    })
    .await;
}
