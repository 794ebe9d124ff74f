//! The process that is killed, and what it said until then.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use longshore_engine::Propagation;
use longshore_engine::{WatchEvent, WatchRequest, WatchStart};
use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde::{Deserialize, Serialize};

use super::open;
use crate::model::{
    client::{Note, act},
    generate::write,
    kind::{Kind, Via},
    operation::{Call, Change, Operation},
};

/// Tells the child its file and its seed.
const FILE: &str = "LONGSHORE_ENGINE_MODEL_FILE";
const SEED: &str = "LONGSHORE_ENGINE_MODEL_SEED";
pub(super) const CLIENTS: usize = 6;

/// A line of the child.
#[derive(Serialize, Deserialize)]
pub(super) enum Line {
    /// A client's operation is done.
    Done(usize, usize, Box<Note>),
    /// A watcher was told of a revision.
    Saw(u64),
}

/// The calls of a client, the same for the same seed.
pub(super) fn calls(seed: u64, client: usize) -> impl Iterator<Item = Call> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8] = u8::try_from(client).unwrap();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = write();
    std::iter::repeat_with(move || strategy.new_tree(&mut runner).unwrap().current())
        .filter(move |call| can_be_followed(&call.operation, seed))
}

/// Whether the model can tell from the answers alone what was done.
fn can_be_followed(operation: &Operation, seed: u64) -> bool {
    let of_definition = operation.kind() == Some(Kind::Definition);
    match operation {
        // Which of many objects a broken-off one had come to cannot be known;
        // and bindings answer without a version to find them by.
        Operation::DeleteCollection { .. } | Operation::Bind { .. } => false,
        _ if !of_definition => true,
        // Nobody sees the objects that a definition leaves behind, nor the
        // version in which they are stored.
        Operation::Create {
            finalizer, value, ..
        } => !finalizer && *value < 2,
        Operation::Update { change, .. } | Operation::Patch { change, .. } => {
            !matches!(change, Change::Finalizers(_) | Change::Value(2..))
        }
        // A definition that goes takes much along; not in every round.
        Operation::Delete { propagation, .. } => {
            seed.is_multiple_of(2) && matches!(propagation, None | Some(Propagation::Background))
        }
        _ => true,
    }
}

/// Not a test: the program that is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn child_of_the_model() {
    let (Some(path), Ok(seed)) = (std::env::var_os(FILE), std::env::var(SEED)) else {
        return;
    };
    let seed: u64 = seed.parse().unwrap();
    let engine = open(Path::new(&path));
    let mut watch = engine
        .watch(&WatchRequest::of(
            Kind::ConfigMap.info(Via::V1),
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
            for (index, call) in calls(seed, client).enumerate() {
                say(&Line::Done(
                    client,
                    index,
                    Box::new(act(&engine, call).await.note),
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
pub(super) fn killed(path: &Path, seed: u64, lines: usize) -> Vec<Line> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "model::crash::child::child_of_the_model",
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
