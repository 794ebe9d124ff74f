//! Hostile archives.
#![allow(clippy::unwrap_used)]

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;

use super::*;

/// One entry: path, kind, link target or content, mode.
type Entry<'a> = (&'a str, EntryType, &'a str, u32);

fn archive(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (path, kind, text, mode) in entries {
        let mut header = tar::Header::new_gnu();
        // Written by hand: the library refuses to write hostile paths.
        let name = &mut header.as_old_mut().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(*mode);
        let is_link = matches!(kind, EntryType::Symlink | EntryType::Link);
        if is_link {
            header.as_old_mut().linkname[..text.len()].copy_from_slice(text.as_bytes());
        }
        let content = if is_link { "" } else { text };
        header.set_size(content.len() as u64);
        header.set_cksum();
        tar.extend_from_slice(header.as_bytes());
        tar.extend_from_slice(content.as_bytes());
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.extend_from_slice(&[0; 1024]);
    compressed(&tar)
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Unpacks into `inner` of a fresh folder, and asserts that nothing appears
/// beside it.
fn unpack(archive: &[u8], limits: &Limits) -> (tempfile::TempDir, Result<u64, ExtractError>) {
    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let result = extract(archive, &inner, limits);
    let beside = fs::read_dir(outer.path()).unwrap().count();
    assert_eq!(beside, 1, "something was written beside the target");
    (outer, result)
}

fn refusal(entries: &[Entry<'_>]) -> String {
    unpack(&archive(entries), &Limits::default())
        .1
        .unwrap_err()
        .to_string()
}

const FILE: EntryType = EntryType::Regular;
const LINK: EntryType = EntryType::Symlink;

#[test]
fn paths_that_lead_out_are_refused() {
    assert!(refusal(&[("../evil", FILE, "x", 0o644)]).contains("../evil has `..` in its path"));
    assert!(refusal(&[("a/../../evil", FILE, "x", 0o644)]).contains("`..`"));
    assert!(refusal(&[("/tmp/evil", FILE, "x", 0o644)]).contains("absolute"));
    assert!(refusal(&[(".", FILE, "x", 0o644)]).contains("no name"));
}

#[test]
fn links_that_lead_out_are_refused() {
    assert!(
        refusal(&[("a", LINK, "/etc/passwd", 0o777)])
            .contains("a is a link out of the folder, to /etc/passwd")
    );
    assert!(refusal(&[("a/b", LINK, "../../x", 0o777)]).contains("link out"));
    assert!(
        refusal(&[
            ("a/b/up", LINK, "../..", 0o777),
            ("a/b/out", LINK, "up/..", 0o777)
        ])
        .contains("a/b/out is a link out")
    );
    assert!(refusal(&[("a", EntryType::Link, "/etc/passwd", 0o644)]).contains("hard link"));
}

#[test]
fn nothing_is_written_through_a_link() {
    let through = [
        ("d/f", FILE, "", 0o644),
        ("a", LINK, "d", 0o777),
        ("a/x", FILE, "x", 0o644),
    ];
    assert!(refusal(&through).contains("a/x leads through a link"));
    let over = [("a", LINK, "d", 0o777), ("a", FILE, "x", 0o644)];
    assert!(refusal(&over).contains("a comes twice"));
    let file = [("a", FILE, "", 0o644), ("a/x", FILE, "x", 0o644)];
    assert!(refusal(&file).contains("through a file"));
}

#[test]
fn devices_and_pipes_are_refused() {
    assert!(refusal(&[("a", EntryType::Char, "", 0o644)]).contains("device"));
    assert!(refusal(&[("a", EntryType::Block, "", 0o644)]).contains("device"));
    assert!(refusal(&[("a", EntryType::Fifo, "", 0o644)]).contains("pipe"));
}

#[test]
fn privilege_bits_are_taken_off() {
    let (folder, result) = unpack(&archive(&[("a", FILE, "x", 0o6755)]), &Limits::default());
    assert_eq!(result.unwrap(), 1);
    let mode = fs::metadata(folder.path().join("inner/a"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o755);
}

#[test]
fn bombs_stop_at_the_limits() {
    let limits = Limits {
        bytes: 10,
        entries: 2,
    };
    let one = archive(&[("a", FILE, "12345678901", 0o644)]);
    let error = unpack(&one, &limits).1.unwrap_err().to_string();
    assert!(error.contains("more than 10 bytes"), "{error}");
    let many = archive(&[
        ("a", FILE, "", 0o644),
        ("b", FILE, "", 0o644),
        ("c", FILE, "", 0o644),
    ]);
    let error = unpack(&many, &limits).1.unwrap_err().to_string();
    assert!(error.contains("more than 2 files"), "{error}");
}

#[test]
fn cut_and_spoiled_archives_are_errors() {
    let whole = archive(&[("a", FILE, "some content that is there", 0o644)]);
    assert!(
        unpack(&whole[..whole.len() / 2], &Limits::default())
            .1
            .is_err()
    );
    assert!(unpack(b"no archive", &Limits::default()).1.is_err());
}

proptest! {
    #[test]
    fn no_archive_panics_or_writes_beside_the_target(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..2048),
        path in "(\\.\\./|/|[a-z]{1,3}/){0,3}[a-z]{0,3}",
        flip in 0_usize..512,
    ) {
        let _ = unpack(&compressed(&bytes), &Limits::default());
        let mut tar = Vec::new();
        io::copy(&mut MultiGzDecoder::new(archive(&[(&path, FILE, "x", 0o644)]).as_slice()), &mut tar).unwrap();
        let place = flip % tar.len();
        tar[place] ^= bytes.pop().unwrap_or(1);
        let _ = unpack(&compressed(&tar), &Limits::default());
    }
}
