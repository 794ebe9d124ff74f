//! A killed process: what it acknowledged is in its store, nothing is half
//! done, and its past is forgotten.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use longshore_engine::{Engine, Error, Options, Storage, WatchEvent, WatchRequest, WatchStart};
use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde::{Deserialize, Serialize};

use super::{
    client::{Note, Outcome, Record, act},
    history::{next, with_uid},
    operation::{Operation, write},
    read_state,
    thing::{Key, Kind, State},
};
use crate::support;

/// Tells the child its file and its seed.
const FILE: &str = "LONGSHORE_ENGINE_MODEL_FILE";
const SEED: &str = "LONGSHORE_ENGINE_MODEL_SEED";
const CLIENTS: usize = 6;

/// A line of the child.
#[derive(Serialize, Deserialize)]
enum Line {
    /// A client's operation is done.
    Done(usize, usize, Box<Note>),
    /// A watcher was told of a revision.
    Saw(u64),
}

/// The operations of a client, the same for the same seed.
fn operations(seed: u64, client: usize) -> impl Iterator<Item = Operation> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8] = u8::try_from(client).unwrap();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = write();
    std::iter::repeat_with(move || strategy.new_tree(&mut runner).unwrap().current())
        // Which of many objects a broken-off one had come to cannot be known;
        // and bindings answer without a version to find them by.
        .filter(|operation| !matches!(operation, Operation::DeleteCollection { .. } | Operation::Bind { .. }))
}

fn open(path: &Path) -> Engine {
    let options = Options {
        ids: std::sync::Arc::new(longshore_engine::RandomIds),
        ..support::options(Storage::File(path.to_owned()))
    };
    Engine::open(options).unwrap()
}

