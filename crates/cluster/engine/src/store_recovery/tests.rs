//! Injected I/O errors: whatever fails, the file contains exactly the acknowledged batches.

#![allow(clippy::unwrap_used)]

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU8, Ordering},
    },
};

use proptest::prelude::*;
use redb::{BackendError, StorageBackend, backends::FileBackend};

use super::*;

/// The part of a failed operation that was done before the failure.
#[derive(Debug, Clone, Copy)]
enum Done {
    Nothing,
    Half,
    All,
}

/// Fails all changes of the file after `left` of them.
#[derive(Debug)]
struct Faults {
    left: AtomicI64,
    done: AtomicU8,
}

impl Faults {
    fn free() -> Arc<Self> {
        Arc::new(Self {
            left: AtomicI64::new(i64::MAX),
            done: AtomicU8::new(0),
        })
    }

    fn set(&self, left: i64, done: Done) {
        self.done.store(done as u8, Ordering::Relaxed);
        self.left.store(left, Ordering::Relaxed);
    }

    /// `None` if the operation succeeds.
    fn next(&self) -> Option<Done> {
        if self.left.fetch_sub(1, Ordering::Relaxed) > 0 {
            return None;
        }
        Some(match self.done.load(Ordering::Relaxed) {
            0 => Done::Nothing,
            1 => Done::Half,
            _ => Done::All,
        })
    }
}

#[derive(Debug)]
struct Faulty {
    file: FileBackend,
    faults: Arc<Faults>,
}

fn full<T>() -> io::Result<T> {
    Err(ErrorKind::StorageFull.into())
}

type Locked = Result<bool, BackendError>;

