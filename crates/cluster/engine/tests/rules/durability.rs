//! Durability: the content of the store after it is reopened, and after a kill in the middle of a
//! write.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use crate::support::{Api, config, kind, names, options, pod};
use longshore_engine::{
    Engine, Error, OpenError, Options, ReadVersion, Storage, WatchRequest, WatchStart,
};
use longshore_testing::small_disk::{self, DISK};
use serde_json::json;

/// The variable with the file of the child process.
const FILE: &str = "LONGSHORE_ENGINE_TEST_FILE";

fn open(path: &Path) -> Api {
    Api(Engine::open(options(Storage::File(path.to_owned()))).unwrap())
}

#[tokio::test]
async fn objects_and_revision_survive_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let api = open(&path);
    let before = api.create("pods", pod("a")).await.unwrap();
    api.create("configmaps", config("b")).await.unwrap();
    api.delete("configmaps", "b").await.unwrap();
    let revision = api.0.revision();
    drop(api);
    let api = open(&path);
    // The last write was a delete: its revision must not be used again.
    assert_eq!(api.0.revision(), revision);
    let after = api.get("pods", "a").unwrap();
    assert_eq!(
        (after.bytes(), after.revision()),
        (before.bytes(), before.revision())
    );
    assert!(matches!(
        api.get("configmaps", "b"),
        Err(Error::NotFound(_))
    ));
    assert_eq!(api.list("namespaces").items.len(), 4);
    let next = api.create("configmaps", config("c")).await.unwrap();
    assert_eq!(next.revision(), revision + 1);
}

#[tokio::test]
async fn history_before_a_restart_is_expired() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let api = open(&path);
    api.create("pods", pod("a")).await.unwrap();
    let revision = api.0.revision();
    drop(api);
    let api = open(&path);
    let watch = |after| {
        api.0
            .watch(&WatchRequest::of(kind("pods"), WatchStart::After(after)))
    };
    assert!(matches!(watch(revision - 1), Err(Error::Expired { .. })));
    assert!(watch(revision).is_ok());
    let old = api.0.get(
        &kind("pods"),
        Some("default"),
        "a",
        ReadVersion::Exact(revision - 1),
    );
    assert!(matches!(old, Err(Error::Expired { .. })));
}

#[tokio::test]
async fn deferred_writes_are_on_the_disk_after_the_sync() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let storage = Storage::File(path.clone());
    let api = Api(Engine::open(Options {
        defer_sync: true,
        ..options(storage)
    })
    .unwrap());
    // The content that is found after a loss of power at this moment.
    let found = |name: &str| {
        let copy = folder.path().join(name);
        std::fs::copy(&path, &copy).unwrap();
        let api = open(&copy);
        (names(&api.list("pods")).join(" "), api.0.revision())
    };
    api.create("pods", pod("a")).await.unwrap();
    assert!(found("before").0.is_empty());
    assert_eq!(api.get("pods", "a").unwrap().revision(), api.0.revision());
    api.0.sync().await.unwrap();
    assert_eq!(found("synced"), ("a".to_owned(), api.0.revision()));
    api.create("pods", pod("b")).await.unwrap();
    assert_eq!(found("after"), ("a b".to_owned(), api.0.revision()));
}

#[tokio::test]
async fn a_file_can_be_opened_by_one_engine_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let api = open(&path);
    let second = Engine::open(options(Storage::File(path.clone())));
    assert!(matches!(second, Err(OpenError::InUse { .. })));
    drop(api);
    assert!(Engine::open(options(Storage::File(path))).is_ok());
}

#[tokio::test]
async fn a_dry_run_is_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let api = open(&path);
    let dry = longshore_engine::WriteOptions {
        dry_run: true,
        ..longshore_engine::WriteOptions::default()
    };
    api.create_with("pods", pod("a"), dry).await.unwrap();
    drop(api);
    assert!(open(&path).list("pods").items.is_empty());
}

