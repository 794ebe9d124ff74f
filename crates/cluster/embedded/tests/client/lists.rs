//! Lists of several pages, whose snapshot expires on the server.

use std::{collections::BTreeSet, pin::pin};

use futures::{StreamExt, TryStreamExt};
use longshore_client::{DeleteOptions, Expired, Paging};
use longshore_embedded::start_server;

use crate::common::{map, maps};

const COUNT: usize = 300;

fn name(number: usize) -> String {
    format!("map-{number:03}")
}

fn paging(expired: Expired) -> Paging {
    let mut paging = Paging::default();
    (paging.limit, paging.expired) = (20, expired);
    paging
}

#[tokio::test]
async fn an_expired_snapshot_loses_and_doubles_no_object() {
    let embedded = start_server().await.unwrap();
    let view = maps(&embedded.cluster());
    for number in 0..COUNT {
        view.create(&map(&name(number), number)).await.unwrap();
    }
    let mut items = pin!(view.stream_by(paging(Expired::Resume)));
    let mut seen = Vec::new();
    let mut pauses = 0;
    while let Some(item) = items.try_next().await.unwrap() {
        seen.push(item.name().to_owned());
        // Three long pauses, with changes before and after the current position.
        if seen.len() % 80 == 0 {
            pauses += 1;
            let gone = name(seen.len() - 5);
            view.delete(&gone, &DeleteOptions::default()).await.unwrap();
            view.delete(&name(COUNT - pauses), &DeleteOptions::default())
                .await
                .unwrap();
            view.create(&map(&format!("map-{:03}-new", COUNT - 10 - pauses), 0))
                .await
                .unwrap();
            embedded.expire_history().await;
        }
    }
    assert_eq!(pauses, 3);
    let once: BTreeSet<&String> = seen.iter().collect();
    assert_eq!(once.len(), seen.len(), "an object was returned twice");
    // Objects that existed all the time were returned. Deleted ones were returned before
    // their deletion or are missing. New ones after the current position were returned.
    for number in 0..COUNT - pauses {
        assert!(once.contains(&name(number)), "{}", name(number));
    }
    for pause in 1..=pauses {
        let new = format!("map-{:03}-new", COUNT - 10 - pause);
        assert!(once.contains(&new), "{new}");
        assert!(!once.contains(&name(COUNT - pause)));
    }
    embedded.stop().await;
}

#[tokio::test]
async fn a_consistent_list_reports_an_expired_snapshot() {
    let embedded = start_server().await.unwrap();
    let view = maps(&embedded.cluster());
    for number in 0..COUNT {
        view.create(&map(&name(number), number)).await.unwrap();
    }
    let mut items = pin!(view.stream_by(paging(Expired::Fail)));
    let first = items.try_next().await.unwrap().unwrap();
    assert_eq!(first.name(), name(0));
    view.delete(&name(200), &DeleteOptions::default())
        .await
        .unwrap();
    embedded.expire_history().await;
    let rest: Vec<_> = items.collect().await;
    let (last, good) = rest.split_last().unwrap();
    assert!(last.as_ref().unwrap_err().is_expired());
    assert!(good.iter().all(Result::is_ok) && good.len() < COUNT - 1);
    embedded.stop().await;
}

#[tokio::test]
async fn without_a_pause_the_pages_are_a_consistent_snapshot() {
    let embedded = start_server().await.unwrap();
    let view = maps(&embedded.cluster());
    for number in 0..50 {
        view.create(&map(&name(number), number)).await.unwrap();
    }
    let mut items = pin!(view.stream_by(paging(Expired::Fail)));
    items.try_next().await.unwrap().unwrap();
    for number in 0..50 {
        view.delete(&name(number), &DeleteOptions::default())
            .await
            .unwrap();
    }
    let rest: Vec<_> = items.try_collect().await.unwrap();
    assert_eq!(rest.len(), 49);
    let now = view.from_cache().list().await.unwrap();
    assert!(now.items.is_empty());
    embedded.stop().await;
}
