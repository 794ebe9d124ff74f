//! Tests of the cache of packed folders.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    time::{Duration, SystemTime},
};

use rustix::{fs::inotify, io::Errno};

use super::{super::*, folder, noise};

/// A folder with the given files and an incompressible file, and a cache.
struct Place {
    folder: tempfile::TempDir,
    cache: tempfile::TempDir,
    options: PackOptions,
}

impl Place {
    /// Makes the files old, because recently written files do not count as unchanged.
    fn settled(files: &[(&str, &str)], large: &[u8]) -> Self {
        let (folder, cache) = (folder(files), tempfile::tempdir().unwrap());
        fs::write(folder.path().join("large"), large).unwrap();
        let options = PackOptions {
            cache: Some(cache.path().join("bundles")),
            ..PackOptions::default()
        };
        std::thread::sleep(Duration::from_millis(2_100));
        Self {
            folder,
            cache,
            options,
        }
    }

    fn pack(&self) -> Bundle {
        pack(self.folder.path(), &self.options, |_| {}).unwrap()
    }

    fn cached(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.cache.path().join("bundles")).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    }
}

/// Reports the files of a folder that are opened.
struct Opened(OwnedFd);

impl Opened {
    fn watch(folder: &Path) -> Self {
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&watch, folder, inotify::WatchFlags::OPEN).unwrap();
        Self(watch)
    }

    /// The files opened since the last call.
    fn files(&self) -> BTreeSet<String> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.0, &mut buffer);
        let mut names = BTreeSet::new();
        loop {
            match events.next() {
                // The folder itself has no name.
                Ok(event) => names.extend(
                    event
                        .file_name()
                        .map(|name| name.to_string_lossy().into_owned()),
                ),
                Err(Errno::AGAIN) => return names,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn no_file_of_an_unchanged_folder_is_read_until_its_archive_is_needed() {
    let key = "[settings]\nthis = 'is looked into for keys'\n";
    let place = Place::settled(&[("a.py", "1"), ("settings.toml", key)], &noise());
    let opened = Opened::watch(place.folder.path());
    let first = place.pack();
    assert!(first.is_packed());
    let all = ["a.py", "large", "settings.toml"].map(str::to_owned);
    assert_eq!(opened.files(), BTreeSet::from(all.clone()));

    assert!(
        scan(place.folder.path(), &place.options)
            .unwrap()
            .is_unchanged()
    );
    let again = place.pack();
    assert!(!again.is_packed());
    assert_eq!((&again.sha256, again.size), (&first.sha256, first.size));
    assert_eq!(again.report, first.report);
    assert_eq!(opened.files(), BTreeSet::new());

    assert_eq!(again.bytes().unwrap(), first.bytes().unwrap());
    assert!(again.is_packed());
    assert_eq!(opened.files(), BTreeSet::from(all));
}

#[test]
fn a_small_archive_of_a_large_folder_is_cached() {
    let place = Place::settled(&[], &[b'x'; 16 << 20]);
    let first = place.pack();
    let opened = Opened::watch(place.folder.path());
    let again = place.pack();
    assert_eq!(again.bytes().unwrap(), first.bytes().unwrap());
    assert_eq!(again.sha256, first.sha256);
    assert_eq!(opened.files(), BTreeSet::new());

    // A damaged archive is created again.
    for damaged in [
        &b"short"[..],
        &vec![0; usize::try_from(first.size).unwrap()],
    ] {
        let mut cached = place.cached().into_iter();
        let kept = cached.find(|path| path.extension() == Some("gz".as_ref()));
        fs::write(kept.unwrap(), damaged).unwrap();
        assert_eq!(place.pack().bytes().unwrap(), first.bytes().unwrap());
        assert_eq!(opened.files(), BTreeSet::from(["large".to_owned()]));
    }
}

#[test]
fn a_changed_folder_is_packed_again() {
    let place = Place::settled(&[("a.py", "1")], &noise());
    let first = place.pack();

    // An unusable cache is not an error.
    for file in place.cached() {
        fs::write(file, "{").unwrap();
    }
    assert!(place.pack().is_packed());
    assert!(!place.pack().is_packed());
    let nowhere = PackOptions {
        cache: Some(place.folder.path().join("a.py/cache")),
        ..PackOptions::default()
    };
    pack(place.folder.path(), &nowhere, |_| {}).unwrap();

    // With the same size and an old modification time, the change time differs.
    let late = place.pack();
    let file = place.folder.path().join("a.py");
    fs::write(&file, "2").unwrap();
    // Only the modification time can be set, not the change time.
    let written = fs::File::options().write(true).open(&file).unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    written.set_modified(long_ago).unwrap();
    let error = late.open().err().unwrap().to_string();
    assert!(error.contains("changed before it was packed"), "{error}");
    let changed = place.pack();
    assert!(changed.is_packed());
    assert_ne!(changed.sha256, first.sha256);
}

/// An entry of a version with a different format must not cause permanent failures.
#[test]
fn a_wrong_cache_entry_is_removed() {
    let place = Place::settled(&[], &noise());
    let first = place.pack();
    for file in place.cached() {
        let text = fs::read_to_string(&file).unwrap();
        fs::write(file, text.replace(&first.sha256, &"0".repeat(64))).unwrap();
    }
    let wrong = place.pack();
    assert_eq!(wrong.sha256, "0".repeat(64));
    let made = wrong.make(&AtomicBool::new(false), |_| {});
    assert!(matches!(made, Err(BundleError::FolderChanged { .. })));
    assert_eq!(place.pack().sha256, first.sha256);
}

#[test]
fn secrets_that_are_no_longer_allowed_are_rejected() {
    let mut place = Place::settled(&[(".env", "A=1")], &noise());
    place.options.allow_secrets = vec![".env".to_owned()];
    place.pack();
    assert!(!place.pack().is_packed());
    place.options.allow_secrets.clear();
    let refused = pack(place.folder.path(), &place.options, |_| {});
    assert!(matches!(refused, Err(BundleError::Secrets(_))));
}

/// The cache entry of a folder that is not small.
fn cache_at(place: &Path, folder: &Path) -> Cache {
    let sparse = fs::File::create(folder.join("large")).unwrap();
    sparse.set_len(5 << 20).unwrap();
    let walked = walk::walk(folder, &PackOptions::default()).unwrap();
    Cache::of(place, folder, &walked, &[])
}

fn in_seconds(seconds: u64) -> SystemTime {
    SystemTime::now() + Duration::from_secs(seconds)
}

#[test]
fn a_folder_that_changes_during_packing_is_not_cached() {
    let (folder, cache) = (folder(&[("a.py", "1")]), tempfile::tempdir().unwrap());
    let cache = cache_at(&cache.path().join("bundles"), folder.path());
    let data = Data::Memory(Bytes::from_static(b"abc"));
    let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    cache.remember(&data, sha256, 3, in_seconds(1));
    assert_eq!(cache.find(), None);
    cache.remember(&data, sha256, 3, in_seconds(60));
    let known = cache.find().unwrap();
    assert_eq!((&*known.sha256, known.data), (sha256, Some("abc".into())));
}

/// A cache entry that another user could have written is ignored, because it could assign other
/// code to the folder.
#[test]
fn a_cache_that_others_can_write_is_ignored() {
    use std::os::unix::fs::PermissionsExt as _;
    let (folder, place) = (folder(&[("a.py", "1")]), tempfile::tempdir().unwrap());
    let cache = cache_at(&place.path().join("bundles"), folder.path());
    let data = Data::Memory(Bytes::new());
    cache.remember(&data, "abc", 5 << 20, in_seconds(60));
    assert!(cache.find().is_some());
    let shared = fs::Permissions::from_mode(0o777);
    fs::set_permissions(place.path().join("bundles"), shared).unwrap();
    assert_eq!(cache.find(), None);
}

#[test]
fn outdated_cache_entries_are_removed() {
    let place = Place::settled(&[], &noise());
    place.pack();
    let old = place.cached().remove(0).with_file_name("old.json");
    let file = fs::File::create(&old).unwrap();
    let age = |days: u64| SystemTime::now() - Duration::from_secs(days * 24 * 3600);
    file.set_modified(age(59)).unwrap();
    let repacked = || {
        for file in place.cached() {
            if file != old {
                fs::remove_file(file).unwrap();
            }
        }
        place.pack();
        old.exists()
    };
    assert!(repacked());
    file.set_modified(age(61)).unwrap();
    assert!(!repacked());
}