/// Not a test: the program that is killed. It creates namespaces, each with its service
/// account, deletes every third account, and prints each step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of the test below"]
async fn child_that_writes() {
    let Some(path) = std::env::var_os(FILE) else {
        return;
    };
    let options = Options {
        storage: Storage::File(path.into()),
        ..Options::default()
    };
    let api = Api(Engine::open(options).unwrap());
    let writers = (0..8).map(|writer| {
        let api = api.clone();
        tokio::spawn(async move {
            for i in 0..100_000 {
                let name = format!("w{writer}-{i}");
                let made = api
                    .create("namespaces", json!({"metadata": {"name": name}}))
                    .await
                    .unwrap();
                print(&format!("made {name} {}", made.revision()));
                if i % 3 == 0 {
                    let account = longshore_engine::Target {
                        kind: kind("serviceaccounts"),
                        namespace: Some(name.clone()),
                        name: "default".into(),
                    };
                    let options = longshore_engine::DeleteOptions::default();
                    let delete = longshore_engine::Delete {
                        target: account,
                        options,
                    };
                    print(&format!("deleting {name} 0"));
                    api.0.delete(delete).await.unwrap();
                    print(&format!("deleted {name} 0"));
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

fn print(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "ack {line}").unwrap();
    out.flush().unwrap();
}

#[tokio::test]
async fn acknowledged_writes_survive_a_kill_and_no_write_is_partial() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let (mut made, mut deleting, mut deleted) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut newest = 0;
    // Twice with the same file: the second start finds the file after a kill.
    for lines in [300, 0] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "durability::child_that_writes",
                "--ignored",
                "--nocapture",
            ])
            .env(FILE, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap()).lines();
        if lines > 0 {
            let killed_after = reader
                .by_ref()
                .take(lines)
                .map(Result::unwrap)
                .collect::<Vec<_>>();
            child.kill().unwrap();
            // Lines that were printed before the kill took effect also count.
            let rest = reader.map_while(Result::ok);
            for line in killed_after.into_iter().chain(rest) {
                let Some(line) = line.split_once("ack ").map(|(_, line)| line) else {
                    continue;
                };
                let words: Vec<&str> = line.split(' ').collect();
                let [what, name, version] = words[..] else {
                    continue;
                };
                match what {
                    "made" => made.insert(name.to_owned()),
                    "deleting" => deleting.insert(name.to_owned()),
                    _ => deleted.insert(name.to_owned()),
                };
                newest = newest.max(version.parse::<u64>().unwrap());
            }
        } else {
            child.kill().unwrap();
        }
        child.wait().unwrap();
    }
    assert!(made.len() > 50, "{} writes", made.len());
    let api = open(&path);
    assert!(api.0.revision() >= newest);
    let namespaces = api.list("namespaces");
    let there: BTreeSet<String> = names(&namespaces).into_iter().map(str::to_owned).collect();
    assert!(
        made.is_subset(&there),
        "lost: {:?}",
        made.difference(&there)
    );
    let accounts: BTreeSet<String> = api
        .list("serviceaccounts")
        .items
        .iter()
        .map(|account| account.namespace().unwrap().to_owned())
        .collect();
    for name in &there {
        // A namespace without its account is a partial write, unless the account was
        // deleted.
        assert!(
            accounts.contains(name) || deleting.contains(name) || may_be_deleted_silently(name),
            "{name}"
        );
    }
    assert!(deleted.is_disjoint(&accounts), "deleted, but it exists");
    for object in &namespaces.items {
        assert_eq!(
            object.value()["metadata"]["resourceVersion"],
            object.revision().to_string()
        );
        assert!(object.revision() <= api.0.revision());
    }
}

/// Returns true if the child may have deleted this namespace's account without a line about it.
fn may_be_deleted_silently(name: &str) -> bool {
    name.rsplit('-')
        .next()
        .and_then(|i| i.parse::<u32>().ok())
        .is_some_and(|i| i % 3 == 0)
        && name.starts_with('w')
}

/// Not a test: runs with a small disk, in a separate process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of the test below"]
async fn child_on_a_small_disk() {
    let Some(disk) = std::env::var_os(DISK) else {
        return;
    };
    let path = &Path::new(&disk).join("store.redb");
    let other = path.with_extension("other");
    std::fs::write(&other, vec![1; 2 << 20]).unwrap();
    let api = open(path);
    let big = |name: &str| {
        let mut config = config(name);
        config["data"] = json!({"text": "x".repeat(100 << 10)});
        config
    };
    let mut kept = Vec::new();
    let error = loop {
        let name = format!("c{}", kept.len());
        match api.create("configmaps", big(&name)).await {
            Ok(_) => kept.push(name),
            Err(error) => break error,
        }
        assert!(kept.len() < 100, "the disk is larger");
    };
    // Further objects cannot be stored, and each error states the reason.
    for error in [error, api.create("configmaps", big("d")).await.unwrap_err()] {
        let status = error.status();
        assert_eq!(status.code, 507, "{error}");
        assert_eq!(status.reason.as_str(), "InsufficientStorage");
        assert_eq!(status.details.unwrap().retry_after_seconds, 1);
        assert!(
            status.message.contains("No space left on device"),
            "{error}"
        );
    }
    kept.sort_unstable();
    let check = |api: &Api| assert_eq!(names(&api.list("configmaps")), kept);
    check(&api);
    let revision = api.0.revision();
    std::fs::remove_file(&other).unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while let Err(error) = api.create("pods", pod("after")).await {
        assert!(matches!(error, Error::StorageFull(_)), "{error}");
        assert!(std::time::Instant::now() < deadline, "{error}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    check(&api);
    assert_eq!(api.0.revision(), revision + 1);
    drop(api);
    let api = open(path);
    check(&api);
    assert_eq!(names(&api.list("pods")), ["after"]);
    assert_eq!(api.0.revision(), revision + 1);
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_space() {
    let folder = tempfile::tempdir().unwrap();
    small_disk::run_child(folder.path(), "6m", "durability::child_on_a_small_disk");
}
