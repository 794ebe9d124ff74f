//! Tests of the cache with folders of this machine.
#![allow(clippy::unwrap_used)]

use std::{
    collections::BTreeMap,
    fs::{self, File, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, SystemTime},
};

use super::*;

fn snapshot(folder: &Path) -> Result<Snapshot, DataError> {
    scan(folder, &ScanOptions::default())
}

fn place(cache: &DataCache, snapshot: &Snapshot) -> Result<Placed, DataError> {
    cache.place_snapshot(snapshot, &|_| {}, &AtomicBool::new(false))
}

/// A folder with some files, and a cache.
struct Case {
    _parent: tempfile::TempDir,
    folder: std::path::PathBuf,
    cache: DataCache,
}

impl Case {
    fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("data");
        fs::create_dir_all(folder.join("train/empty")).unwrap();
        fs::write(folder.join("train/a.bin"), "aaaa").unwrap();
        fs::write(folder.join("train/same.bin"), "aaaa").unwrap();
        fs::write(folder.join("labels.csv"), "x,y\n").unwrap();
        fs::write(folder.join("tool"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(folder.join("tool"), Permissions::from_mode(0o750)).unwrap();
        symlink("../labels.csv", folder.join("train/labels")).unwrap();
        let cache = DataCache::new(parent.path().join("cache"));
        Self {
            _parent: parent,
            folder,
            cache,
        }
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        for data in self.cache.kept().unwrap_or_default() {
            let _ = longshore_files::remove_tree(&self.cache.tree(&data.sha256));
        }
    }
}

#[test]
fn a_folder_is_placed_read_only_and_equal_contents_are_kept_once() {
    let case = Case::new();
    let found = snapshot(&case.folder).unwrap();
    let placed = place(&case.cache, &found).unwrap();
    assert_eq!(placed.added, 4 + 4 + 10);
    let read = |name: &str| fs::read_to_string(placed.path.join(name)).unwrap();
    assert_eq!(read("train/a.bin"), "aaaa");
    assert_eq!(read("train/labels"), "x,y\n");
    assert!(placed.path.join("train/empty").is_dir());
    let stat = |name: &str| fs::metadata(placed.path.join(name)).unwrap();
    assert_eq!(stat("train/a.bin").ino(), stat("train/same.bin").ino());
    assert_eq!(stat("train/a.bin").mode() & 0o777, 0o444);
    assert_eq!(stat("tool").mode() & 0o777, 0o555);
    assert_eq!(stat("train").mode() & 0o777, 0o555);
    let again = place(&case.cache, &snapshot(&case.folder).unwrap()).unwrap();
    assert_eq!((again.added, again.path), (0, placed.path));
}

#[test]
fn a_changed_folder_is_copied_by_difference() {
    let case = Case::new();
    let first = place(&case.cache, &snapshot(&case.folder).unwrap()).unwrap();
    fs::write(case.folder.join("labels.csv"), "x,y,z\n").unwrap();
    let second = place(&case.cache, &snapshot(&case.folder).unwrap()).unwrap();
    assert_eq!(second.added, 6);
    assert_ne!(first.path, second.path);
    let read = |placed: &Placed| fs::read_to_string(placed.path.join("labels.csv")).unwrap();
    assert_eq!(
        (read(&first), read(&second)),
        ("x,y\n".into(), "x,y,z\n".into())
    );
}

#[test]
fn changed_files_of_the_cache_are_replaced() {
    let case = Case::new();
    let found = snapshot(&case.folder).unwrap();
    let placed = place(&case.cache, &found).unwrap();
    let file = placed.path.join("labels.csv");
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    fs::write(&file, "evil").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
    let again = place(&case.cache, &found).unwrap();
    assert_eq!(again.added, 4);
    assert_eq!(
        fs::read_to_string(again.path.join("labels.csv")).unwrap(),
        "x,y\n"
    );
}

#[test]
fn unchanged_files_are_not_read_again() {
    let case = Case::new();
    let old = SystemTime::now() - Duration::from_secs(3600);
    let cache = tempfile::tempdir().unwrap();
    let options = ScanOptions {
        cache: Some(cache.path().join("index")),
        ..ScanOptions::default()
    };
    assert_eq!(scan(&case.folder, &options).unwrap().read, 4);
    // The kernel sets the change times, so the test waits until the files are old.
    std::thread::sleep(Duration::from_millis(2100));
    let first = scan(&case.folder, &options).unwrap();
    let second = scan(&case.folder, &options).unwrap();
    assert_eq!((first.read, second.read), (4, 0));
    assert_eq!(first.sha256, second.sha256);
    let file = File::options()
        .write(true)
        .open(case.folder.join("labels.csv"))
        .unwrap();
    file.set_modified(old).unwrap();
    assert_eq!(scan(&case.folder, &options).unwrap().read, 1);
    fs::write(case.folder.join("labels.csv"), "a,b\n").unwrap();
    let third = scan(&case.folder, &options).unwrap();
    assert_eq!(third.read, 1);
    assert_ne!(third.sha256, second.sha256);
}

#[test]
fn a_file_that_changes_after_the_scan_is_reported() {
    let case = Case::new();
    let found = snapshot(&case.folder).unwrap();
    fs::write(case.folder.join("labels.csv"), "new\n").unwrap();
    let error = place(&case.cache, &found).unwrap_err().to_string();
    assert!(
        error.contains("labels.csv changed while it was read"),
        "{error}"
    );
    fs::remove_file(case.folder.join("labels.csv")).unwrap();
    let error = place(&case.cache, &found).unwrap_err().to_string();
    assert!(
        error.contains("labels.csv changed while it was read"),
        "{error}"
    );
    assert!(case.cache.kept().unwrap().is_empty());
}

#[test]
fn entries_that_cannot_be_data_are_named() {
    let case = Case::new();
    let refused = |problem: &str| {
        let error = snapshot(&case.folder).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
        assert!(error.contains(".longshoreignore"), "{error}");
    };
    symlink("/etc/passwd", case.folder.join("bad")).unwrap();
    refused("leaves the data folder");
    fs::remove_file(case.folder.join("bad")).unwrap();
    symlink("../../etc", case.folder.join("bad")).unwrap();
    refused("leaves the data folder");
    fs::remove_file(case.folder.join("bad")).unwrap();
    let odd = std::os::unix::ffi::OsStrExt::as_bytes(std::ffi::OsStr::new("bad"));
    let odd = [odd, b"\xff"].concat();
    let odd: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(&odd);
    fs::write(case.folder.join(odd), "").unwrap();
    refused("not UTF-8");
    fs::remove_file(case.folder.join(odd)).unwrap();
    std::os::unix::net::UnixListener::bind(case.folder.join("bad")).unwrap();
    refused("a socket");
    fs::write(case.folder.join(".longshoreignore"), "bad\n").unwrap();
    assert_eq!(snapshot(&case.folder).unwrap().excluded, 1);
}

#[test]
fn manifests_that_leave_their_folder_are_refused() {
    let sha256 = "a".repeat(64);
    let file = |path: &str| format!(r#"{{"path":{path:?},"size":1,"content":"{sha256}"}}"#);
    let with = |files: &[&str], links: &str| {
        let files: Vec<String> = files.iter().map(|path| file(path)).collect();
        let text = format!(
            r#"{{"version":1,"files":[{}],"links":[{links}]}}"#,
            files.join(",")
        );
        Manifest::parse(&text)
    };
    assert!(with(&["a/b"], "").is_ok());
    for paths in [
        &["../a"][..],
        &["/a"],
        &["a//b"],
        &["a/./b"],
        &["a\n"],
        &["a", "a"],
        &["a", "a/b"],
    ] {
        assert!(with(paths, "").is_err(), "{paths:?}");
    }
    let link = |path: &str, target: &str| format!(r#"{{"path":{path:?},"target":{target:?}}}"#);
    assert!(with(&["a/b"], &link("a/c", "b")).is_ok());
    for (path, target) in [("c", "/etc"), ("c", ".."), ("a/c", "../../x"), ("a", "x")] {
        assert!(
            with(&["a/b"], &link(path, target)).is_err(),
            "{path} {target}"
        );
    }
    let text = with(&["a"], "").unwrap().to_text();
    let unknown = text.replace(&sha256, "../../etc/passwd");
    assert!(Manifest::parse(&unknown).is_err());
    let access = AccessList {
        manifest: text.clone(),
        urls: BTreeMap::new(),
    };
    let packed = access.pack().unwrap();
    let sha256 = Manifest::sha256(&text);
    assert!(AccessList::unpack(&packed.bytes, &sha256).is_ok());
    let error = AccessList::unpack(&packed.bytes, &"b".repeat(64)).unwrap_err();
    assert!(error.to_string().contains("its sha256 is"), "{error}");
}

#[test]
fn removed_data_frees_only_contents_that_no_other_data_has() {
    let case = Case::new();
    let first = place(&case.cache, &snapshot(&case.folder).unwrap()).unwrap();
    fs::write(case.folder.join("big"), vec![7; 1 << 20]).unwrap();
    let second = place(&case.cache, &snapshot(&case.folder).unwrap()).unwrap();
    let kept = case.cache.kept().unwrap();
    assert_eq!(kept.len(), 2);
    let of = |placed: &Placed| {
        let name = placed.path.file_name().unwrap().to_str().unwrap();
        kept.iter()
            .find(|data| data.sha256 == name)
            .unwrap()
            .clone()
    };
    let alone = || case.cache.alone().unwrap().unwrap();
    let listed = of(&second);
    // Data that is used again after it was listed is kept.
    place(&case.cache, &snapshot(&case.folder).unwrap()).unwrap();
    let (removed, _) = alone().remove(&[listed]).unwrap();
    assert!(removed.is_empty() && second.path.exists());
    let kept = case.cache.kept().unwrap();
    let of = |placed: &Placed| {
        let name = placed.path.file_name().unwrap().to_str().unwrap();
        let mut kept = kept.iter();
        kept.find(|data| data.sha256 == name).unwrap().clone()
    };
    let (removed, freed) = alone().remove(&[of(&second)]).unwrap();
    assert_eq!(removed.len(), 1);
    assert!(freed >= 1 << 20, "{freed}");
    assert!(!second.path.exists());
    assert_eq!(
        fs::read_to_string(first.path.join("train/a.bin")).unwrap(),
        "aaaa"
    );
    // Least recently used first, but nothing that was used just now.
    let now = SystemTime::now();
    assert!(case.cache.over_limit(0, now, |_| false).unwrap().is_empty());
    let later = now + Duration::from_secs(3600);
    assert_eq!(case.cache.over_limit(0, later, |_| false).unwrap().len(), 1);
    assert!(
        case.cache
            .over_limit(0, later, |_| true)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn room_is_made_by_removing_data_that_no_task_holds() {
    let case = Case::new();
    let found = snapshot(&case.folder).unwrap();
    let placed = place(&case.cache, &found).unwrap();
    let manifest = case.cache.manifest(&found.sha256);
    let old = || {
        let hour = SystemTime::now() - Duration::from_secs(7200);
        File::open(&manifest).unwrap().set_modified(hour).unwrap();
    };
    old();
    // Holds the data like a task, but for a limited time.
    let held = File::open(&placed.path).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockShared).unwrap();
    case.cache.make_room(&Manifest::default(), 0).unwrap();
    assert!(placed.path.exists());
    drop(held);
    case.cache
        .make_room(&Manifest::default(), u64::MAX)
        .unwrap();
    assert!(placed.path.exists(), "the limit is not exceeded");
    case.cache.make_room(&Manifest::default(), 0).unwrap();
    assert!(!placed.path.exists());
    assert_eq!(case.cache.bytes(), 0);
}

#[test]
fn processes_that_place_the_same_folder_wait_for_each_other() {
    let case = Arc::new(Case::new());
    let found = snapshot(&case.folder).unwrap();
    let added: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| place(&case.cache, &found).unwrap().added))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(
        added.iter().filter(|added| **added > 0).count(),
        1,
        "{added:?}"
    );
}

#[test]
fn a_stopped_copy_leaves_nothing_that_counts_as_complete() {
    let case = Case::new();
    let found = snapshot(&case.folder).unwrap();
    let stopped = case
        .cache
        .place_snapshot(&found, &|_| {}, &AtomicBool::new(true));
    assert!(matches!(stopped, Err(DataError::Stopped)));
    assert!(case.cache.kept().unwrap().is_empty());
    assert!(place(&case.cache, &found).unwrap().added > 0);
}
