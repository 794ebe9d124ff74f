//! The engine against a plain sequential model. Several clients do random
//! operations at once; the revisions they were answered put them in one order,
//! in which the model must have answered the same. Watchers must have been
//! told exactly what happened; old states stay readable; what a killed process
//! had acknowledged is there when its store is opened again.
//!
//! `PROPTEST_CASES` sets how many worlds are tried.

#![allow(unreachable_pub)]

mod client;
mod crash;
mod history;
mod operation;
mod plain;
mod thing;
mod watcher;

use std::time::Duration;

use longshore_engine::{Engine, Error, ListRequest, Options, ReadVersion, Storage};
use proptest::prelude::*;
use tokio::sync::watch;

use crate::support;
use client::{Record, act};
use history::History;
use operation::{Operation, Scope, any_operation};
use thing::{Key, Kind, State, Thing};

const KINDS: [Kind; 5] = [
    Kind::ConfigMap,
    Kind::Pod,
    Kind::Job,
    Kind::Namespace,
    Kind::Account,
];

/// All objects of the kinds in play.
fn read_state(engine: &Engine) -> State {
    KINDS
        .into_iter()
        .flat_map(|kind| {
            let page = engine.list(&ListRequest::of(kind.info())).unwrap();
            page.items.into_iter().map(move |object| {
                let mut thing = Thing::of(kind, &object);
                if kind == Kind::Account {
                    // Nothing of it is compared but that it is there.
                    thing = Thing {
                        version: thing.version,
                        ..Thing::default()
                    };
                }
                (Key::of(kind, &object), thing)
            })
        })
        .collect()
}

/// Several clients at once, each with its operations; watchers as they come.
async fn live(engine: Engine, clients: Vec<Vec<Operation>>) {
    let (start, first) = (engine.revision(), read_state(&engine));
    let over = watch::Sender::new(false);
    let tasks: Vec<_> = clients
        .into_iter()
        .map(|operations| {
            let (engine, over) = (engine.clone(), over.subscribe());
            tokio::spawn(async move {
                let (mut records, mut watchers) = (Vec::new(), Vec::new());
                for operation in operations {
                    watchers.extend(watcher::start(&engine, &operation, over.clone()));
                    records.push(act(&engine, operation).await);
                }
                (records, watchers)
            })
        })
        .collect();
    let (mut records, mut watchers) = (Vec::<Record>::new(), Vec::new());
    for task in tasks {
        let (some, more) = task.await.unwrap();
        records.extend(some);
        watchers.extend(more);
    }
    over.send_replace(true);
    let mut watched = Vec::new();
    for watcher in watchers {
        let told = tokio::time::timeout(Duration::from_secs(60), watcher).await;
        watched.push(told.expect("a watch hangs").unwrap());
    }
    let last = read_state(&engine);
    let history = History::linearise(start, first, engine.revision(), &records, &|history| {
        if history.states.last() != Some(&last) {
            return Err(format!("it ends in another state: {last:#?}"));
        }
        watched
            .iter()
            .try_for_each(|watched| watched.check(history))
    });
    check_old_states(&engine, &history);
}

/// Every state there was can be listed, unless it is forgotten.
fn check_old_states(engine: &Engine, history: &History) {
    for revision in (history.start..=history.end()).step_by(3) {
        for kind in [Kind::ConfigMap, Kind::Pod] {
            let scope = Scope {
                kind,
                namespace: None,
                selector: 0,
            };
            let request = ListRequest {
                version: ReadVersion::Exact(revision),
                ..client::request(&scope)
            };
            match engine.list(&request) {
                Ok(page) => {
                    let found: Vec<_> = page
                        .items
                        .iter()
                        .map(|object| (Key::of(kind, object), Thing::of(kind, object)))
                        .collect();
                    assert_eq!(
                        found,
                        plain::list(history.state(revision), &scope),
                        "revision {revision}"
                    );
                }
                Err(Error::Expired { .. }) => assert!(
                    revision < history.forgotten,
                    "revision {revision} is forgotten"
                ),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn run(clients: Vec<Vec<Operation>>, history: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let options = Options {
        history,
        ..support::options(Storage::Memory)
    };
    runtime.block_on(live(Engine::open(options).unwrap(), clients));
}

fn clients(most: usize, length: usize) -> impl Strategy<Value = Vec<Vec<Operation>>> {
    prop::collection::vec(prop::collection::vec(any_operation(), 1..length), 1..=most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(96), ..ProptestConfig::default() })]

    /// One client: what fails here can be made small.
    #[test]
    fn one_client_sees_what_the_model_says(clients in clients(1, 60)) {
        run(clients, 1000);
    }

    #[test]
    fn several_clients_see_one_order_of_things(clients in clients(5, 40)) {
        run(clients, 1000);
    }

    #[test]
    fn forgetting_the_past_ends_old_reads_and_nothing_else(
        mut clients in clients(3, 40), at in any::<prop::sample::Index>()
    ) {
        let first = &mut clients[0];
        first.insert(at.index(first.len()), Operation::Forget);
        run(clients, 1000);
    }
}

/// The number of cases, as the environment asks for.
fn cases(default: u32) -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}