impl StorageBackend for Faulty {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        match self.faults.next() {
            None => self.file.set_len(len),
            Some(Done::All) => self.file.set_len(len).and_then(|()| full()),
            Some(_) => full(),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        match self.faults.next() {
            None => self.file.sync_data(),
            Some(_) => full(),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        match self.faults.next() {
            None => self.file.write(offset, data),
            Some(Done::Nothing) => full(),
            Some(Done::Half) => {
                let half = &data[..data.len() / 2];
                self.file.write(offset, half).and_then(|()| full())
            }
            Some(Done::All) => self.file.write(offset, data).and_then(|()| full()),
        }
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked {
        self.file.try_lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}

type Content = BTreeMap<String, Vec<u8>>;

fn read(path: &Path) -> (Store, u64, Content) {
    let mut found = Content::new();
    let (store, revision) = Store::open(path, &mut |_, key, value| {
        found.insert(key.to_owned(), value.to_vec());
        Ok(())
    })
    .unwrap();
    (store, revision, found)
}

/// A store whose file operations fail as `faults` determines.
fn open(path: &Path, faults: &Arc<Faults>) -> (RecoveringStore, Content) {
    let (store, revision, content) = read(path);
    drop(store);
    let faults = faults.clone();
    let open: OpenDatabase = Box::new(move |file| {
        let file = FileBackend::new(file)?;
        let faults = faults.clone();
        store::builder().create_with_backend(Faulty { file, faults })
    });
    let file = longshore_files::open(path, OpenMode::ReadWrite).unwrap();
    let first = Store::of(open(file).unwrap());
    let mut store = RecoveringStore::new(path, first, revision, false);
    store.open = open;
    store.min_delay = Duration::ZERO;
    (store, content)
}

/// The change of a key to a value of the given size in bytes, or its removal.
type Change = (u8, Option<u16>);

#[derive(Debug, Clone)]
enum Step {
    /// Commits a batch.
    Commit(Vec<Change>),
    /// Fails all operations after the given number.
    Fail(i64, Done),
    /// Ends the failures.
    Free,
}

fn step() -> impl Strategy<Value = Step> {
    let change = (0..6u8, proptest::option::weighted(0.8, 0..9000u16));
    let done = prop_oneof![Just(Done::Nothing), Just(Done::Half), Just(Done::All)];
    prop_oneof![
        6 => proptest::collection::vec(change, 1..5).prop_map(Step::Commit),
        2 => (0..40i64, done).prop_map(|(left, done)| Step::Fail(left, done)),
        2 => Just(Step::Free),
    ]
}

/// The records of a batch that follows `content`, and the content after it.
fn batch(content: &Content, changes: &[Change], mark: u8) -> (Vec<Record>, Content) {
    let mut after = content.clone();
    let records = changes.iter().map(|(key, bytes)| {
        let key = format!("n/{key}");
        let before = after.get(&key).cloned();
        let value = bytes.map(|bytes| vec![mark; usize::from(bytes)]);
        match value.clone() {
            Some(value) => after.insert(key.clone(), value),
            None => after.remove(&key),
        };
        Record {
            kind: "pods".into(),
            key: key.into(),
            value: value.map(Into::into),
            before: before.map(Into::into),
        }
    });
    (records.collect(), after)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn exactly_the_acknowledged_batches_are_stored(
        steps in proptest::collection::vec(step(), 1..30),
        ends_full: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        let faults = Faults::free();
        let (mut store, mut content) = open(&path, &faults);
        let (mut revision, mut fails) = (0, false);
        for (mark, step) in steps.into_iter().enumerate() {
            match step {
                Step::Fail(left, done) => {
                    faults.set(left, done);
                    fails = true;
                }
                Step::Free => {
                    faults.set(i64::MAX, Done::Nothing);
                    fails = false;
                }
                Step::Commit(changes) => {
                    let (records, after) = batch(&content, &changes, u8::try_from(mark).unwrap());
                    let next = revision + u64::try_from(records.len()).unwrap();
                    // An attempt that takes long delays the next.
                    if let Some(outage) = &mut store.outage {
                        outage.retry_at = Instant::now();
                    }
                    match store.commit(next, &records) {
                        Ok(()) => (revision, content) = (next, after),
                        Err(error) => prop_assert!(fails, "{}", error),
                    }
                }
            }
        }
        if !ends_full {
            faults.set(i64::MAX, Done::Nothing);
        }
        let undecided = store.undecided.as_ref().map(|(revision, _)| *revision);
        drop(store);
        let (_store, found, stored) = read(&path);
        // If the file can still not be written, the last batch may be stored.
        if !(ends_full && undecided == Some(found)) {
            prop_assert_eq!(found, revision);
            prop_assert!(stored == content, "{:?}", stored.keys());
        }
    }
}

fn put(key: &str) -> Vec<Record> {
    vec![Record {
        kind: "pods".into(),
        key: key.into(),
        value: Some("x".into()),
        before: None,
    }]
}

#[test]
fn an_error_is_reported_as_what_it_is_until_the_next_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    let faults = Faults::free();
    let (mut store, _) = open(&path, &faults);
    store.min_delay = Duration::from_secs(3600);
    faults.set(0, Done::Nothing);
    let error = store.commit(1, &put("n/a")).unwrap_err();
    assert!(error.is_full, "{error}");
    faults.set(i64::MAX, Done::Nothing);
    // The delay is not over.
    assert_eq!(store.commit(1, &put("n/b")).unwrap_err(), error);
    store.outage.as_mut().unwrap().retry_at = Instant::now();
    store.commit(1, &put("n/c")).unwrap();
    drop(store);
    let (_store, revision, content) = read(&path);
    let keys: Vec<_> = content.keys().map(String::as_str).collect();
    assert_eq!((revision, keys), (1, vec!["n/c"]));
}

#[test]
fn another_file_is_not_taken_for_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    let faults = Faults::free();
    let (mut store, _) = open(&path, &faults);
    faults.set(0, Done::Nothing);
    store.commit(1, &put("n/a")).unwrap_err();
    faults.set(i64::MAX, Done::Nothing);
    let aside = path.with_extension("aside");
    std::fs::rename(&path, &aside).unwrap();
    std::fs::write(&path, "").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let error = store.commit(1, &put("n/a")).unwrap_err();
    assert!(error.problem.contains("restart the cluster"), "{error}");
    assert_eq!(path.metadata().unwrap().len(), 0, "it was changed");
    std::fs::rename(&aside, &path).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    store.commit(1, &put("n/a")).unwrap();
}

/// Ways in which the file or its folder is lost while the store is open. The flag is true if the
/// loss can be undone.
const LOSSES: [(&str, bool); 6] = [
    ("removed", false),
    ("renamed", true),
    ("folder renamed", true),
    ("folder removed", false),
    ("replaced", false),
    ("emptied", false),
];

#[test]
fn writes_to_a_file_that_is_gone_are_refused() {
    for (loss, returns) in LOSSES {
        let parent = tempfile::tempdir().unwrap();
        let (folder, aside) = (parent.path().join("a"), parent.path().join("b"));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("a.redb");
        let (mut store, _) = open(&path, &Faults::free());
        store.commit(1, &put("n/a")).unwrap();
        match loss {
            "removed" => std::fs::remove_file(&path).unwrap(),
            "renamed" => std::fs::rename(&path, path.with_extension("aside")).unwrap(),
            "folder renamed" => std::fs::rename(&folder, &aside).unwrap(),
            "folder removed" => std::fs::remove_dir_all(&folder).unwrap(),
            "replaced" => {
                std::fs::copy(&path, path.with_extension("copy")).unwrap();
                std::fs::rename(path.with_extension("copy"), &path).unwrap();
            }
            _ => {
                let file = File::options().write(true).open(&path).unwrap();
                file.set_len(0).unwrap();
            }
        }
        let error = store.commit(2, &put("n/b")).unwrap_err();
        assert!(
            error.problem.contains("restart the cluster"),
            "{loss}: {error}"
        );
        store.outage.as_mut().unwrap().retry_at = Instant::now();
        store.commit(2, &put("n/b")).unwrap_err();
        match loss {
            "renamed" => std::fs::rename(path.with_extension("aside"), &path).unwrap(),
            "folder renamed" => std::fs::rename(&aside, &folder).unwrap(),
            _ => {}
        }
        store.outage.as_mut().unwrap().retry_at = Instant::now();
        assert_eq!(store.commit(2, &put("n/c")).is_ok(), returns, "{loss}");
        drop(store);
        if returns {
            let (_store, revision, content) = read(&path);
            let keys: Vec<_> = content.keys().map(String::as_str).collect();
            assert_eq!((revision, keys), (2, vec!["n/a", "n/c"]), "{loss}");
        }
    }
}

#[test]
fn deferred_commits_reach_the_disk_with_the_first_that_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    let faults = Faults::free();
    let (mut store, content) = open(&path, &faults);
    store.durability = Durability::None;
    // The disk refuses all operations.
    faults.set(0, Done::Nothing);
    let (first, after) = batch(&content, &[(1, Some(9))], 1);
    store.commit(1, &first).unwrap();
    let (second, after) = batch(&after, &[(2, Some(9)), (1, None)], 2);
    store.commit(3, &second).unwrap();
    faults.set(i64::MAX, Done::Nothing);
    store.sync_commits();
    store.commit(3, &[]).unwrap();
    drop(store);
    let (_, revision, content) = read(&path);
    assert_eq!((revision, content), (3, after));
}

#[test]
fn deferred_commits_that_the_disk_refuses_are_reported_as_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    let faults = Faults::free();
    let (mut store, content) = open(&path, &faults);
    store.durability = Durability::None;
    store
        .commit(1, &batch(&content, &[(1, Some(9))], 1).0)
        .unwrap();
    store.sync_commits();
    faults.set(0, Done::Nothing);
    store.commit(1, &[]).unwrap_err();
    faults.set(i64::MAX, Done::Nothing);
    std::thread::sleep(Duration::from_millis(300));
    let error = store.commit(2, &put("n/a")).unwrap_err();
    assert!(error.problem.contains("first changes"), "{error}");
    assert!(error.problem.contains("restart the cluster"), "{error}");
    drop(store);
    assert_eq!(read(&path).2, content);
}
