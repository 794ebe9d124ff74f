//! A cluster that does not respond for a while.

use longshore_embedded::FaultRule;

use crate::fixture::Fixture;

#[tokio::test]
async fn pages_say_that_the_cluster_does_not_respond() {
    let fixture = Fixture::without_node().await;
    let browser = fixture.browser().await;
    browser.wait_for("", "connected").await;
    let rule = FaultRule::answer(500).verbs(["get"]).resource("jobs");
    fixture.embedded.faults().add(rule).unwrap();
    browser.events("events", &["no response since"]).await;
    let page = browser.get("").await;
    assert!(page.body.contains("no response since"), "{}", page.body);
    fixture.embedded.faults().clear();
    browser
        .events("events", &["no response since", "connected"])
        .await;
    // Changes are shown again.
    fixture.run("late-x7k2p", 1, "true").await;
    browser.wait_for("", "late-x7k2p").await;
}

#[tokio::test]
async fn a_page_can_be_opened_before_the_cluster_responds() {
    let embedded = longshore_embedded::start_server().await.unwrap();
    let rule = FaultRule::answer(500).resource("jobs");
    embedded.faults().add(rule).unwrap();
    let fixture = Fixture::on(embedded).await;
    let browser = fixture.browser().await;
    browser.wait_for("", "no response since").await;
    let page = browser.get("runs/default/some-x7k2p").await;
    assert_eq!(page.status, 503);
    assert!(
        page.body.contains("has not listed its runs yet"),
        "{}",
        page.body
    );
    let events = browser.events("events", &["no response since", "connected"]);
    let clear = async { fixture.embedded.faults().clear() };
    futures::join!(events, clear);
    fixture.run("first-x7k2p", 1, "true").await;
    browser.wait_for("", "first-x7k2p").await;
}
