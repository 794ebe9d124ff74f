//! Requests as a client sends them, on a folder.

#![allow(clippy::unwrap_used)]

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use proptest::prelude::*;

use super::{reply::Status, *};
use crate::wire::{Fields, Put as _};

/// A client of a server in this process.
#[derive(Default)]
struct Client {
    server: Server,
}

impl Client {
    /// The type of the reply, and the bytes after its number.
    fn send(&mut self, kind: u8, fields: impl FnOnce(&mut Vec<u8>)) -> (u8, Vec<u8>) {
        let mut message = vec![kind];
        message.put_number(7);
        fields(&mut message);
        let encoded = self.server.answer(&message).encode();
        let body = Fields::new(&encoded).string().unwrap().to_vec();
        let mut fields = Fields::new(&body);
        let kind = fields.byte().unwrap();
        assert_eq!(fields.number().unwrap(), 7);
        (kind, body[5..].to_vec())
    }

    /// The code of a status.
    fn status(&mut self, kind: u8, fields: impl FnOnce(&mut Vec<u8>)) -> u32 {
        let (reply, body) = self.send(kind, fields);
        assert_eq!(reply, 101);
        Fields::new(&body).number().unwrap()
    }

    /// The handle or the bytes of a reply.
    fn bytes(&mut self, kind: u8, fields: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let (reply, body) = self.send(kind, fields);
        assert!(matches!(reply, 102 | 103), "{reply}");
        Fields::new(&body).string().unwrap().to_vec()
    }

    fn open(&mut self, path: &Path, flags: u32) -> Vec<u8> {
        self.bytes(3, |message| {
            message.put_string(path.to_str().unwrap());
            message.put_number(flags);
            message.put_number(4);
            message.put_number(0o100_640);
        })
    }
}

fn path_of(path: &Path) -> impl FnOnce(&mut Vec<u8>) {
    let path = path.to_str().unwrap().to_owned();
    move |message| message.put_string(&path)
}

#[test]
fn a_file_is_written_and_read_at_offsets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let mut client = Client::default();
    let handle = client.open(&path, 1 | 2 | 8 | 16);
    for (offset, text) in [(4, "more"), (0, "some")] {
        let status = client.status(6, |message| {
            message.put_string(&handle);
            message.put_long(offset);
            message.put_string(text);
        });
        assert_eq!(status, 0);
    }
    let read = |offset: u64| {
        let handle = handle.clone();
        move |message: &mut Vec<u8>| {
            message.put_string(&handle);
            message.put_long(offset);
            message.put_number(u32::MAX);
        }
    };
    assert_eq!(client.bytes(5, read(2)), b"memore");
    assert_eq!(client.status(5, read(8)), Status::End as u32);
    assert_eq!(client.status(5, read(u64::MAX)), Status::End as u32);
    let close = |message: &mut Vec<u8>| message.put_string(&handle);
    assert_eq!(client.status(4, close), 0);
    assert_eq!(client.status(4, close), Status::Failure as u32);
    assert_eq!(fs::read(&path).unwrap(), b"somemore");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777 & !0o640, 0, "{mode:o}");
}

#[test]
fn a_rename_does_not_replace_a_file_and_the_extension_does() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    fs::write(&a, "a").unwrap();
    fs::write(&b, "b").unwrap();
    let mut client = Client::default();
    let names = |message: &mut Vec<u8>| {
        message.put_string(a.to_str().unwrap());
        message.put_string(b.to_str().unwrap());
    };
    assert_eq!(client.status(18, names), Status::Failure as u32);
    assert_eq!(fs::read(&b).unwrap(), b"b");
    let replaced = client.status(200, |message| {
        message.put_string("posix-rename@openssh.com");
        names(message);
    });
    assert_eq!(replaced, 0);
    assert_eq!(fs::read(&b).unwrap(), b"a");
    assert_eq!(client.status(18, names), Status::NotFound as u32);
}

#[test]
fn a_folder_with_many_files_is_listed_completely() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..250 {
        fs::write(folder.path().join(format!("file-{number}")), "").unwrap();
    }
    let mut client = Client::default();
    let handle = client.bytes(11, path_of(folder.path()));
    let mut found = std::collections::BTreeSet::new();
    loop {
        let (kind, body) = client.send(12, |message| message.put_string(&handle));
        let mut fields = Fields::new(&body);
        let count = fields.number().unwrap();
        if kind == 101 {
            assert_eq!(count, Status::End as u32);
            break;
        }
        for _ in 0..count {
            let name = fields.text().unwrap().to_owned();
            let line = fields.text().unwrap();
            assert!(line.starts_with("-rw") && line.ends_with(&name), "{line}");
            super::attributes::Attributes::read(&mut fields).unwrap();
            found.insert(name);
        }
    }
    assert_eq!(found.len(), 250);
}

#[test]
fn attributes_are_changed_as_requested() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "content").unwrap();
    let mut client = Client::default();
    let status = client.status(9, |message| {
        message.put_string(path.to_str().unwrap());
        message.put_number(1 | 4 | 8);
        message.put_long(3);
        message.put_number(0o600);
        message.put_number(1);
        message.put_number(2_000_000_000);
    });
    assert_eq!(status, 0);
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(metadata.len(), 3);
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o600);
    let changed = metadata.modified().unwrap();
    let since = changed.duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(since.as_secs(), 2_000_000_000);
    let missing = client.status(17, path_of(&folder.path().join("missing")));
    assert_eq!(missing, Status::NotFound as u32);
}

#[test]
fn real_paths_need_not_exist_in_their_last_part() {
    let folder = tempfile::tempdir().unwrap();
    let real = fs::canonicalize(folder.path()).unwrap();
    let mut client = Client::default();
    let mut resolve = |path: &Path| {
        let (kind, body) = client.send(16, path_of(path));
        let mut fields = Fields::new(&body);
        fields.number().unwrap();
        (kind == 104).then(|| fields.text().unwrap().to_owned())
    };
    let found = resolve(&folder.path().join("x/../new"));
    assert_eq!(found, None);
    let found = resolve(&folder.path().join("./new")).unwrap();
    assert_eq!(Path::new(&found), real.join("new"));
}

#[test]
fn messages_are_answered_also_if_they_arrive_in_pieces() {
    /// Returns one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(1);
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    let mut input = Vec::new();
    input.put_string([1, 0, 0, 0, 3]);
    input.put_string([0xff, 0, 0, 0, 9]);
    let mut output = Vec::new();
    serve(Slow(&input), &mut output).unwrap();
    let mut replies = Fields::new(&output);
    assert_eq!(replies.string().unwrap()[..5], [2, 0, 0, 0, 3]);
    assert_eq!(
        replies.string().unwrap()[..9],
        [101, 0, 0, 0, 9, 0, 0, 0, 8]
    );
    assert!(serve(&b"\xff\xff\xff\xff"[..], &mut output).is_err());
}

proptest! {
    /// Sends arbitrary messages, except requests that change files.
    #[test]
    fn any_message_is_answered_without_a_panic(
        kind in prop_oneof![0u8..3, 4u8..9, Just(12), Just(16), Just(17), 21u8..],
        bytes in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut message = vec![kind];
        message.extend_from_slice(&bytes);
        if kind != 200 {
            Server::default().answer(&message).encode();
        }
    }
}
