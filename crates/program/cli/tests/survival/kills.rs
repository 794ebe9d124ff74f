//! `kill -9` of the cluster's process while several clients write: no acknowledged write is
//! lost, no write is partial, and the cluster always starts again.
//!
//! `LONGSHORE_KILL_ROUNDS` sets the number of kills.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use longshore::{Cluster, Patch, View, client::DeleteOptions, kinds::ConfigMap};
use serde_json::json;

use crate::machine::{Machine, TIMEOUT, processes_with};

/// Number of kills without `LONGSHORE_KILL_ROUNDS`.
const ROUNDS: u64 = 8;
/// Rounds between progress reports of a long test.
const REPORT_EVERY: u64 = 50;
/// Number of concurrent writers.
const WRITERS: usize = 4;
/// Objects of each writer.
const OBJECTS: u64 = 6;
/// Bytes of a large value, which some writes contain, so that the file grows and shrinks.
const LARGE: usize = 300_000;
/// Upper bound of the time from the start of the writers to a kill, in milliseconds.
const MAX_WRITING_MS: u64 = 250;
/// Upper bound of the time from a start of the cluster to a kill during that start, in
/// milliseconds.
const MAX_STARTING_MS: u64 = 120;

/// The stored state of an object: the values of its two fields, or `None` if it does not
/// exist.
type Stored = Option<(Option<u64>, Option<u64>)>;

/// The state of an object, as far as a writer knows it.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// The state according to the last response.
    acknowledged: Stored,
    /// The state if the request without a response took effect.
    uncertain: Option<Stored>,
}

/// The states of a writer's objects, the newest resource version that it has seen, and the number
/// of acknowledged writes.
#[derive(Debug, Default)]
struct Journal {
    objects: BTreeMap<String, Known>,
    version: u64,
    acknowledged: u64,
}

/// The number of acknowledged writes of all writers.
fn acknowledged(journals: &[Arc<Mutex<Journal>>]) -> u64 {
    journals
        .iter()
        .map(|journal| journal.lock().unwrap().acknowledged)
        .sum()
}

/// Pseudo-random numbers, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        // Constants of Knuth's MMIX generator.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The cluster's process.
struct Process(Child);

impl Process {
    fn start(machine: &Machine) -> Self {
        let mut command = machine.command(&["up", "--foreground"]);
        let log = std::fs::File::create(machine.code().join("log")).unwrap();
        command.stdout(Stdio::piped()).stderr(log);
        Self(command.spawn().unwrap())
    }

