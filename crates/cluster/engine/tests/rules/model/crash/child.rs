//! The process that is killed, and the lines that it printed.

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
    kind::{ApiVersion, Kind},
    operation::{Call, Change, Operation},
};

/// The variables with the child's file and seed.
const FILE: &str = "LONGSHORE_ENGINE_MODEL_FILE";
const SEED: &str = "LONGSHORE_ENGINE_MODEL_SEED";
pub(super) const CLIENTS: usize = 6;

/// A line of the child.
#[derive(Serialize, Deserialize)]
pub(super) enum Line {
    /// An operation of a client is done.
    Done(usize, usize, Box<Note>),
    /// A watcher saw a revision.
    Observation(u64),
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
        .filter(move |call| is_deterministic(&call.operation, seed))
}

/// Returns true if the model can derive the changes from the responses alone.
fn is_deterministic(operation: &Operation, seed: u64) -> bool {
    let of_definition = operation.kind() == Some(Kind::Definition);
    match operation {
        // The progress of an interrupted collection deletion is unknown; and bindings
        // respond without a version.
        Operation::DeleteCollection { .. } | Operation::Bind { .. } => false,
        _ if !of_definition => true,
        // No client sees the orphaned objects of a definition, nor their storage version.
        Operation::Create {
            finalizer, value, ..
        } => !finalizer && *value < 2,
        Operation::Update { change, .. } | Operation::Patch { change, .. } => {
            !matches!(change, Change::Finalizers(_) | Change::Value(2..))
        }
        // Deleting a definition deletes many objects, so only some rounds do it.
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
            Kind::ConfigMap.info(ApiVersion::V1),
            WatchStart::Latest,
        ))
        .unwrap();
    tokio::spawn(async move {
        while let Ok(event) = watch.next().await {
            if let WatchEvent::Added(object)
            | WatchEvent::Modified(object)
            | WatchEvent::Deleted(object) = event
            {
                print(&Line::Observation(object.revision()));
            }
        }
    });
    let clients = (0..CLIENTS).map(|client| {
        let engine = engine.clone();
        tokio::spawn(async move {
            for (index, call) in calls(seed, client).enumerate() {
                print(&Line::Done(
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

fn print(line: &Line) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n@{}", serde_json::to_string(line).unwrap()).unwrap();
    out.flush().unwrap();
}

/// Runs the child and kills it after this many lines.
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
    let mut lines: Vec<String> = reader.by_ref().take(lines).collect();
    child.kill().unwrap();
    // Lines that were printed before the kill took effect also count.
    lines.extend(reader);
    child.wait().unwrap();
    // The last line may be incomplete.
    lines
        .iter()
        .filter_map(|line| serde_json::from_str(&line[1..]).ok())
        .collect()
}
