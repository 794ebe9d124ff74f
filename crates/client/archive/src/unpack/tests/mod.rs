//! Hostile archives.
#![allow(clippy::unwrap_used)]

mod headers;
mod scale;

use proptest::prelude::*;

use super::*;

/// An entry: path, type, link target or content, mode.
type Entry<'a> = (&'a str, EntryType, &'a str, u32);

fn archive(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (path, kind, text, mode) in entries {
        let mut header = tar::Header::new_gnu();
        // Sets the field directly, because the tar crate rejects hostile paths.
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
    tar
}

/// Unpacks into the folder `inner` of a new folder, and asserts that the new folder contains
/// nothing else.
fn unpack(
    archive: &[u8],
    options: &Unpack,
) -> (tempfile::TempDir, Result<Transferred, UnpackError>) {
    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let result = super::unpack(archive, &inner, options, |_| ());
    let entries = fs::read_dir(outer.path()).unwrap().count();
    assert_eq!(entries, 1, "unpacking wrote outside of the target");
    (outer, result)
}

fn refusal(entries: &[Entry<'_>]) -> String {
    unpack(&archive(entries), &Unpack::default())
        .1
        .unwrap_err()
        .to_string()
}

const FILE: EntryType = EntryType::Regular;
const LINK: EntryType = EntryType::Symlink;

#[test]
fn paths_out_of_the_folder_are_rejected() {
    assert!(refusal(&[("../evil", FILE, "x", 0o644)]).contains("../evil has `..` in its path"));
    assert!(refusal(&[("a/../../evil", FILE, "x", 0o644)]).contains("`..`"));
    assert!(refusal(&[("/tmp/evil", FILE, "x", 0o644)]).contains("absolute"));
    assert!(refusal(&[(".", FILE, "x", 0o644)]).contains("no name"));
}

#[test]
fn links_out_of_the_folder_are_rejected() {
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
fn devices_and_pipes_are_rejected() {
    assert!(refusal(&[("a", EntryType::Char, "", 0o644)]).contains("device"));
    assert!(refusal(&[("a", EntryType::Block, "", 0o644)]).contains("device"));
    assert!(refusal(&[("a", EntryType::Fifo, "", 0o644)]).contains("pipe"));
}

#[test]
fn setuid_and_setgid_bits_are_removed() {
    let (folder, result) = unpack(&archive(&[("a", FILE, "x", 0o6755)]), &Unpack::default());
    assert_eq!(result.unwrap().files, 1);
    let mode = fs::metadata(folder.path().join("inner/a"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o755);
}

#[test]
fn archives_over_the_limits_are_rejected() {
    let limits = Unpack {
        limits: Limits {
            bytes: 10,
            entries: 2,
        },
        ..Unpack::default()
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
fn truncated_and_corrupt_archives_are_errors() {
    let whole = archive(&[("a", FILE, "some content that is there", 0o644)]);
    for length in [10, 512, 520] {
        let (_folder, outcome) = unpack(&whole[..length], &Unpack::default());
        assert!(outcome.is_err(), "{length}");
    }
    assert!(unpack(&[b'x'; 600], &Unpack::default()).1.is_err());
}

#[test]
fn with_as_found_entries_that_are_not_files_are_left_out() {
    let options = Unpack {
        as_found: true,
        ..Unpack::default()
    };
    let entries = [
        ("d/f", FILE, "text", 0o640),
        ("d/out", LINK, "/etc/passwd", 0o777),
        ("d/in", LINK, "f", 0o777),
        ("d/same", EntryType::Link, "d/f", 0o644),
        ("d/tty", EntryType::Char, "", 0o644),
        ("d/pipe", EntryType::Fifo, "", 0o644),
    ];
    let (folder, transferred) = unpack(&archive(&entries), &options);
    let transferred = transferred.unwrap();
    let left_out: Vec<_> = transferred
        .left_out
        .iter()
        .map(|(path, why)| format!("{} {why}", path.display()))
        .collect();
    assert_eq!(
        left_out,
        [
            "d/out is a link out of the folder, to /etc/passwd",
            "d/tty is a device",
            "d/pipe is a named pipe",
        ]
    );
    assert_eq!((transferred.files, transferred.bytes), (3, 8));
    let inner = folder.path().join("inner/d");
    assert_eq!(fs::read_to_string(inner.join("same")).unwrap(), "text");
    assert_eq!(inner.join("in").read_link().unwrap(), Path::new("f"));
    assert!(!inner.join("same").is_symlink());

    for (target, problem) in [
        ("../x", "a has `..`"),
        ("/etc/passwd", "a has an absolute path"),
        ("none", "a is a hard link to what is not in the archive"),
        ("up/f", "a is a hard link to what is not in the archive"),
    ] {
        let through = [
            ("d/f", FILE, "x", 0o644),
            ("up", LINK, "d", 0o777),
            ("a", EntryType::Link, target, 0o644),
        ];
        let error = unpack(&archive(&through), &options)
            .1
            .unwrap_err()
            .to_string();
        assert!(error.contains(problem), "{error}");
    }
    let paths = [("../evil", FILE, "x", 0o644)];
    assert!(unpack(&archive(&paths), &options).1.is_err());
}

#[test]
fn unpacking_restores_packed_files() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let deep: PathBuf = (0..60).map(|_| "deeper").collect();
    fs::create_dir_all(from.join(&deep)).unwrap();
    fs::create_dir(&to).unwrap();
    let long = "n".repeat(200);
    for (path, text) in [
        (&deep.join(&long), "deep"),
        (&PathBuf::from("é ü"), ""),
        (&PathBuf::from("-rf"), "x"),
    ] {
        fs::write(from.join(path), text).unwrap();
    }
    fs::set_permissions(from.join("-rf"), fs::Permissions::from_mode(0o751)).unwrap();
    let time = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::options()
        .write(true)
        .open(from.join("-rf"))
        .unwrap()
        .set_modified(time)
        .unwrap();
    symlink("-rf", from.join("link")).unwrap();
    symlink("/etc/passwd", from.join("out")).unwrap();
    std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();

    let mut archive = Vec::new();
    let packed = crate::pack(&from, "name", &mut archive, |_| ()).unwrap();
    assert_eq!((packed.files, packed.bytes), (5, 5));
    assert_eq!(
        packed.left_out,
        [(PathBuf::from("name/socket"), "is a socket".to_owned())]
    );
    let options = Unpack {
        as_found: true,
        ..Unpack::default()
    };
    let transferred = super::unpack(archive.as_slice(), &to, &options, |_| ()).unwrap();
    assert_eq!(
        (
            transferred.files,
            transferred.bytes,
            transferred.left_out.len()
        ),
        (4, 5, 1)
    );
    let to = to.join("name");
    assert_eq!(
        fs::read_to_string(to.join(&deep).join(&long)).unwrap(),
        "deep"
    );
    let found = fs::metadata(to.join("link")).unwrap();
    assert_eq!(
        (
            found.permissions().mode() & 0o7777,
            found.modified().unwrap()
        ),
        (0o751, time)
    );
    assert!(to.join("é ü").is_file());

    let error = crate::pack(&from.join("none"), "name", io::sink(), |_| ()).unwrap_err();
    assert!(error.to_string().starts_with("cannot pack "), "{error}");
}

proptest! {
    #[test]
    fn no_archive_panics_or_writes_outside_of_the_target(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..2048),
        path in "(\\.\\./|/|[a-z]{1,3}/){0,3}[a-z]{0,3}",
        flip in 0_usize..512,
    ) {
        let found = Unpack { as_found: true, ..Unpack::default() };
        for options in [Unpack::default(), found] {
            let _ = unpack(&bytes, &options);
            let mut tar = archive(&[(&path, FILE, "x", 0o644)]);
            let index = flip % tar.len();
            tar[index] ^= bytes.pop().unwrap_or(1);
            let _ = unpack(&tar, &options);
        }
    }
}
