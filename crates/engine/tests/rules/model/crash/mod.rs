//! A killed process: what it acknowledged is in its store, nothing is half
//! done, and its past is forgotten.

mod child;
mod replay;

use std::{collections::BTreeMap, path::Path, time::Duration};

use longshore_engine::{Engine, Error, Options, Storage, WatchRequest, WatchStart};

use super::{
    cases,
    client::{Outcome, Record, act},
    define,
    kind::{Key, Kind, Via},
    operation::{Call, Operation},
    read_state,
    thing::State,
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

/// What a killed process had done, and what each client was about to do or
/// had begun; the newest revision anybody saw.
fn heard(round: u64, lines: Vec<Line>) -> (Vec<Record>, Vec<Call>, u64) {
    let (mut done, mut newest) = (Vec::new(), 0);
    let mut next = BTreeMap::from_iter((0..CLIENTS).map(|client| (client, 0)));
    let mut streams: Vec<_> = (0..CLIENTS).map(|client| calls(round, client)).collect();
    for line in lines {
        match line {
            Line::Saw(revision) => newest = newest.max(revision),
            Line::Done(client, index, note) => {
                assert_eq!(next.insert(client, index + 1), Some(index));
                newest = newest.max(note.after);
                let Call { via, operation } = streams[client].next().unwrap();
                done.push(Record {
                    via,
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
fn what_was_acknowledged_survives_kills_and_the_past_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let engine = open(&path);
    runtime().block_on(define(&engine));
    let (mut start, mut first) = (engine.revision(), read_state(&engine));
    drop(engine);
    for round in 0..u64::from(cases(3)) {
        let lines = 200 + usize::try_from(round * 37 % 300).unwrap();
        let (done, broken, newest) = heard(round, killed(&path, round, lines));
        let engine = open(&path);
        let end = engine.revision();
        assert!(
            end >= newest,
            "revision {newest} was seen, and the store is of {end}"
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
            .map(|(key, thing)| (key.clone(), thing.clone()))
            .collect();
        let without = |one: &State, other: &State| -> State {
            let mut rest = one.clone();
            rest.retain(|key, thing| other.get(key) != Some(thing));
            rest
        };
        let (lost, more) = (without(&expected, &kept), without(&kept, &expected));
        assert!(
            lost.is_empty() && more.is_empty(),
            "round {round}: expected {lost:#?}\nfound {more:#?}\nbroken off: {broken:#?}"
        );
        check_past(&engine, end);
        (start, first) = (engine.revision(), read_state(&engine));
    }
}

/// The history begins anew.
fn check_past(engine: &Engine, end: u64) {
    let kind = Kind::Pod.info(Via::V1);
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
    let via = Via::V1;
    let made = runtime().block_on(async {
        let create = act(engine, Call { via, operation });
        tokio::time::timeout(Duration::from_secs(60), create).await
    });
    let Outcome::Things(things) = made.unwrap().note.outcome else {
        panic!("it cannot be written to any more");
    };
    assert_eq!(things[0].1.version, end + 1, "versions go on");
}
