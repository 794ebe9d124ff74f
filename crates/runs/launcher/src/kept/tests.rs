//! Tests of keeping and removing bundles.
#![allow(clippy::unwrap_used)]

use std::{fs, path::PathBuf, time::Duration};

use longshore_diagnosis::names;

use super::{
    collect::{Removal, choose},
    ready::NoCopy,
    *,
};
use crate::store;

const HOUR: Duration = Duration::from_secs(3600);

fn name(letter: char) -> String {
    letter.to_string().repeat(64)
}

fn names(letters: &str) -> std::collections::BTreeSet<String> {
    letters.chars().map(name).collect()
}

struct Folder {
    kept: Kept,
    _dir: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            kept: Kept::new(dir.path()),
            _dir: dir,
        }
    }

    fn path(&self, letter: char) -> PathBuf {
        self.kept.root().join(store::address(&name(letter)))
    }

    /// Adds a bundle of 1000 bytes with this time since its last use.
    fn add(&self, letter: char, age: Duration) {
        let path = self.path(letter);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, [7; 1000]).unwrap();
        self.touch(letter, age);
    }

    fn touch(&self, letter: char, age: Duration) {
        let file = fs::File::open(self.path(letter)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    fn bundle(&self, letter: char) -> KeptBundle {
        let bundles = self.kept.bundles().unwrap();
        let mut bundles = bundles.into_iter();
        bundles.find(|one| one.sha256 == name(letter)).unwrap()
    }

    fn left(&self) -> String {
        let bundles = self.kept.bundles().unwrap();
        let letters = bundles.iter().map(|bundle| &bundle.sha256[..1]);
        letters.collect()
    }
}

#[test]
fn unused_bundles_are_removed_after_a_day_or_when_space_is_needed() {
    let folder = Folder::new();
    for (letter, hours) in [('a', 50), ('b', 40), ('c', 30), ('d', 20), ('e', 10)] {
        folder.add(letter, HOUR * hours);
    }
    folder.add('f', Duration::from_secs(60));
    let bundles = folder.kept.bundles().unwrap();
    let chosen = |needed: &str, referred: &str, limit: u64| {
        let uses = Uses::of_names(names(needed), names(referred));
        letters(&choose(&bundles, &uses, SystemTime::now(), limit))
    };
    assert_eq!(chosen("", "", u64::MAX), "abc");
    assert_eq!(
        chosen("a", "b", u64::MAX),
        "c",
        "of active runs, and of others"
    );
    assert_eq!(chosen("", "abcdef", 3500), "abc", "the oldest use first");
    assert_eq!(chosen("ab", "abcdef", 3500), "cde", "what is needed stays");
    let submitted = "what may be submitted just now stays";
    assert_eq!(chosen("ab", "abcdef", 0), "cde", "{submitted}");
    assert_eq!(chosen("abcdef", "", 0), "");
}

/// The bundles to remove; `-` marks a copy.
fn letters(chosen: &[(&KeptBundle, Removal)]) -> String {
    let one = |(bundle, removal): &(&KeptBundle, Removal)| match removal {
        Removal::Copy => format!("-{}", &bundle.sha256[..1]),
        Removal::All => bundle.sha256[..1].to_owned(),
    };
    chosen.iter().map(one).collect()
}

#[test]
fn copies_are_removed_before_bundles() {
    let folder = Folder::new();
    for (letter, hours) in [('a', 3), ('b', 2), ('c', 1)] {
        folder.add(letter, HOUR * hours);
    }
    let mut bundles = folder.kept.bundles().unwrap();
    bundles[1].copy = Some(5000);
    bundles[2].copy = Some(5000);
    let chosen = |needed: &str, limit: u64| {
        let uses = Uses::of_names(names(needed), names("abc"));
        letters(&choose(&bundles, &uses, SystemTime::now(), limit))
    };
    assert_eq!(chosen("", 13000), "");
    assert_eq!(chosen("", 12000), "-b");
    assert_eq!(chosen("bc", 7000), "-b-c", "of active runs, too");
    assert_eq!(chosen("b", 2500), "-b-ca");
    assert_eq!(chosen("b", 0), "-b-cac");
}

/// A kept bundle of a folder with a file and a link, and its sha256.
fn packed(folder: &Folder) -> String {
    let code = tempfile::tempdir().unwrap();
    fs::create_dir(code.path().join("sub")).unwrap();
    fs::write(code.path().join("sub/file"), "hello").unwrap();
    std::os::unix::fs::symlink("sub/file", code.path().join("link")).unwrap();
    let bundle = crate::bundle::pack(code.path(), &crate::PackOptions::default(), |_| {}).unwrap();
    let path = folder.kept.path(&bundle.sha256);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bundle.bytes().unwrap()).unwrap();
    bundle.sha256
}

#[test]
fn a_copy_is_used_once_and_removed_with_its_bundle() {
    let folder = Folder::new();
    let kept = &folder.kept;
    let sha256 = packed(&folder);
    let home = |name: &str| {
        let home = kept.root().join(name);
        fs::create_dir(&home).unwrap();
        home
    };
    assert!(!kept.give(&sha256, &home("none")), "there is none yet");
    assert_eq!(kept.make_copy(&sha256, 1000).unwrap(), 5);
    assert_eq!(
        (
            kept.usage().unwrap().ready_copies.bytes,
            kept.copies().len()
        ),
        (5, 1)
    );
    let mode = fs::metadata(kept.root().join("ready"))
        .unwrap()
        .permissions();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
        0o700
    );

    let (first, second) = (home("first"), home("second"));
    assert!(kept.give(&sha256, &first));
    assert!(!kept.give(&sha256, &second), "another pod has it");
    assert_eq!(
        fs::read_to_string(first.join("work/link")).unwrap(),
        "hello"
    );
    assert_eq!(fs::read_dir(second).unwrap().count(), 0);
    // A non-empty volume is not changed.
    kept.make_copy(&sha256, 1000).unwrap();
    fs::write(first.join("work/own"), "").unwrap();
    fs::remove_file(first.join(names::READY)).unwrap();
    assert!(!kept.give(&sha256, &first));
    assert!(first.join("work/own").exists() && !first.join(names::READY).exists());
    assert_eq!(kept.copies().len(), 1, "it is still there");

    let bundles = kept.bundles().unwrap();
    assert!(kept.remove(&bundles[0]).unwrap());
    assert_eq!(kept.copies(), []);
    assert!(!kept.give("../escape", &home("third")));
}

