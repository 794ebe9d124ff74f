//! Charts, sweeps, filters and the objects of the cluster, as a user sees them.

use serde_json::json;

use crate::{driver::Driver, fixture::Fixture, pages::blocking};

const FITS: &str = "return document.documentElement.scrollWidth <= window.innerWidth";

/// Script that returns true if no range is selected.
const ALL: &str = "return document.getElementById('combinations').textContent === '4 combinations'";

/// Takes pictures of a page in two sizes and themes, and checks that it fits.
fn pictures(browser: &Driver, name: &str) {
    for (width, height) in [(1280, 1100), (400, 900)] {
        browser.size(width, height);
        browser.wait(FITS);
        for theme in ["light", "dark"] {
            browser.theme(theme);
            browser.picture(&format!("{name}-{width}-{theme}"));
        }
    }
    browser.theme("light");
    browser.size(1280, 1100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Chromium: cargo xtask test --browser"]
async fn usage_is_drawn_and_refreshed() {
    let fixture = Fixture::without_node().await;
    fixture.run("busy-x7k2p", 20, "true").await;
    fixture.ended_pods("busy-x7k2p", 20).await;
    let link = fixture.links.create();
    blocking(move || {
        let browser = Driver::start(1280, 1100);
        browser.open(&link);
        browser.wait_text("table.runs", "busy-x7k2p");
        browser.click("table.runs a");
        browser.keys("3");
        browser.wait("return document.querySelectorAll('table.usage tbody tr').length === 20");
        // CPU and memory, each summed and per task.
        assert_eq!(browser.count("figure.usage svg"), 4);
        assert_eq!(browser.count("figure.usage path.task"), 24);
        assert!(
            browser
                .text("#usage")
                .contains("8 more are only in the chart of all tasks")
        );
        let drawn = "return document.querySelector('path.sum').getBoundingClientRect().width > 100";
        browser.wait(drawn);
        pictures(&browser, "usage");
        // Another tab ends the queries, and the page stays connected.
        browser.keys("1");
        browser.wait("return !document.getElementById('panel-logs').hidden");
        browser.wait_text("#status", "connected");
        assert_eq!(browser.errors(), [""; 0]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Chromium: cargo xtask test --browser"]
async fn a_sweep_is_sorted_selected_and_run_again() {
    let fixture = Fixture::start().await;
    let script = r#"
        case $JOB_COMPLETION_INDEX in 0) echo loss=3;; 1) echo loss=1;; 2) echo loss=2;; esac
        test "$JOB_COMPLETION_INDEX" != 3"#;
    let values = ["0.1", "0.2", "0.3", "0.4"];
    fixture.sweep("grid-x7k2p", &values, script).await;
    let link = fixture.links.create();
    blocking(move || {
        let browser = Driver::start(1280, 1100);
        browser.open(&link);
        browser.wait_text("table.runs", "failed");
        browser.click("table.runs a");
        browser.keys("7");
        browser.wait("return document.querySelectorAll('table.sweep tbody tr').length === 4");
        browser.wait_text("td.best", "1");
        assert_eq!(browser.count("g.axis"), 2);
        let first = |column: &str| {
            let cell = format!("table.sweep tbody tr:not([hidden]) {column}");
            browser.text(&cell)
        };
        assert_eq!(first("td:nth-child(2)"), "0.1");
        browser.click("th[data-key=m0] button");
        browser.wait_text("table.sweep tbody tr td:nth-child(2)", "0.2");
        browser.click("th[data-key=m0] button");
        browser.wait("return document.querySelector('th[data-key=m0]').ariaSort === 'descending'");
        assert_eq!(first("td:nth-child(2)"), "0.1");
        // The order and the colours survive the next update.
        browser.keys("1");
        browser.script("document.querySelector('th[data-key=p0]').dataset.key = 'other'");
        browser.keys("7");
        browser.wait("return document.querySelector('th[data-key=p0]') !== null");
        assert_eq!(first("td:nth-child(2)"), "0.1");

        pictures(&browser, "sweep");
        // Selects a range with keys: the upper half of the parameter, then its size.
        browser.script("document.querySelector('g.axis .brush').focus()");
        browser.keys("\u{e013}");
        browser.wait_text("#combinations", "2 of 4 combinations");
        assert_eq!(browser.count("g.lines path.out"), 2);
        assert_eq!(browser.count("table.sweep tbody tr[hidden]"), 2);
        browser.picture("sweep-range");
        browser.keys("\u{e00c}");
        browser.wait(ALL);
        browser.drag("g.axis .brush", 0.2, 0.75);
        browser.wait_text("#combinations", "2 of 4 combinations");
        browser.click("#sweep-clear");
        browser.wait(ALL);
        // Focus highlights the line of a row, and its index leads to its lines.
        browser.script("document.querySelector('tr[data-key=\"1\"] button').focus()");
        browser.wait("return document.querySelector('#plot path.hot')?.dataset.key === '1'");
        browser.keys("\u{e007}");
        browser.wait_text("#rows", "loss=1");
        browser.wait("return document.querySelector('.cell[data-task=\"worker/1\"]').ariaPressed === 'true'");

        browser.click("[data-action=retry]");
        browser.wait("return document.activeElement.id === 'confirm-no'");
        browser.picture("retry");
        browser.click("#confirm-yes");
        browser.wait("return !location.pathname.includes('grid-x7k2p') && location.pathname.includes('/runs/')");
        browser.wait_text(".counts", "1 ");
        assert_eq!(browser.errors(), [""; 0]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Chromium: cargo xtask test --browser"]
async fn runs_are_filtered_and_objects_are_browsed() {
    let fixture = Fixture::without_node().await;
    fixture.run("digits-x7k2p", 1, "true").await;
    fixture.run("letters-x7k2p", 1, "true").await;
    let tagged = fixture.jobs.fetch("digits-x7k2p-worker").await.unwrap();
    let patch = json!({"metadata": {
        "labels": {"tag.longshore.dev/lr": "0.1", "tag.longshore.dev/team": ""},
        "annotations": {"longshore.dev/note": "the <i>baseline</i>"},
    }});
    tagged
        .patch(&longshore_client::Patch::merge(patch))
        .await
        .unwrap();
    let pods = fixture.cluster.pods().in_namespace("default").unwrap();
    let spec = json!({"containers": [{"name": "main", "image": "any"}]});
    let pod = json!({"metadata": {"name": "web"}, "spec": spec});
    pods.create(&pod).await.unwrap();
    let link = fixture.links.create();
    blocking(move || {
        let browser = Driver::start(1280, 1100);
        browser.open(&link);
        browser.wait_text("table.runs", "lr=0.1");
        browser.wait_text("table.runs .note", "the <i>baseline</i>");
        assert_eq!(browser.count("table.runs i"), 0);
        browser.wait_ready();
        let shown = "table.runs tbody tr:not([hidden])";
        for (terms, count) in [
            ("state:pending", 2),
            ("!state:pending", 0),
            ("tag:lr=0.*", 1),
            ("name:let*", 1),
            ("note:base name:let*", 0),
            ("x7k2p", 2),
        ] {
            let script = format!(
                "const box = document.getElementById('filter'); box.value = {terms:?};
                 box.dispatchEvent(new Event('input'))"
            );
            browser.script(&script);
            assert_eq!(browser.count(shown), count, "{terms}");
        }
        pictures(&browser, "list");
        browser.click("header a[href$='/objects']");
        browser.wait_text("table.objects", "web");
        pictures(&browser, "objects");
        browser.click("table.objects a[href*='name=web']");
        browser.wait_text("pre.yaml", "kind: Pod");
        browser.wait_text("main", "No events.");
        pictures(&browser, "object");
        assert_eq!(browser.errors(), [""; 0]);
    })
    .await;
}
