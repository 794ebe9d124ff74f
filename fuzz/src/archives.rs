//! Untrusted archives: each is unpacked within the limits or rejected. Unpacking writes only below
//! the folder, and no unpacked link points outside.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use longshore_archive::{ENTRY_HEADER_BYTES, Limits, Unpack, unpack};

pub fn check(data: &[u8]) {
    check_unpacked(data, false);
    check_unpacked(data, true);
    check_headers(data);
}

/// Reads the input as a list of entries with their declared sizes, which may be terabytes.
/// Asserts that unpacking reads no more of their content than the limits allow.
fn check_headers(data: &[u8]) {
    let limits = Limits {
        bytes: 1 << 16,
        entries: 8,
    };
    let archive = data.chunks_exact(4).take(8).fold(
        Box::new(io::empty()) as Box<dyn Read>,
        |archive, entry| {
            let [kind, content, size, factor] = entry else {
                return archive;
            };
            let kind = b"0125LKxgS67"[usize::from(*kind) % 11];
            let size = u64::from(*size) << (factor % 48);
            let content = io::repeat(*content).take(size.next_multiple_of(512));
            Box::new(
                archive
                    .chain(io::Cursor::new(header(kind, size)))
                    .chain(content),
            )
        },
    );
    let mut archive = Counted(archive, 0);
    let folder = tempfile::tempdir().unwrap();
    let options = Unpack {
        limits,
        as_found: true,
    };
    let _ = unpack(&mut archive, folder.path(), &options, |_| {});
    let most = limits.bytes + (limits.entries + 1) * (ENTRY_HEADER_BYTES + (16 << 10));
    assert!(archive.1 <= most, "{} bytes were read", archive.1);
}

/// The header of an entry. All entries have the same name.
fn header(kind: u8, size: u64) -> [u8; 512] {
    let mut header = [0; 512];
    header[0] = b'f';
    header[100..107].copy_from_slice(b"0000644");
    header[124..128].copy_from_slice(&[0x80, 0, 0, 0]);
    header[128..136].copy_from_slice(&size.to_be_bytes());
    header[148..156].fill(b' ');
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar  \0");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header
}

/// An archive that counts the bytes that are read from it.
struct Counted<R>(R, u64);

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(buffer)?;
        self.1 += count as u64;
        Ok(count)
    }
}

fn check_unpacked(data: &[u8], as_found: bool) {
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
    visit(&inside, &inside.canonicalize().unwrap(), &mut found);
    assert!(found.files <= limits.entries && found.bytes <= limits.bytes);
    if let Ok(transferred) = unpacked {
        assert_eq!(transferred.files, found.files);
    }
    assert_eq!(fs::read(&outside).unwrap(), b"untouched");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[derive(Default)]
struct Found {
    files: u64,
    bytes: u64,
}

fn visit(folder: &Path, root: &Path, found: &mut Found) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap();
        if kind.is_dir() {
            visit(&path, root, found);
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
