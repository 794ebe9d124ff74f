//! Tests of files that change while they are packed.
#![allow(clippy::unwrap_used)]

use std::{fs::OpenOptions, io::Write as _};

use super::{super::*, folder};

fn append(path: &Path) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(b"line\n").unwrap();
}

#[test]
fn a_folder_is_packed_again_if_a_file_grows() {
    let folder = folder(&[("a.txt", "1"), ("run.log", "line\n")]);
    let log = folder.path().join("run.log");
    let mut grows = true;
    // The log grows after the first file was packed.
    let progress = |_| {
        if std::mem::take(&mut grows) {
            append(&log);
        }
    };
    let mut scans = 0;
    let options = PackOptions::default();
    let bundle = pack_scanned(folder.path(), &options, |_| scans += 1, progress).unwrap();
    assert_eq!(scans, 1);
    let unchanged = pack(folder.path(), &options, |_| {}).unwrap();
    assert_eq!(bundle.sha256, unchanged.sha256);
}

#[test]
fn a_file_that_never_stops_growing_is_an_error() {
    let folder = folder(&[("a.txt", "1"), ("run.log", "line\n")]);
    let log = folder.path().join("run.log");
    let packed = pack(folder.path(), &PackOptions::default(), |_| append(&log));
    let error = packed.map(|bundle| bundle.sha256).unwrap_err();
    assert!(matches!(error, BundleError::Changed { .. }), "{error}");
}
