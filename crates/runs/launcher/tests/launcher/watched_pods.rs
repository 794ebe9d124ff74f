//! The pods of a run, for a client that waits for their end.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::fake::{
    Answer, End, Fake, list,
    run::{ended, event, pod, run},
    status,
};
use futures::{SinkExt, StreamExt, channel::mpsc};
use longshore_launcher::runs::WatchedPods;
use serde_json::{Value, json};

fn running() -> Value {
    pod("main", "5", json!({"running": {}}), "Running")
}

fn lists(fake: &Fake) -> usize {
    let requests = fake.requests.lock().unwrap();
    let lists = requests.iter();
    lists
        .filter(|request| !request.query.contains("watch="))
        .count()
}

#[tokio::test]
async fn a_watch_reports_the_end_of_the_pods() {
    let (mut events, watched) = mpsc::channel(1);
    let watched = std::sync::Mutex::new(Some(watched));
    let fake = Fake::new(move |request| match request.query.contains("watch=") {
        true => match watched.lock().unwrap().take() {
            Some(events) => Answer::Live(events.map(Ok).boxed()),
            None => Answer::Stream(Vec::new(), End::StaysOpen),
        },
        false => list("Pod", "v1", vec![running()]),
    });
    let run = run(&[("main", 1, false)]);
    let mut pods = WatchedPods::start(&fake.cluster(), &run).await.unwrap();
    assert_eq!((pods.current().len(), pods.active()), (1, 1));
    let modified = event("MODIFIED", ended("main", 0));
    events.send(modified).await.unwrap();
    pods.all_ended().await.unwrap();
    assert_eq!((pods.current().len(), pods.active()), (1, 0));
    assert_eq!(lists(&fake), 1, "only the list before the watch");
}

#[tokio::test]
async fn without_permission_to_watch_the_pods_are_listed() {
    let number = AtomicUsize::new(0);
    let fake = Fake::new(move |request| match request.query.contains("watch=") {
        true => status(403, "Forbidden", "cannot watch pods"),
        false => match number.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => list("Pod", "v1", vec![running()]),
            _ => list("Pod", "v1", vec![ended("main", 1)]),
        },
    });
    let run = run(&[("main", 1, false)]);
    let mut pods = WatchedPods::start(&fake.cluster(), &run).await.unwrap();
    assert_eq!(pods.active(), 1);
    pods.all_ended().await.unwrap();
    assert_eq!((pods.current().len(), pods.active()), (1, 0));
}