#[test]
fn bundles_that_do_not_fit_or_are_damaged_are_not_unpacked() {
    let folder = Folder::new();
    let sha256 = packed(&folder);
    let refused = folder.kept.make_copy(&sha256, 4).unwrap_err();
    assert!(matches!(refused, NoCopy::NoRoom), "{refused:?}");
    fs::write(folder.kept.path(&sha256), "other").unwrap();
    let refused = folder.kept.make_copy(&sha256, 1000).unwrap_err();
    let NoCopy::Failed(reason) = refused else {
        panic!("{refused:?}")
    };
    assert!(reason.contains("is damaged"), "{reason}");
    assert_eq!(folder.kept.copies(), []);
    let boots = fs::read_dir(folder.kept.root().join("ready")).unwrap();
    for boot in boots {
        assert_eq!(fs::read_dir(boot.unwrap().path()).unwrap().count(), 0);
    }
}

#[test]
fn copies_of_killed_processes_and_of_earlier_boots_are_removed() {
    let folder = Folder::new();
    let sha256 = packed(&folder);
    folder.kept.make_copy(&sha256, 1000).unwrap();
    let ready = folder.kept.copies()[0].path.parent().unwrap().to_owned();
    let unfinished = ready.join(".tmpXyz/work");
    let earlier = ready.with_file_name("00000000-0000");
    for path in [&unfinished, &earlier.join(format!("{sha256}.5"))] {
        fs::create_dir_all(path).unwrap();
        fs::write(path.join("half"), "x").unwrap();
    }
    folder.kept.clean_copies().unwrap();
    assert_eq!(folder.kept.copies().len(), 1);
    assert!(!unfinished.exists() && !ready.join(".tmpXyz").exists() && !earlier.exists());
    // Copies whose bundle was deleted by other processes are removed, too.
    fs::remove_file(folder.kept.path(&sha256)).unwrap();
    let freed = folder.kept.collect(&Uses::default(), SystemTime::now());
    assert_eq!((freed.unwrap(), folder.kept.copies().len()), (5, 0));
}

#[test]
fn a_bundle_that_is_used_during_its_removal_is_kept() {
    let folder = Folder::new();
    folder.add('a', HOUR);
    let seen = folder.bundle('a');
    folder.touch('a', Duration::ZERO);
    assert!(!folder.kept.remove(&seen).unwrap());
    assert_eq!(folder.left(), "a");
    assert!(folder.kept.remove(&folder.bundle('a')).unwrap());
    assert_eq!(folder.left(), "");
    assert!(
        !folder.kept.remove(&seen).unwrap(),
        "another process was first"
    );
    let entries = fs::read_dir(folder.path('a').parent().unwrap()).unwrap();
    assert_eq!(entries.count(), 0);
}

#[test]
fn a_released_bundle_is_removed_with_its_last_pod_unless_reused() {
    let folder = Folder::new();
    folder.add('a', HOUR);
    folder.add('b', HOUR);
    for letter in ['a', 'b'] {
        folder.kept.mark_released(&folder.bundle(letter)).unwrap();
        assert!(folder.bundle(letter).released);
    }
    folder.touch('b', HOUR / 2);
    assert!(!folder.bundle('b').released);
    let now = SystemTime::now();
    let used = Uses::of_names(names("a"), names(""));
    assert_eq!(folder.kept.collect(&used, now).unwrap(), 0);
    assert_eq!(folder.kept.collect(&Uses::default(), now).unwrap(), 1000);
    assert_eq!(folder.left(), "b");
    assert!(!folder.kept.root().join("released").join(name('a')).exists());
}

#[test]
fn leftovers_of_killed_processes_are_cleaned_up() {
    let folder = Folder::new();
    folder.add('a', HOUR);
    folder.add('b', HOUR);
    let of = |letter| {
        folder
            .path(letter)
            .with_file_name(format!(".removing-{}-7", name(letter)))
    };
    fs::rename(folder.path('a'), of('a')).unwrap();
    fs::copy(folder.path('b'), of('b')).unwrap();
    let upload = folder.path('a').with_file_name(".tmpXyz");
    fs::write(&upload, "x").unwrap();

    let now = SystemTime::now();
    folder.kept.recover(now).unwrap();
    assert!(upload.exists() && of('a').exists(), "they may be at work");
    folder.kept.recover(now + HOUR * 25).unwrap();
    assert_eq!(folder.left(), "ab");
    assert!(!upload.exists() && !of('a').exists() && !of('b').exists());
}

#[test]
fn the_limit_is_kept_in_the_folder() {
    let folder = Folder::new();
    assert_eq!(folder.kept.limit(0).configured, DEFAULT_LIMIT);
    let kept = Kept::new(folder.kept.root().join("deeper"));
    kept.set_limit(5).unwrap();
    assert_eq!(
        kept.limit(0),
        Limit {
            configured: 5,
            bytes: 5
        }
    );
    fs::write(kept.root().join("limit"), "ten").unwrap();
    assert_eq!(kept.limit(0).configured, DEFAULT_LIMIT);
}
