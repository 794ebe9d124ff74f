//! Cancel and remove.

use crate::fixture::Fixture;

#[tokio::test]
async fn an_active_run_is_cancelled_and_a_page_shows_it() {
    let fixture = Fixture::start().await;
    let browser = fixture.browser().await;
    fixture.run("long-x7k2p", 1, "sleep 1000").await;
    let page = "runs/default/long-x7k2p";
    browser.wait_for(page, "1 running").await;
    let answer = browser.post(&format!("{page}/cancel")).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    browser.wait_for(page, "s-cancelled").await;
    let answer = browser.post(&format!("{page}/cancel")).await;
    assert_eq!(answer.status, 409);
    assert!(answer.body.contains("already finished"), "{}", answer.body);
}

#[tokio::test]
async fn a_removed_run_is_reported_to_its_page() {
    let fixture = Fixture::without_node().await;
    let browser = fixture.browser().await;
    fixture.run("old-x7k2p", 1, "true").await;
    let page = "runs/default/old-x7k2p";
    browser.wait_for(page, "1 pending").await;
    let path = format!("{page}/events");
    let events = browser.events(&path, &["event: gone"]);
    let remove = async {
        let path = format!("{page}/remove");
        browser.post(&path).await
    };
    let (answer, events) = futures::join!(remove, events);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(events.contains("event: parts"), "{events}");
    assert_eq!(*fixture.removed.lock().unwrap(), ["old-x7k2p"]);
    assert_eq!(browser.get(page).await.status, 404);
    assert_eq!(browser.post(&format!("{page}/remove")).await.status, 404);
}
