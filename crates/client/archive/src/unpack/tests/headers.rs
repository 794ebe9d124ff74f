//! Hostile headers: long names, PAX records, sparse maps, sizes and numbers of entries.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    io::{self, Read},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use proptest::prelude::*;
use tar::EntryType;

use super::super::{ENTRY_HEADER_BYTES, Limits, Unpack, UnpackError};
use crate::{LEFT_OUT_NAMED, Transferred};

/// More than the headers of one entry may have, and far less than the archives below
/// declare. A reader that ignores the limit fails here instead of exhausting the memory.
const READ_LIMIT: u64 = 64 << 20;

/// An archive that counts the bytes that are read from it.
struct Counted<R>(R, u64);

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(buffer)?;
        self.1 += count as u64;
        if self.1 > READ_LIMIT {
            return Err(io::Error::other("the reader ignored the limit"));
        }
        Ok(count)
    }
}

fn header(name: &str, kind: u8, size: u64) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(EntryType::new(kind));
    header.set_mode(0o644);
    header.set_size(size);
    header.set_cksum();
    header.as_bytes().to_vec()
}

fn with_content(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut entry = header(name, kind, content.len() as u64);
    entry.extend(content);
    entry.resize(entry.len().next_multiple_of(512), 0);
    entry
}

fn record(key: &str, value: &str) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    format!("{length} {key}={value}\n").into_bytes()
}

/// Unpacks an archive. Returns the result and the number of bytes that were read.
fn unpack(archive: impl Read, options: &Unpack) -> (Result<Transferred, UnpackError>, u64) {
    let folder = tempfile::tempdir().unwrap();
    unpack_into(archive, folder.path(), options)
}

fn unpack_into(
    archive: impl Read,
    folder: &Path,
    options: &Unpack,
) -> (Result<Transferred, UnpackError>, u64) {
    let mut archive = Counted(archive, 0);
    let result = super::super::unpack(&mut archive, folder, options, |_| ());
    (result, archive.1)
}

const AS_FOUND: Unpack = Unpack {
    limits: Limits {
        bytes: 64 << 30,
        entries: 2_000_000,
    },
    as_found: true,
};

#[test]
fn long_names_and_pax_records_are_read_up_to_a_limit() {
    let forty_gib = 40 << 30;
    for (kind, name, content, shown) in [
        (b'L', "././@LongLink", b'n', "n".repeat(64)),
        (b'K', "././@LongLink", b'k', "k".repeat(64)),
        (b'x', "PaxHeaders/file", b'1', "PaxHeaders/file".to_owned()),
        (
            b'g',
            "pax_global_header",
            b'1',
            "pax_global_header".to_owned(),
        ),
    ] {
        for options in [Unpack::default(), AS_FOUND] {
            let before = with_content("before", b'0', b"some text");
            let head = header(name, kind, forty_gib);
            let archive = before
                .chain(&head[..])
                .chain(io::repeat(content).take(forty_gib));
            let (result, read) = unpack(archive, &options);
            let error = result.unwrap_err();
            assert!(matches!(error, UnpackError::Refused { .. }), "{error}");
            let error = error.to_string();
            assert!(error.contains(&shown), "{error}");
            assert!(
                error.contains("headers of more than 1048576 bytes"),
                "{error}"
            );
            assert!(read < ENTRY_HEADER_BYTES + 8192, "{read} bytes were read");
        }
    }
}

#[test]
fn the_limit_is_for_all_headers_of_one_entry() {
    let most = usize::try_from(ENTRY_HEADER_BYTES).unwrap();
    let half = vec![b'n'; most / 2];
    let mut archive = with_content("././@LongLink", b'L', &half);
    archive.extend(with_content("././@LongLink", b'K', &half));
    archive.extend(with_content("file", b'0', b"text"));
    let error = unpack(&archive[..], &AS_FOUND).0.unwrap_err().to_string();
    assert!(error.contains("headers of more than"), "{error}");

    // The limit applies to each entry separately.
    let comment = record("comment", &"c".repeat(most - 4096));
    let mut archive = Vec::new();
    for name in ["a", "b", "c"] {
        archive.extend(with_content("PaxHeaders/x", b'x', &comment));
        archive.extend(with_content(name, b'0', b"text"));
    }
    assert_eq!(unpack(&archive[..], &AS_FOUND).0.unwrap().files, 3);
}

