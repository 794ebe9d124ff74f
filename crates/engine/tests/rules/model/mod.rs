//! The engine against a plain sequential model. Several clients do random
//! operations at once; the revisions they were answered put them in one order,
//! in which the model must have answered the same. Watchers must have been
//! told exactly what happened; old states stay readable; what a killed process
//! had acknowledged is there when its store is opened again.
//!
//! `PROPTEST_CASES` sets how many worlds are tried.

#![allow(unreachable_pub)]

mod body;
mod client;
mod crash;
mod follower;
mod generate;
mod history;
mod kind;
mod operation;
mod plain;
mod thing;
mod watcher;

use std::time::Duration;

use longshore_engine::{Create, Engine, Error, ListRequest, Options, ReadVersion, Storage};
use proptest::prelude::*;
use tokio::{sync::watch, task::JoinHandle};

use crate::support;
use client::{Record, act};
use generate::any_call;
use history::History;
use kind::{Key, Kind, Via, known};
use operation::{Call, Operation, Scope};
use thing::{State, Thing};

/// All objects of the kinds in play.
fn read_state(engine: &Engine) -> State {
    let mut state = State::new();
    for kind in Kind::ALL {
        let page = match engine.list(&ListRequest::of(kind.info(Via::V1))) {
            Ok(page) => page,
            Err(Error::NotFound(_)) if kind == Kind::Shoe => continue,
            Err(error) => panic!("{error}"),
        };
        for object in page.items {
            let (key, mut thing) = known(kind, Via::V1, &object);
            if kind == Kind::Account {
                // Nothing of it is compared but that it is there.
                thing = Thing {
                    version: thing.version,
                    ..Thing::default()
                };
            }
            state.insert(key, thing);
        }
    }
    state
}

/// Makes the custom kind.
async fn define(engine: &Engine) {
    let create = Create {
        kind: Kind::Definition.info(Via::V1),
        namespace: None,
        object: thing::body(&Key::definition(), 0, 1, false),
        options: body::options(false),
    };
    engine.create(create).await.unwrap();
}

/// What tasks come to when all is over.
async fn ended<T>(tasks: Vec<JoinHandle<T>>) -> Vec<T> {
    let mut all = Vec::new();
    for task in tasks {
        let one = tokio::time::timeout(Duration::from_secs(60), task).await;
        all.push(one.expect("a watch hangs").unwrap());
    }
    all
}

/// Several clients at once, each with its calls; watchers as they come.
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
        if history.seen(history.end()) != last {
            return Err(format!("it ends in another state: {last:#?}"));
        }
        watched.iter().try_for_each(|one| one.check(history))?;
        followed.iter().try_for_each(|one| one.check(history))?;
        check_old_states(&engine, history)
    });
}

/// Every state there was can be listed, unless it is forgotten. Part of the
/// search for an order: two answers without a version can stand in either order,
/// and only the old states say which of them it was.
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
                ..body::request(&scope, Via::V1)
            };
            match engine.list(&request) {
                Ok(page) => {
                    let found: Vec<_> = page
                        .items
                        .iter()
                        .map(|object| known(kind, Via::V1, object))
                        .collect();
                    let expected = plain::list(history.state(revision), &scope);
                    if found != expected {
                        return Err(format!(
                            "revision {revision} lists {found:#?}, expected {expected:#?}"
                        ));
                    }
                }
                Err(Error::Expired { .. }) if history.may_forget(kind, revision, history.end()) => {
                }
                Err(error) => return Err(format!("revision {revision}: {error}")),
            }
        }
    }
    Ok(())
}

/// A world: what the clients do, whether the custom kind is there from the
/// start, how many events of each kind are kept, and up to which size the writer
/// does the work itself.
#[derive(Debug)]
struct World {
    clients: Vec<Vec<Call>>,
    defined: bool,
    kept: usize,
    light: usize,
}

fn run(world: World) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let options = Options {
        history: world.kept,
        light: world.light,
        ..support::options(Storage::Memory)
    };
    runtime.block_on(async {
        let engine = Engine::open(options).unwrap();
        if world.defined {
            define(&engine).await;
        }
        live(engine, world.kept, world.clients).await;
    });
}

fn world(most: usize, length: usize, kept: usize) -> impl Strategy<Value = World> {
    let calls = prop::collection::vec(any_call(), 1..length);
    let clients = prop::collection::vec(calls, 1..=most);
    (clients, prop::bool::weighted(0.7)).prop_map(move |(clients, defined)| World {
        clients,
        defined,
        kept,
        light: usize::MAX,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(96), ..ProptestConfig::default() })]

    /// One client: what fails here can be made small.
    #[test]
    fn one_client_sees_what_the_model_says(world in world(1, 60, 1000)) {
        run(world);
    }

    #[test]
    fn several_clients_see_one_order_of_things(world in world(5, 40, 1000)) {
        run(world);
    }

    /// All work is done beside the writer, and much of it more than once.
    #[test]
    fn work_beside_the_writer_makes_no_difference(mut world in world(1, 60, 1000)) {
        world.light = 0;
        run(world);
    }

    /// Some objects are large, and become so in between.
    #[test]
    fn work_on_both_sides_makes_no_difference(
        mut world in world(1, 60, 1000), light in 300..900_usize
    ) {
        world.light = light;
        run(world);
    }

    #[test]
    fn forgetting_the_past_ends_old_reads_and_nothing_else(
        mut world in world(3, 40, 1000), at in any::<prop::sample::Index>()
    ) {
        let first = &mut world.clients[0];
        let forget = Call { via: Via::V1, operation: Operation::Forget };
        first.insert(at.index(first.len()), forget);
        run(world);
    }

    #[test]
    fn a_short_history_makes_clients_list_again_and_loses_nothing(
        mut world in world(4, 40, 0), kept in 1..6_usize
    ) {
        world.kept = kept;
        run(world);
    }
}

/// The number of cases, as the environment asks for.
fn cases(default: u32) -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}
