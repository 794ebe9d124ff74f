//! `kill -9` of the real process while several clients write: no acknowledged
//! write is lost, nothing is half done, and the cluster always starts again.
//!
//! `LONGSHORE_KILL_ROUNDS` says how often it is killed.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use longshore::{Cluster, Patch, View, client::DeleteOptions, kinds::ConfigMap};
use serde_json::json;

use crate::machine::{Machine, TIMEOUT, found_in_mounts, processes_with};

/// How often the cluster is killed if nothing else is said.
const ROUNDS: u64 = 8;
/// How often a long test says how far it is.
const REPORT_EVERY: u64 = 50;
/// Clients that write at the same time.
const WRITERS: usize = 4;
/// Objects of each of them.
const OBJECTS: u64 = 6;
/// Bytes of a large value, now and then: the file grows and shrinks.
const LARGE: usize = 300_000;
/// A kill comes at the latest so long after the writers began.
const WRITING: u64 = 250;
/// A kill during a start comes at the latest so long after it.
const STARTING: u64 = 120;

/// What is stored of an object: the values of its two fields. `None`: it is not
/// there.
type Stored = Option<(Option<u64>, Option<u64>)>;

/// What a writer knows of an object.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// By the last answer.
    acknowledged: Stored,
    /// What a request that was not answered would make of it.
    uncertain: Option<Stored>,
}

/// What a writer knows of all, the newest version that it was told, and how many
/// writes were acknowledged.
#[derive(Debug, Default)]
struct Book {
    objects: BTreeMap<String, Known>,
    version: u64,
    acknowledged: u64,
}

/// How many writes all writers together were told of.
fn acknowledged(books: &[Arc<Mutex<Book>>]) -> u64 {
    books
        .iter()
        .map(|book| book.lock().unwrap().acknowledged)
        .sum()
}

/// Numbers that only look random, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        // Knuth's MMIX.
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

    /// Waits until it serves.
    fn wait(&mut self, machine: &Machine, round: u64) {
        let out = BufReader::new(self.0.stdout.take().unwrap());
        let ready = out
            .lines()
            .map_while(Result::ok)
            .any(|line| line.contains("is up"));
        let log = || std::fs::read_to_string(machine.code().join("log")).unwrap();
        assert!(ready, "round {round}: it does not start again:\n{}", log());
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

/// Writes until the cluster does not answer any more.
async fn write(maps: View<ConfigMap>, writer: usize, seed: u64, book: Arc<Mutex<Book>>) {
    let mut random = Random(seed ^ (writer as u64) << 32);
    for number in 1.. {
        let name = format!("w{writer}-{}", random.below(OBJECTS));
        let before = book
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
        book.lock()
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
                let mut book = book.lock().unwrap();
                let version = item.map_or(0, |item| item.version().parse().unwrap());
                book.version = book.version.max(version);
                book.acknowledged += 1;
                let known = book.objects.get_mut(&name).unwrap();
                *known = Known {
                    acknowledged: after,
                    uncertain: None,
                };
            }
            // An answer, but not the one that it should be.
            Err(error) if error.code().is_some() => panic!("{name}: {before:?} {after:?}: {error}"),
            Err(_) => return,
        }
    }
}

/// Compares what is stored with what was acknowledged; what is stored counts from
/// here on.
async fn check(maps: &View<ConfigMap>, books: &[Arc<Mutex<Book>>], round: u64) {
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
    for book in books {
        let mut book = book.lock().unwrap();
        let told = book.version;
        assert!(
            version >= told,
            "round {round}: version {told} was told, {version} is stored"
        );
        for (name, known) in &mut book.objects {
            let stored = found.remove(name).unwrap_or_default();
            assert!(
                stored == known.acknowledged || Some(stored) == known.uncertain,
                "round {round}: {name} is {stored:?}, and should be {known:?}"
            );
            *known = Known {
                acknowledged: stored,
                uncertain: None,
            };
        }
    }
    assert!(found.is_empty(), "round {round}: nobody wrote {found:?}");
}

fn rounds() -> u64 {
    let text = std::env::var("LONGSHORE_KILL_ROUNDS");
    text.map_or(ROUNDS, |text| text.parse().unwrap())
}

#[allow(clippy::print_stdout, reason = "a thousand rounds take minutes")]
#[test]
fn no_acknowledged_write_is_lost_and_it_always_starts_again() {
    let machine = Machine::new();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let books: Vec<Arc<Mutex<Book>>> = (0..WRITERS).map(|_| Arc::default()).collect();
    let mut random = Random(rounds());
    let mut slowest = Duration::ZERO;
    for round in 0..rounds() {
        // Now and then it is killed while it starts, several times in a row.
        for _ in 0..random.below(4) {
            let process = Process::start(&machine);
            std::thread::sleep(Duration::from_millis(random.below(STARTING)));
            process.kill();
        }
        let begin = Instant::now();
        let mut process = Process::start(&machine);
        process.wait(&machine, round);
        slowest = slowest.max(begin.elapsed());
        runtime.block_on(async {
            let cluster = connect(&machine).await;
            let maps = maps(&cluster);
            check(&maps, &books, round).await;
            let before = acknowledged(&books);
            let seed = round + 1;
            let writers: Vec<_> = books
                .iter()
                .enumerate()
                .map(|(writer, book)| tokio::spawn(write(maps.clone(), writer, seed, book.clone())))
                .collect();
            let time = Duration::from_millis(20 + random.below(WRITING));
            tokio::time::sleep(time).await;
            // However slow the disk is.
            let begin = Instant::now();
            while acknowledged(&books) == before {
                assert!(
                    begin.elapsed() < TIMEOUT,
                    "round {round}: no write is answered"
                );
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tokio::task::spawn_blocking(|| process.kill())
                .await
                .unwrap();
            for writer in writers {
                let ended = tokio::time::timeout(TIMEOUT, writer).await;
                ended
                    .expect("a writer goes on though nobody answers")
                    .unwrap();
            }
            cluster.close();
            if (round + 1) % REPORT_EVERY == 0 {
                println!(
                    "{} rounds, {} writes, slowest start {slowest:?}",
                    round + 1,
                    acknowledged(&books)
                );
            }
        });
    }
    let mut process = Process::start(&machine);
    process.wait(&machine, rounds());
    runtime.block_on(async {
        let cluster = connect(&machine).await;
        check(&maps(&cluster), &books, rounds()).await;
        cluster.close();
    });
    process.kill();
    println!(
        "{} kills, {} writes, slowest start {slowest:?}",
        rounds(),
        acknowledged(&books)
    );

    let data = machine.data();
    machine.assert_no_process(data.to_str().unwrap());
    assert_eq!(
        found_in_mounts(data.to_str().unwrap()),
        Vec::<String>::new()
    );
    // What the killed left is bounded, however many they were.
    let names: Vec<String> = std::fs::read_dir(&data)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.len() < 20, "{names:?}");
    assert_eq!(processes_with(data.to_str().unwrap()), Vec::<String>::new());
}