#[test]
fn paths_and_link_targets_over_the_maximum_length_are_rejected() {
    let long = "n".repeat(5000);
    let mut archive = with_content("././@LongLink", b'L', long.as_bytes());
    archive.extend(with_content("fifo", b'6', b""));
    let error = unpack(&archive[..], &AS_FOUND).0.unwrap_err().to_string();
    assert!(
        error.contains("nnn… has a path of 5000 bytes, more than 4096"),
        "{error}"
    );
    assert!(error.len() < 300, "{error}");

    for kind in [b'1', b'2'] {
        let mut archive = with_content("././@LongLink", b'K', long.as_bytes());
        archive.extend(with_content("link", kind, b""));
        let error = unpack(&archive[..], &AS_FOUND).0.unwrap_err().to_string();
        assert!(
            error.contains("link has a link target of 5000 bytes"),
            "{error}"
        );
    }
}

#[test]
fn a_sparse_map_is_read_up_to_a_limit() {
    // Every block of the map declares that another one follows.
    let mut block = [0; 512];
    block[504] = 1;
    let mut first = tar::Header::new_gnu();
    first.set_path("sparse").unwrap();
    first.set_entry_type(EntryType::GNUSparse);
    first.set_size(0);
    first.as_gnu_mut().unwrap().set_is_extended(true);
    first.set_cksum();
    let blocks = std::iter::repeat_n(block, 1 << 20).flatten();
    let mut blocks = blocks.collect::<Vec<u8>>();
    blocks.truncate(32 << 20);
    let archive = first.as_bytes().chain(&blocks[..]);
    let (result, read) = unpack(archive, &AS_FOUND);
    let error = result.unwrap_err().to_string();
    assert!(error.contains("sparse has headers of more than"), "{error}");
    assert!(read < ENTRY_HEADER_BYTES + 8192, "{read} bytes were read");
}

/// A sparse file of `size` bytes with data in its last four bytes.
fn sparse(size: u64) -> Vec<u8> {
    let octal = |number: u64| {
        let mut field = [b'0'; 12];
        let digits = format!("{number:011o}\0");
        field.copy_from_slice(digits.as_bytes());
        field
    };
    let mut header = tar::Header::new_gnu();
    header.set_path("sparse").unwrap();
    header.set_entry_type(EntryType::GNUSparse);
    header.set_mode(0o644);
    header.set_size(4);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.realsize = octal(size);
    gnu.sparse[0].offset = octal(size - 4);
    gnu.sparse[0].numbytes = octal(4);
    header.set_cksum();
    let mut archive = header.as_bytes().to_vec();
    archive.extend(b"data");
    archive.resize(1024, 0);
    archive
}

#[test]
fn holes_of_sparse_files_are_preserved() {
    let folder = tempfile::tempdir().unwrap();
    let (size, kib) = (100 << 20, 1 << 10);
    let archive = sparse(size);
    let (result, _) = unpack_into(&archive[..], folder.path(), &Unpack::default());
    assert_eq!(result.unwrap().bytes, size);
    let file = fs::File::open(folder.path().join("sparse")).unwrap();
    let found = file.metadata().unwrap();
    assert_eq!(found.len(), size);
    assert!(
        found.blocks() * 512 <= 256 * kib,
        "{} blocks",
        found.blocks()
    );
    let mut end = [0; 8];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut end, size - 8).unwrap();
    assert_eq!(&end, b"\0\0\0\0data");

    let small = Unpack {
        limits: Limits {
            bytes: 1 << 20,
            ..Limits::default()
        },
        ..AS_FOUND
    };
    let error = unpack(&archive[..], &small).0.unwrap_err().to_string();
    assert!(error.contains("more than 1048576 bytes"), "{error}");
}

#[test]
fn sparse_files_in_pax_format_are_not_unpacked_as_regular_files() {
    let mut archive = with_content(
        "PaxHeaders/x",
        b'x',
        &[
            record("GNU.sparse.major", "1"),
            record("GNU.sparse.minor", "0"),
        ]
        .concat(),
    );
    archive.extend(with_content("GNUSparseFile.0/file", b'0', b"1\n0\n4\n"));
    let error = unpack(&archive[..], &Unpack::default()).0.unwrap_err();
    assert!(
        error.to_string().contains("sparse file in PAX format"),
        "{error}"
    );
    let transferred = unpack(&archive[..], &AS_FOUND).0.unwrap();
    assert_eq!((transferred.files, transferred.left_out.len()), (0, 1));
}

