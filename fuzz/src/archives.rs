//! Archives that nobody trusts: whatever comes, it is unpacked or refused, within
//! the limits, and nothing outside the folder is written or can be reached through
//! what was.

use std::{fs, path::Path};

use longshore_archive::{Limits, Unpack, unpack};

pub fn check(data: &[u8]) {
    unpacked(data, false);
    unpacked(data, true);
}

fn unpacked(data: &[u8], as_found: bool) {
    let folder = tempfile::tempdir().unwrap();
    let (outside, inside) = (folder.path().join("secret"), folder.path().join("in"));
    fs::write(&outside, "untouched").unwrap();
    fs::create_dir(&inside).unwrap();
    let limits = Limits {
        bytes: 1 << 16,
        entries: 64,
    };
    let options = Unpack { limits, as_found };
    let unpacked = unpack(data, &inside, &options, |_| {});
    let mut found = Found::default();
    look(&inside, &inside.canonicalize().unwrap(), &mut found);
    assert!(found.files <= limits.entries && found.bytes <= limits.bytes);
    if let Ok(moved) = unpacked {
        assert_eq!(moved.files, found.files);
    }
    assert_eq!(fs::read(&outside).unwrap(), b"untouched");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[derive(Default)]
struct Found {
    files: u64,
    bytes: u64,
}

fn look(folder: &Path, root: &Path, found: &mut Found) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap();
        if kind.is_dir() {
            look(&path, root, found);
            continue;
        }
        found.files += 1;
        if kind.is_symlink() {
            if let Ok(target) = path.canonicalize() {
                assert!(target.starts_with(root), "{} leads out", path.display());
            }
        } else {
            assert!(kind.is_file(), "{} is a device or a pipe", path.display());
            found.bytes += kind.len();
        }
    }
}
