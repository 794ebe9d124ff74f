//! Tests the engine against a plain sequential model. Several clients perform random operations
//! concurrently. The revisions in their responses determine one order, in which the model must
//! produce the same responses. Watchers must have received exactly the events of that order, and
//! old states must stay readable. When the store of a killed process is opened again, it must
//! contain every acknowledged write.
//!
//! `PROPTEST_CASES` sets the number of scenarios.

#![allow(unreachable_pub)]

mod body;
mod client;
mod crash;
mod follower;
mod generate;
mod history;
mod kind;
mod model_object;
mod operation;
mod plain;
mod watcher;

use std::time::Duration;

use longshore_engine::{Create, Engine, Error, ListRequest, Options, ReadVersion, Storage};
use proptest::prelude::*;
use tokio::{sync::watch, task::JoinHandle};

use crate::support;
use client::{Record, act};
use generate::any_call;
use history::History;
use kind::{ApiVersion, Key, Kind, known};
use model_object::{ModelObject, State};
use operation::{Call, Operation, Scope};

/// All objects of the model's kinds.
fn read_state(engine: &Engine) -> State {
    let mut state = State::new();
    for kind in Kind::ALL {
        let page = match engine.list(&ListRequest::of(kind.info(ApiVersion::V1))) {
            Ok(page) => page,
            Err(Error::NotFound(_)) if kind == Kind::Shoe => continue,
            Err(error) => panic!("{error}"),
        };
        for object in page.items {
            let (key, mut model_object) = known(kind, ApiVersion::V1, &object);
            if kind == Kind::Account {
                // Only the existence of accounts is compared.
                model_object = ModelObject {
                    version: model_object.version,
                    ..ModelObject::default()
                };
            }
            state.insert(key, model_object);
        }
    }
    state
}

/// Creates the custom kind.
async fn define(engine: &Engine) {
    let create = Create {
        kind: Kind::Definition.info(ApiVersion::V1),
        namespace: None,
        object: model_object::body(&Key::definition(), 0, 1, false),
        options: body::options(false),
    };
    engine.create(create).await.unwrap();
}

/// The results of tasks when everything is done.
async fn ended<T>(tasks: Vec<JoinHandle<T>>) -> Vec<T> {
    let mut all = Vec::new();
    for task in tasks {
        let one = tokio::time::timeout(Duration::from_secs(60), task).await;
        all.push(one.expect("a watch hangs").unwrap());
    }
    all
}

/// Runs several clients concurrently, each with its calls, and the watchers that they
/// start.
async fn live(engine: Engine, kept: usize, clients: Vec<Vec<Call>>) {
    let first = (engine.revision(), read_state(&engine));
    let over = watch::Sender::new(false);
    let tasks: Vec<_> = clients
        .into_iter()
        .map(|calls| {
            let (engine, over) = (engine.clone(), over.subscribe());
            tokio::spawn(async move {
                let (mut records, mut watchers) = (Vec::new(), Vec::new());
                let mut followers = Vec::new();
                for call in calls {
                    watchers.extend(watcher::start(&engine, &call, over.clone()));
                    followers.extend(follower::start(&engine, &call, over.clone()));
                    records.push(act(&engine, call).await);
                }
                (records, watchers, followers)
            })
        })
        .collect();
    let (mut records, mut watchers) = (Vec::<Record>::new(), Vec::new());
    let mut followers = Vec::new();
    for task in tasks {
        let (some, watching, following) = task.await.unwrap();
        records.extend(some);
        watchers.extend(watching);
        followers.extend(following);
    }
    over.send_replace(true);
    let watched = ended(watchers).await;
    let followed = ended(followers).await;
    let last = read_state(&engine);
    History::linearise(first, engine.revision(), kept, &records, &|history| {
        if history.visible_state(history.end()) != last {
            return Err(format!("it ends in another state: {last:#?}"));
        }
        watched.iter().try_for_each(|one| one.check(history))?;
        followed.iter().try_for_each(|one| one.check(history))?;
        check_old_states(&engine, history)
    });
}

