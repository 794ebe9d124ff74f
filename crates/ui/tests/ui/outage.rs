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
