//! A killed process: its store has every acknowledged write and no partial write, and its
//! history has expired.

mod child;
mod replay;

use std::{collections::BTreeMap, path::Path, time::Duration};

use longshore_engine::{Engine, Error, Options, Storage, WatchRequest, WatchStart};

use super::{
    cases,
    client::{Outcome, Record, act},
    define,
    kind::{ApiVersion, Key, Kind},
    model_object::State,
    operation::{Call, Operation},
    read_state,
};
use crate::support;
use child::{CLIENTS, Line, calls, killed};
use replay::replay;

fn open(path: &Path) -> Engine {
    let options = Options {
        ids: std::sync::Arc::new(longshore_engine::RandomIds),
        ..support::options(Storage::File(path.to_owned()))
    };
    Engine::open(options).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
}

/// The completed operations of a killed process, the operation that each client had
/// started, and the newest revision that any client saw.
fn completed(round: u64, lines: Vec<Line>) -> (Vec<Record>, Vec<Call>, u64) {
    let (mut done, mut newest) = (Vec::new(), 0);
    let mut next = BTreeMap::from_iter((0..CLIENTS).map(|client| (client, 0)));
    let mut streams: Vec<_> = (0..CLIENTS).map(|client| calls(round, client)).collect();
    for line in lines {
        match line {
            Line::Observation(revision) => newest = newest.max(revision),
            Line::Done(client, index, note) => {
                assert_eq!(next.insert(client, index + 1), Some(index));
                newest = newest.max(note.after);
                let Call {
                    api_version,
                    operation,
                } = streams[client].next().unwrap();
                done.push(Record {
                    api_version,
                    operation,
                    note: *note,
                });
            }
        }
    }
    let broken = streams.iter_mut().map(|stream| stream.next().unwrap());
    (done, broken.collect(), newest)
}

#[test]
fn acknowledged_writes_survive_kills_and_the_history_expires() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let engine = open(&path);
    runtime().block_on(define(&engine));
    let (mut start, mut first) = (engine.revision(), read_state(&engine));
    drop(engine);
    for round in 0..u64::from(cases(3)) {
        let lines = 200 + usize::try_from(round * 37 % 300).unwrap();
        let (done, broken, newest) = completed(round, killed(&path, round, lines));
        let engine = open(&path);
        let end = engine.revision();
        assert!(
            end >= newest,
            "revision {newest} was seen, but the store is at {end}"
        );
        let found = read_state(&engine);
        let (expected, uncertain) = replay(start, first, end, done, &broken);
        let is_generated = |key: &Key| {
            [&key.name, &key.namespace]
                .iter()
                .any(|name| name.starts_with("g-"))
        };
        let kept: State = found
            .iter()
            .filter(|(key, _)| !uncertain.holds(key))
            .filter(|(key, _)| !is_generated(key) || expected.contains_key(*key))
            .map(|(key, model_object)| (key.clone(), model_object.clone()))
            .collect();
        let without = |one: &State, other: &State| -> State {
            let mut rest = one.clone();
            rest.retain(|key, model_object| other.get(key) != Some(model_object));
            rest
        };
        let (lost, more) = (without(&expected, &kept), without(&kept, &expected));
        assert!(
            lost.is_empty() && more.is_empty(),
            "round {round}: expected {lost:#?}\nfound {more:#?}\ninterrupted: {broken:#?}"
        );
        check_history(&engine, end);
        (start, first) = (engine.revision(), read_state(&engine));
    }
}

/// The history starts empty.
fn check_history(engine: &Engine, end: u64) {
    let kind = Kind::Pod.info(ApiVersion::V1);
    for (after, there) in [(end, true), (end - 1, false), (1, false)] {
        let watch = engine.watch(&WatchRequest::of(kind.clone(), WatchStart::After(after)));
        match watch {
            Ok(mut watch) => assert!(there && watch.try_next().unwrap().is_none()),
            Err(Error::Expired { .. }) => assert!(!there),
            Err(error) => panic!("{error}"),
        }
    }
    let operation = Operation::Create {
        key: Key::new(Kind::ConfigMap, "default", "after"),
        label: 0,
        value: 0,
        finalizer: false,
        generated: true,
        dry: false,
    };
    let api_version = ApiVersion::V1;
    let made = runtime().block_on(async {
        let create = act(
            engine,
            Call {
                api_version,
                operation,
            },
        );
        tokio::time::timeout(Duration::from_secs(60), create).await
    });
    let Outcome::Objects(model_objects) = made.unwrap().note.outcome else {
        panic!("the store rejects writes");
    };
    assert_eq!(model_objects[0].1.version, end + 1, "versions continue");
}
