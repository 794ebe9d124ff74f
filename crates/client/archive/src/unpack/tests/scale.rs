//! Archives that are large in one dimension.

use std::{collections::BTreeSet, ffi::OsStr};

use super::*;

/// An archive of empty files.
fn files(paths: impl Iterator<Item = PathBuf>) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for path in paths {
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, io::empty()).unwrap();
    }
    builder.into_inner().unwrap()
}

/// With a system call for each folder of each path, this would take minutes.
#[test]
fn many_files_in_the_deepest_folder_are_unpacked() {
    let folder = PathBuf::from("d/".repeat(500));
    let archive = files((0..20_000).map(|number| folder.join(number.to_string())));
    let (_outer, result) = unpack(&archive, &Unpack::default());
    assert_eq!(result.unwrap().files, 20_000);
}

/// More folders than are remembered, in turns.
#[test]
fn files_of_more_folders_than_are_remembered_are_unpacked() {
    let path = |number: usize| PathBuf::from(format!("a/b/{}/c/{number}", number % 5_000));
    let archive = files((0..15_000).map(path));
    let (outer, result) = unpack(&archive, &Unpack::default());
    assert_eq!(result.unwrap().files, 15_000);
    let first = outer.path().join("inner/a/b/0/c");
    assert_eq!(fs::read_dir(first).unwrap().count(), 3);
}

/// A folder that was checked once is not a link later.
#[test]
fn a_known_folder_cannot_become_a_link_or_a_file() {
    for (kind, text) in [(LINK, "/etc"), (FILE, "text")] {
        let entries = [
            ("a/b/one", FILE, "", 0o644),
            ("a/b", kind, text, 0o644),
            ("a/b/two", FILE, "", 0o644),
        ];
        assert!(!refusal(&entries).is_empty());
    }
}

#[test]
fn names_of_any_bytes_are_kept() {
    let names: [&[u8]; 5] = [
        b"two\nlines",
        b"\x1b[2J",
        b"\xff\xfe invalid",
        b" leading and trailing ",
        "größe".as_bytes(),
    ];
    let paths = names.map(|name| PathBuf::from(OsStr::from_bytes(name)));
    let archive = files(paths.iter().cloned());
    let (outer, result) = unpack(&archive, &Unpack::default());
    assert_eq!(result.unwrap().files, 5);
    let entries = fs::read_dir(outer.path().join("inner")).unwrap();
    let found: BTreeSet<_> = entries
        .map(|entry| PathBuf::from(entry.unwrap().file_name()))
        .collect();
    assert_eq!(found, paths.into_iter().collect());
}
