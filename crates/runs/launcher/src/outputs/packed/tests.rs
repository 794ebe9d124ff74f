//! Tests of the stream: its objects, its list, and damage.

#![allow(clippy::unwrap_used)]
use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::{Pack, PackReader, PackSource, PackedManifest, TRAILER, Trailer};
use crate::outputs::{OutputRequest, Reason};

struct Volume(tempfile::TempDir);

impl Volume {
    fn new() -> Self {
        let volume = Self(tempfile::tempdir().unwrap());
        fs::create_dir(volume.work()).unwrap();
        volume
    }

    fn work(&self) -> PathBuf {
        self.0.path().join("work")
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.work().join(name), text).unwrap();
    }

    fn pack(&self, max_bytes: u64, limits: (u64, u64)) -> Pack {
        let request = OutputRequest {
            patterns: vec!["*".to_owned()],
            max_bytes,
            max_files: 5,
            scheduled: false,
            store: Some("s3://b".to_owned()),
            claim: None,
            every: None,
        };
        let source = PackSource {
            run: "demo-ab2cd",
            role: "main",
            index: 0,
            pod: "demo",
            request: &request,
        };
        let path: &Path = self.0.path();
        let pack = Pack::read(path, &source, true, limits, Timestamp::UNIX_EPOCH);
        pack.unwrap().unwrap()
    }
}

/// Reads all objects. Each is read twice, as after a lost connection.
fn objects(pack: Pack) -> (Vec<Vec<u8>>, PackedManifest) {
    let sizes = pack.sizes();
    let mut reader = PackReader::new(pack);
    let mut objects = Vec::new();
    for (part, size) in sizes.iter().enumerate() {
        let mut lost = vec![0; 7];
        let _ = reader.clone().read(&mut lost).unwrap();
        let mut object = Vec::new();
        reader.read_to_end(&mut object).unwrap();
        assert_eq!(object.len() as u64, *size);
        objects.push(object);
        if part + 1 < sizes.len() {
            reader = reader.next_part();
        }
    }
    let list = reader.into_list().unwrap();
    (objects, list)
}

fn parsed(objects: &[Vec<u8>]) -> PackedManifest {
    let last = objects.last().unwrap();
    let size = last.len();
    let trailer = usize::try_from(TRAILER).unwrap();
    let found = Trailer::parse(&last[size - trailer..], size as u64).unwrap();
    let begin = size - trailer - usize::try_from(found.length).unwrap();
    found.read(&last[begin..size - trailer]).unwrap()
}

#[test]
fn a_stream_has_the_contents_and_the_list_also_in_several_objects() {
    let volume = Volume::new();
    volume.write("a", "0123456789");
    volume.write("b", "");
    volume.write("c", "abcdef");
    for (limit, parts) in [(100, 1), (4, 4), (10, 2), (16, 1)] {
        let (objects, list) = objects(volume.pack(1000, (limit, 9)));
        assert_eq!(objects.len(), parts);
        assert_eq!(parsed(&objects), list);
        let contents: Vec<u8> = objects
            .iter()
            .zip(&list.parts)
            .flat_map(|(object, size)| object[..usize::try_from(*size).unwrap()].to_vec())
            .collect();
        assert_eq!(contents, b"0123456789abcdef");
        assert_eq!(list.offsets, [0, 10, 10]);
        let sizes: Vec<u64> = list.manifest.files.iter().map(|file| file.size).collect();
        assert_eq!(sizes, [10, 0, 6]);
        let of_c = crate::bundle::hexadecimal(&<sha2::Sha256 as sha2::Digest>::digest("abcdef"));
        assert_eq!(list.manifest.files[2].sha256, of_c);
    }
}

#[test]
fn a_file_that_shrinks_or_disappears_is_left_out() {
    let volume = Volume::new();
    volume.write("a", "0123456789");
    volume.write("b", "gone");
    volume.write("c", "grows");
    let pack = volume.pack(1000, (100, 1));
    volume.write("a", "0123");
    volume.write("c", "grows later");
    fs::remove_file(volume.work().join("b")).unwrap();
    let (objects, list) = objects(pack);
    assert_eq!(&objects[0][..19], b"0123\0\0\0\0\0\0\0\0\0\0grows");
    let files: Vec<_> = list.manifest.files.iter().collect();
    assert_eq!(files.len(), 1);
    assert_eq!((files[0].path.as_str(), files[0].size), ("c", 5));
    let left_out = list.manifest.left_out.iter();
    let left_out: Vec<_> = left_out
        .map(|file| (file.path.as_str(), file.reason))
        .collect();
    assert_eq!(left_out, [("a", Reason::Changed), ("b", Reason::Changed)]);
    assert_eq!(parsed(&objects), list);
}

#[test]
fn what_exceeds_a_limit_is_left_out_with_its_reason() {
    let volume = Volume::new();
    volume.write("a", "0123456789");
    volume.write("b", "1");
    let reasons = |max_bytes, limits| {
        let (_, list) = objects(volume.pack(max_bytes, limits));
        let left_out = list.manifest.left_out.into_iter();
        left_out
            .map(|file| (file.path, file.reason))
            .collect::<Vec<_>>()
    };
    assert_eq!(reasons(5, (100, 1)), [("a".to_owned(), Reason::SizeLimit)]);
    assert_eq!(
        reasons(1000, (3, 2)),
        [("a".to_owned(), Reason::StoreLimit)]
    );
    for name in ["c", "d", "e", "f", "g"] {
        volume.write(name, name);
    }
    assert_eq!(
        reasons(1000, (100, 1)),
        [
            ("f".to_owned(), Reason::FileLimit),
            ("g".to_owned(), Reason::FileLimit)
        ]
    );
}

#[test]
fn a_stream_that_was_cut_or_changed_is_not_read() {
    let volume = Volume::new();
    volume.write("a", "0123456789");
    let (objects, _) = objects(volume.pack(1000, (100, 1)));
    let object = &objects[0];
    let size = object.len();
    let trailer = &object[size - usize::try_from(TRAILER).unwrap()..];
    assert!(Trailer::parse(&trailer[1..], size as u64).is_err());
    assert!(Trailer::parse(trailer, 100).is_err());
    let found = Trailer::parse(trailer, size as u64).unwrap();
    let mut list = object[10..size - trailer.len()].to_vec();
    found.read(&list).unwrap();
    list[20] ^= 1;
    assert!(found.read(&list).unwrap_err().contains("sha256"));
    // A list that refers to contents that are not in the stream.
    let list = String::from_utf8(object[10..size - trailer.len()].to_vec()).unwrap();
    let list = list.replace("\"size\":10", "\"size\":11");
    let error = Trailer::of(list.as_bytes()).read(list.as_bytes());
    assert!(error.unwrap_err().contains("is not in it"));
}

#[test]
fn a_list_with_too_many_parts_is_not_read() {
    let volume = Volume::new();
    volume.write("a", "0123456789");
    let (_, mut list) = objects(volume.pack(1000, (100, 1)));
    list.parts.extend([0; 16]);
    let text = serde_json::to_vec(&list).unwrap();
    let error = Trailer::of(&text).read(&text).unwrap_err();
    assert!(error.contains("more than 16 parts"), "{error}");
}