/// Checks that every state that existed can be listed, unless it has expired. This is part of the
/// search for an order: two responses without a version can be in either order, and only the old
/// states determine which.
fn check_old_states(engine: &Engine, history: &History) -> Result<(), String> {
    for revision in (history.start..=history.end()).step_by(3) {
        for kind in [Kind::ConfigMap, Kind::Pod] {
            let scope = Scope {
                kind,
                namespace: None,
                selector: 0,
            };
            let request = ListRequest {
                version: ReadVersion::Exact(revision),
                ..body::request(&scope, ApiVersion::V1)
            };
            match engine.list(&request) {
                Ok(page) => {
                    let found: Vec<_> = page
                        .items
                        .iter()
                        .map(|object| known(kind, ApiVersion::V1, object))
                        .collect();
                    let expected = plain::list(history.state(revision), &scope);
                    if found != expected {
                        return Err(format!(
                            "revision {revision} lists {found:#?}, expected {expected:#?}"
                        ));
                    }
                }
                Err(Error::Expired { .. }) if history.may_expire(kind, revision, history.end()) => {
                }
                Err(error) => return Err(format!("revision {revision}: {error}")),
            }
        }
    }
    Ok(())
}

/// A scenario: the operations of the clients, a flag that is set if the custom kind exists from the
/// start, the number of events of each kind that are kept, and the size up to which the writer
/// executes writes in its own turn.
#[derive(Debug)]
struct Scenario {
    clients: Vec<Vec<Call>>,
    defined: bool,
    kept: usize,
    inline_limit: usize,
}

fn run(scenario: Scenario) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let options = Options {
        history: scenario.kept,
        inline_limit: scenario.inline_limit,
        ..support::options(Storage::Memory)
    };
    runtime.block_on(async {
        let engine = Engine::open(options).unwrap();
        if scenario.defined {
            define(&engine).await;
        }
        live(engine, scenario.kept, scenario.clients).await;
    });
}

fn scenario(most: usize, length: usize, kept: usize) -> impl Strategy<Value = Scenario> {
    let calls = prop::collection::vec(any_call(), 1..length);
    let clients = prop::collection::vec(calls, 1..=most);
    (clients, prop::bool::weighted(0.7)).prop_map(move |(clients, defined)| Scenario {
        clients,
        defined,
        kept,
        inline_limit: usize::MAX,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(96), ..ProptestConfig::default() })]

    /// With a single client, failures shrink well.
    #[test]
    fn one_client_gets_the_responses_of_the_model(scenario in scenario(1, 60, 1000)) {
        run(scenario);
    }

    #[test]
    fn several_clients_see_one_order_of_operations(scenario in scenario(5, 40, 1000)) {
        run(scenario);
    }

    /// All work is done outside the writer's turn, and much of it more than once.
    #[test]
    fn work_outside_the_writers_turn_makes_no_difference(mut scenario in scenario(1, 60, 1000)) {
        scenario.inline_limit = 0;
        run(scenario);
    }

    /// Some objects are large, or become large.
    #[test]
    fn work_in_and_outside_the_writers_turn_makes_no_difference(
        mut scenario in scenario(1, 60, 1000), inline_limit in 300..900_usize
    ) {
        scenario.inline_limit = inline_limit;
        run(scenario);
    }

    #[test]
    fn trimming_the_history_only_ends_old_reads(
        mut scenario in scenario(3, 40, 1000), at in any::<prop::sample::Index>()
    ) {
        let first = &mut scenario.clients[0];
        let expire = Call { api_version: ApiVersion::V1, operation: Operation::ExpireHistory };
        first.insert(at.index(first.len()), expire);
        run(scenario);
    }

    #[test]
    fn a_short_history_makes_clients_list_again_without_losing_events(
        mut scenario in scenario(4, 40, 0), kept in 1..6_usize
    ) {
        scenario.kept = kept;
        run(scenario);
    }
}

/// The number of cases, from the environment.
fn cases(default: u32) -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}