    /// Waits until the cluster serves requests.
    fn wait(&mut self, machine: &Machine, round: u64) {
        let out = BufReader::new(self.0.stdout.take().unwrap());
        let ready = out
            .lines()
            .map_while(Result::ok)
            .any(|line| line.contains("is up"));
        let log = || std::fs::read_to_string(machine.code().join("log")).unwrap();
        assert!(
            ready,
            "round {round}: the cluster does not start again:\n{}",
            log()
        );
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn connect(machine: &Machine) -> Cluster {
    let path = machine.data().join("kubeconfig");
    Cluster::from_kubeconfig(Some(&path), None).await.unwrap()
}

fn maps(cluster: &Cluster) -> View<ConfigMap> {
    cluster.configmaps().in_namespace("default").unwrap()
}

/// Writes until the cluster stops responding.
async fn write(maps: View<ConfigMap>, writer: usize, seed: u64, journal: Arc<Mutex<Journal>>) {
    let mut random = Random(seed ^ (writer as u64) << 32);
    for number in 1.. {
        let name = format!("w{writer}-{}", random.below(OBJECTS));
        let before = journal
            .lock()
            .unwrap()
            .objects
            .entry(name.clone())
            .or_default()
            .acknowledged;
        let number = seed.wrapping_mul(1_000_000) + number;
        let padding = match random.below(8) {
            0 => "x".repeat(LARGE),
            _ => String::new(),
        };
        let after: Stored = match (before, random.below(4)) {
            (None, 0) => Some((None, Some(number))),
            (None, _) => Some((Some(number), None)),
            (Some((_, applied)), 0 | 1) => Some((Some(number), applied)),
            (Some((created, _)), 2) => Some((created, Some(number))),
            (Some(_), _) => None,
        };
        journal
            .lock()
            .unwrap()
            .objects
            .get_mut(&name)
            .unwrap()
            .uncertain = Some(after);
        let result = match (before, after) {
            (_, Some((_, Some(applied)))) if before.and_then(|(_, old)| old) != Some(applied) => {
                let object = json!({
                    "metadata": {"name": name, "labels": {"of": "kills"}},
                    "data": {"applied": applied.to_string()},
                });
                maps.apply(&object, "kills", true).await.map(Some)
            }
            (None, Some(_)) => {
                let object = json!({
                    "metadata": {"name": name, "labels": {"of": "kills"}},
                    "data": {"created": number.to_string(), "padding": padding},
                });
                maps.create(&object).await.map(Some)
            }
            (Some(_), Some(_)) => {
                let data = json!({"created": number.to_string(), "padding": padding});
                maps.patch(&name, &Patch::merge(json!({"data": data})))
                    .await
                    .map(Some)
            }
            (_, None) => maps
                .delete(&name, &DeleteOptions::default())
                .await
                .map(|()| None),
        };
        match result {
            Ok(item) => {
                let mut journal = journal.lock().unwrap();
                let version = item.map_or(0, |item| item.version().parse().unwrap());
                journal.version = journal.version.max(version);
                journal.acknowledged += 1;
                let known = journal.objects.get_mut(&name).unwrap();
                *known = Known {
                    acknowledged: after,
                    uncertain: None,
                };
            }
            // The server responded, but with an error.
            Err(error) if error.code().is_some() => panic!("{name}: {before:?} {after:?}: {error}"),
            Err(_) => return,
        }
    }
}

/// Compares the stored objects with the acknowledged writes, and takes the stored ones as
/// the new baseline.
async fn check(maps: &View<ConfigMap>, journals: &[Arc<Mutex<Journal>>], round: u64) {
    let list = maps
        .clone()
        .filter("of=kills")
        .unwrap()
        .list()
        .await
        .unwrap();
    let mut found: BTreeMap<String, Stored> = BTreeMap::new();
    for item in &list.items {
        let data = item.data().unwrap();
        let field = |name: &str| data.get(name).map(|text| text.parse::<u64>().unwrap());
        let stored = Some((field("created"), field("applied")));
        assert!(found.insert(item.name().to_owned(), stored).is_none());
    }
    let version: u64 = list.version.parse().unwrap();
    for journal in journals {
        let mut journal = journal.lock().unwrap();
        let seen = journal.version;
        assert!(
            version >= seen,
            "round {round}: version {seen} was seen, {version} is stored"
        );
        for (name, known) in &mut journal.objects {
            let stored = found.remove(name).unwrap_or_default();
            assert!(
                stored == known.acknowledged || Some(stored) == known.uncertain,
                "round {round}: {name} is {stored:?}, expected {known:?}"
            );
            *known = Known {
                acknowledged: stored,
                uncertain: None,
            };
        }
    }
    assert!(
        found.is_empty(),
        "round {round}: no writer created {found:?}"
    );
}

fn rounds() -> u64 {
    let text = std::env::var("LONGSHORE_KILL_ROUNDS");
    text.map_or(ROUNDS, |text| text.parse().unwrap())
}

#[allow(clippy::print_stdout, reason = "a thousand rounds take minutes")]
#[test]
fn kill_loses_no_acknowledged_write_and_the_cluster_always_starts_again() {
    let machine = Machine::new();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let journals: Vec<Arc<Mutex<Journal>>> = (0..WRITERS).map(|_| Arc::default()).collect();
    let mut random = Random(rounds());
    let mut slowest = Duration::ZERO;
    for round in 0..rounds() {
        // Some rounds also kill the cluster while it starts, several times in a row.
        for _ in 0..random.below(4) {
            let process = Process::start(&machine);
            std::thread::sleep(Duration::from_millis(random.below(MAX_STARTING_MS)));
            process.kill();
        }
        let begin = Instant::now();
        let mut process = Process::start(&machine);
        process.wait(&machine, round);
        slowest = slowest.max(begin.elapsed());
        runtime.block_on(async {
            let cluster = connect(&machine).await;
            let maps = maps(&cluster);
            check(&maps, &journals, round).await;
            let before = acknowledged(&journals);
            let seed = round + 1;
            let writers: Vec<_> = journals
                .iter()
                .enumerate()
                .map(|(writer, journal)| {
                    tokio::spawn(write(maps.clone(), writer, seed, journal.clone()))
                })
                .collect();
            let time = Duration::from_millis(20 + random.below(MAX_WRITING_MS));
            tokio::time::sleep(time).await;
            // Waits for one acknowledged write, however slow the disk is.
            let begin = Instant::now();
            while acknowledged(&journals) == before {
                assert!(
                    begin.elapsed() < TIMEOUT,
                    "round {round}: no write is acknowledged"
                );
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tokio::task::spawn_blocking(|| process.kill())
                .await
                .unwrap();
            for writer in writers {
                let ended = tokio::time::timeout(TIMEOUT, writer).await;
                ended
                    .expect("a writer still runs without a server")
                    .unwrap();
            }
            cluster.close();
            if (round + 1) % REPORT_EVERY == 0 {
                println!(
                    "{} rounds, {} writes, slowest start {slowest:?}",
                    round + 1,
                    acknowledged(&journals)
                );
            }
        });
    }
    let mut process = Process::start(&machine);
    process.wait(&machine, rounds());
    runtime.block_on(async {
        let cluster = connect(&machine).await;
        check(&maps(&cluster), &journals, rounds()).await;
        cluster.close();
    });
    process.kill();
    println!(
        "{} kills, {} writes, slowest start {slowest:?}",
        rounds(),
        acknowledged(&journals)
    );

    let data = machine.data();
    machine.assert_no_process(data.to_str().unwrap());
    assert_eq!(
        found_in_mounts(data.to_str().unwrap()),
        Vec::<String>::new()
    );
    // The number of leftover files is bounded, whatever the number of kills.
    let names: Vec<String> = std::fs::read_dir(&data)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.len() < 20, "{names:?}");
    assert_eq!(processes_with(data.to_str().unwrap()), Vec::<String>::new());
}

/// The mounts of this machine that have `word` in them.
fn found_in_mounts(word: &str) -> Vec<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let found = mounts.lines().filter(|line| line.contains(word));
    found.map(str::to_owned).collect()
}