/// Not a test: the program that is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of the test below"]
async fn child_of_the_model() {
    let (Some(path), Ok(seed)) = (std::env::var_os(FILE), std::env::var(SEED)) else {
        return;
    };
    let seed: u64 = seed.parse().unwrap();
    let engine = open(Path::new(&path));
    let mut watch = engine
        .watch(&WatchRequest::of(
            Kind::ConfigMap.info(),
            WatchStart::Latest,
        ))
        .unwrap();
    tokio::spawn(async move {
        while let Ok(event) = watch.next().await {
            if let WatchEvent::Added(object)
            | WatchEvent::Modified(object)
            | WatchEvent::Deleted(object) = event
            {
                say(&Line::Saw(object.revision()));
            }
        }
    });
    let clients = (0..CLIENTS).map(|client| {
        let engine = engine.clone();
        tokio::spawn(async move {
            for (index, operation) in operations(seed, client).enumerate() {
                say(&Line::Done(
                    client,
                    index,
                    Box::new(act(&engine, operation).await.note),
                ));
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
}

fn say(line: &Line) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n@{}", serde_json::to_string(line).unwrap()).unwrap();
    out.flush().unwrap();
}

/// Runs the child and kills it when it has said so many lines.
fn killed(path: &Path, seed: u64, lines: usize) -> Vec<Line> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "model::crash::child_of_the_model",
            "--ignored",
            "--nocapture",
        ])
        .env(FILE, path)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .filter(|line| line.starts_with('@'));
    let mut said: Vec<String> = reader.by_ref().take(lines).collect();
    child.kill().unwrap();
    // What was said before the kill took hold counts too.
    said.extend(reader);
    child.wait().unwrap();
    // The last line may be cut.
    said.iter()
        .filter_map(|line| serde_json::from_str(&line[1..]).ok())
        .collect()
}

/// Which objects an operation can change.
fn touched(operation: &Operation) -> Vec<Key> {
    match operation {
        // Under a name of its own.
        Operation::Create {
            key,
            generated: true,
            ..
        } => vec![Key::new(key.kind, &key.namespace, "g-")],
        Operation::Create { key, .. } if key.kind == Kind::Namespace => {
            vec![key.clone(), Key::new(Kind::Account, &key.name, "default")]
        }
        Operation::Create { key, .. }
        | Operation::Update { key, .. }
        | Operation::Patch { key, .. }
        | Operation::Status { key, .. }
        | Operation::Delete { key, .. } => vec![key.clone()],
        Operation::Bind { name, .. } => vec![Key::new(Kind::Pod, "default", name)],
        Operation::Finalize { name } => vec![Key::new(Kind::Namespace, "", name)],
        _ => Vec::new(),
    }
}

/// Replays what was acknowledged over the first state, up to the revision of
/// the store, leaving out what the broken-off operations may have touched.
fn replay(
    start: u64,
    first: State,
    end: u64,
    mut done: Vec<Record>,
    broken: &[Operation],
) -> (State, BTreeSet<Key>) {
    let uncertain: BTreeSet<Key> = broken.iter().flat_map(touched).collect();
    // An uncertain namespace makes all in it uncertain.
    let is_uncertain = |key: &Key| {
        uncertain.contains(key)
            || uncertain.contains(&Key::new(Kind::Namespace, "", &key.namespace))
    };
    let generates = broken.iter().any(|operation| {
        matches!(
            operation,
            Operation::Create {
                generated: true,
                ..
            }
        )
    });
    done.retain(|record| !touched(&record.operation).iter().any(is_uncertain));
    let mut placed = vec![false; done.len()];
    let mut state = first;
    let mut revision = start;
    let mut gaps = 0;
    while revision < end {
        match next(&state, revision, &done, &placed).into_iter().next() {
            Some((index, effect)) => {
                placed[index] = true;
                let record = &done[index];
                for step in effect.steps {
                    let step = with_uid(step, &record.note.outcome);
                    revision += 1;
                    if step.gone {
                        state.remove(&step.key);
                    } else {
                        state.insert(step.key, step.told);
                    }
                }
            }
            // Made by one that was left out.
            None => {
                revision += 1;
                gaps += 1;
            }
        }
    }
    let lost: Vec<_> = done
        .iter()
        .zip(&placed)
        .filter(|(record, placed)| !**placed && changed(record))
        .collect();
    assert!(lost.is_empty(), "acknowledged, but not done: {lost:#?}");
    assert!(
        generates || !uncertain.is_empty() || gaps == 0,
        "{gaps} revisions are nobody's"
    );
    state.retain(|key, _| !is_uncertain(key));
    (state, uncertain)
}

/// Whether an operation says that it made a revision of its own.
fn changed(record: &Record) -> bool {
    let dry = matches!(
        record.operation,
        Operation::Create { dry: true, .. }
            | Operation::Update { dry: true, .. }
            | Operation::Patch { dry: true, .. }
    );
    match &record.note.outcome {
        // Made between its call and its answer, and by nobody else.
        Outcome::Things(_) if matches!(record.operation, Operation::Create { .. }) => !dry,
        _ => false,
    }
}

#[test]
fn what_was_acknowledged_survives_kills_and_the_past_is_forgotten() {
    let rounds = super::cases(3);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let engine = open(&path);
    let (mut start, mut first) = (engine.revision(), read_state(&engine));
    drop(engine);
    for round in 0..u64::from(rounds) {
        let lines = killed(
            &path,
            round,
            200 + usize::try_from(round * 37 % 300).unwrap(),
        );
        let (mut done, mut next, mut newest) = (
            Vec::new(),
            BTreeMap::from_iter((0..CLIENTS).map(|client| (client, 0))),
            0,
        );
        let mut streams: Vec<_> = (0..CLIENTS)
            .map(|client| operations(round, client))
            .collect();
        for line in lines {
            match line {
                Line::Saw(revision) => newest = newest.max(revision),
                Line::Done(client, index, note) => {
                    assert_eq!(next.insert(client, index + 1), Some(index));
                    newest = newest.max(note.after);
                    done.push(Record {
                        operation: streams[client].next().unwrap(),
                        note: *note,
                    });
                }
            }
        }
        let broken: Vec<_> = streams
            .iter_mut()
            .map(|stream| stream.next().unwrap())
            .collect();
        let engine = open(&path);
        let end = engine.revision();
        assert!(
            end >= newest,
            "revision {newest} was seen, and the store is of {end}"
        );
        let found = read_state(&engine);
        let (expected, uncertain) = replay(start, first, end, done, &broken);
        let certain = |key: &&Key| {
            !uncertain.contains(key)
                && !uncertain.contains(&Key::new(Kind::Namespace, "", &key.namespace))
        };
        let named = |key: &&Key| {
            ![&key.name, &key.namespace]
                .iter()
                .any(|name| name.starts_with("g-"))
                || expected.contains_key(*key)
        };
        let kept: State = found
            .iter()
            .filter(|(key, _)| certain(key) && named(key))
            .map(|(key, thing)| (key.clone(), thing.clone()))
            .collect();
        let lost: Vec<_> = expected
            .iter()
            .filter(|(key, thing)| kept.get(*key) != Some(*thing))
            .collect();
        let more: Vec<_> = kept
            .iter()
            .filter(|(key, thing)| expected.get(*key) != Some(*thing))
            .collect();
        assert!(
            lost.is_empty() && more.is_empty(),
            "round {round}: expected {lost:#?}\nfound {more:#?}\nbroken off: {broken:#?}"
        );
        check_past(&engine, end);
        (start, first) = (end, found);
    }
}

/// The history begins anew.
fn check_past(engine: &Engine, end: u64) {
    let kind = Kind::Pod.info();
    for (after, there) in [(end, true), (end - 1, false), (1, false)] {
        let watch = engine.watch(&WatchRequest::of(kind.clone(), WatchStart::After(after)));
        match watch {
            Ok(mut watch) => assert!(there && watch.try_next().unwrap().is_none()),
            Err(Error::Expired { .. }) => assert!(!there),
            Err(error) => panic!("{error}"),
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let made = runtime.block_on(async {
        let create = act(
            engine,
            Operation::Create {
                key: Key::new(Kind::ConfigMap, "default", "after"),
                label: 0,
                value: 0,
                finalizer: false,
                generated: true,
                dry: false,
            },
        );
        tokio::time::timeout(Duration::from_secs(60), create)
            .await
            .unwrap()
    });
    let Outcome::Things(things) = made.note.outcome else {
        panic!("{made:?}")
    };
    assert_eq!(things[0].1.version, end + 1, "versions go on");
}