#[test]
fn negative_and_huge_sizes_are_rejected() {
    for value in ["-1", "18446744073709551616", "0x10", "", "1e3"] {
        let mut archive = with_content("PaxHeaders/x", b'x', &record("size", value));
        archive.extend(with_content("file", b'0', b"text"));
        let error = unpack(&archive[..], &Unpack::default()).0.unwrap_err();
        assert!(
            error.to_string().contains("not a number of bytes"),
            "{value}: {error}"
        );
    }
    for value in ["18446744073709551615", "9223372036854775807"] {
        let mut archive = with_content("PaxHeaders/x", b'x', &record("size", value));
        archive.extend(with_content("file", b'0', b"text"));
        assert!(unpack(&archive[..], &AS_FOUND).0.is_err(), "{value}");
    }
    // In base-256 numbers, the first bit marks the encoding and the second is the sign.
    for first in [0xff, 0x80, 0xbf] {
        for kind in [b'0', b'5', b'6', b'L', b'x', b'g', b'S'] {
            let mut entry = tar::Header::new_gnu();
            entry.as_bytes();
            let old = entry.as_old_mut();
            old.name[0] = b'f';
            old.linkflag[0] = kind;
            old.size = [0xff; 12];
            old.size[0] = first;
            entry.set_cksum();
            let archive = entry.as_bytes().chain(io::repeat(0).take(READ_LIMIT));
            let (result, _) = unpack(archive, &AS_FOUND);
            assert!(result.is_err(), "{first:x} {}", kind as char);
        }
    }
}

#[test]
fn folders_of_paths_count_as_entries() {
    let limits = Limits {
        entries: 10,
        ..Limits::default()
    };
    let deep = "d/".repeat(20) + "file";
    let archive = with_content(&deep, b'0', b"");
    for as_found in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let options = Unpack { limits, as_found };
        let (result, _) = unpack_into(&archive[..], folder.path(), &options);
        let error = result.unwrap_err().to_string();
        assert!(error.contains("more than 10 files"), "{error}");
        assert!(!folder.path().join("d/".repeat(10)).exists());
    }
}

#[test]
fn the_list_of_left_out_entries_is_limited() {
    let pipe = with_content("pipe", b'6', b"");
    let archive = std::iter::repeat_n(pipe, LEFT_OUT_NAMED + 5).flatten();
    let archive: Vec<u8> = archive.collect();
    let transferred = unpack(&archive[..], &AS_FOUND).0.unwrap();
    assert_eq!(
        (transferred.left_out.len(), transferred.left_out_more),
        (LEFT_OUT_NAMED, 5)
    );
}

#[test]
fn records_without_a_file_are_ignored() {
    // In the oldest format, these types have no meaning and are not read as headers.
    for kind in [b'x', b'g', b'L', b'K'] {
        let mut entry = header("old", kind, 32 << 20);
        entry[257..265].fill(0);
        let mut old = tar::Header::new_old();
        old.as_mut_bytes().copy_from_slice(&entry);
        old.set_cksum();
        let archive = old.as_bytes().chain(io::repeat(b'1').take(32 << 20));
        let result = unpack(archive, &AS_FOUND).0;
        match kind {
            b'g' => assert!(result.is_err()),
            _ => assert_eq!(result.unwrap().left_out.len(), 1, "{}", kind as char),
        }
    }
}

/// Entries: type, name, content, and the declared size beyond the content.
fn entries() -> impl Strategy<Value = Vec<(u8, String, Vec<u8>, u64)>> {
    let kind = prop::sample::select(b"0125LKxgS67".to_vec());
    let name = "[a-c]{1,2}(/[a-c]{1,2}){0,3}";
    let content = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..600),
        "[a-z=\n0-9 ]{0,40}".prop_map(String::into_bytes),
        ("(path|size|linkpath|GNU.sparse.size)", "[a-z0-9/.-]{0,20}")
            .prop_map(|(key, value)| record(&key, &value)),
    ];
    let more = prop_oneof![
        Just(0),
        0..2048_u64,
        (20..63_u32).prop_map(|bits| 1 << bits)
    ];
    prop::collection::vec((kind, name, content, more), 0..8)
}

proptest! {
    #[test]
    fn no_header_is_read_beyond_the_limit(entries in entries(), as_found: bool) {
        let limits = Limits { bytes: 1 << 20, entries: 100 };
        let mut archive = Vec::new();
        let mut most = 1 << 21;
        for (kind, name, content, more) in entries {
            let mut entry = with_content(&name, kind, &content);
            let size = (content.len() as u64).saturating_add(more);
            let mut header = tar::Header::new_gnu();
            header.as_mut_bytes().copy_from_slice(&entry[..512]);
            header.set_size(size);
            header.set_cksum();
            entry[..512].copy_from_slice(header.as_bytes());
            archive.extend(entry);
            most += ENTRY_HEADER_BYTES;
        }
        let endless = archive.chain(io::repeat(b'e'));
        let (_, read) = unpack(endless, &Unpack { limits, as_found });
        prop_assert!(read <= most, "{read} bytes were read");
    }
}
