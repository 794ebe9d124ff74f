//! Tests of packing.
#![allow(clippy::unwrap_used)]

mod changing;
mod git;
mod unchanged;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use flate2::read::MultiGzDecoder;
use longshore_archive::Unpack;
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

use super::{sink::IN_MEMORY, *};

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

fn pack_all(folder: &Path) -> Bundle {
    pack(folder, &PackOptions::default(), |_| {}).unwrap()
}

fn unpack(bundle: &Bundle) -> tempfile::TempDir {
    let target = tempfile::tempdir().unwrap();
    let archive = MultiGzDecoder::new(bundle.open().unwrap());
    longshore_archive::unpack(archive, target.path(), &Unpack::default(), |_| ()).unwrap();
    target
}

fn names(bundle: &Bundle) -> Vec<String> {
    bundle
        .contents
        .paths
        .iter()
        .map(|path| path.display().to_string())
        .collect()
}

#[test]
fn the_same_files_result_in_the_same_bytes() {
    let files = [("b.py", "2"), ("a/x.py", "1"), ("a.py", "3")];
    let (one, two) = (folder(&files), folder(&files));
    let later = fs::File::options()
        .write(true)
        .open(two.path().join("b.py"))
        .unwrap();
    later
        .set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_234_567))
        .unwrap();
    let (one, two) = (pack_all(one.path()), pack_all(two.path()));
    assert_eq!(one.bytes().unwrap(), two.bytes().unwrap());
    assert_eq!(
        one.sha256,
        hexadecimal(&Sha256::digest(two.bytes().unwrap()))
    );
    assert_eq!(one.size, two.bytes().unwrap().len() as u64);
    let other = folder(&[("b.py", "2"), ("a/x.py", "1"), ("a.py", "4")]);
    assert_ne!(pack_all(other.path()).sha256, one.sha256);
}

#[test]
fn ignored_files_are_excluded_and_reported() {
    let folder = folder(&[
        (".gitignore", "data/\n*.log\n"),
        (".longshoreignore", "!keep.log\nnotes.txt\n"),
        ("train.py", "x = 1"),
        ("keep.log", ""),
        ("drop.log", ""),
        ("notes.txt", ""),
        ("data/big.bin", "0000"),
        ("__pycache__/train.pyc", ""),
        ("venv/bin/python", ""),
        (
            "out/CACHEDIR.TAG",
            "Signature: 8a477f597d28d172789f06886806bc55\n",
        ),
        ("out/object", ""),
        ("sub/.gitignore", "/local\n"),
        ("sub/local", ""),
        ("sub/deep/local", ""),
        ("tmp.txt", ""),
    ]);
    let options = PackOptions {
        ignore: vec!["tmp.*".into()],
        ..PackOptions::default()
    };
    let mut last = Progress::default();
    let bundle = pack(folder.path(), &options, |progress| last = progress).unwrap();
    assert_eq!(
        names(&bundle),
        [
            ".gitignore",
            ".longshoreignore",
            "keep.log",
            "sub",
            "sub/.gitignore",
            "sub/deep",
            "sub/deep/local",
            "train.py"
        ]
    );
    assert_eq!(
        bundle.report.left_out_examples,
        [
            "__pycache__/",
            "data/",
            "drop.log",
            "notes.txt",
            "out/",
            "sub/local",
            "tmp.txt",
            "venv/"
        ]
    );
    assert_eq!(bundle.report.left_out, 8);
    assert_eq!(bundle.report.files, 6);
    assert_eq!(
        last,
        Progress {
            files: 6,
            bytes: bundle.report.bytes,
            total_files: 6,
            total_bytes: bundle.report.bytes
        }
    );
    assert_eq!(bundle.report.largest[0].0, Path::new(".longshoreignore"));

    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let command = words("python ./train.py --data=data/big.bin notes.txt ../x");
    let brought = bundle.warnings(&command, |path| path.starts_with("data"));
    assert_eq!(brought.len(), 1, "{brought:?}");
    let warnings = bundle.warnings(&command, |_| false);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("data/big.bin"));
    // A pattern for the file would have no effect, because its folder is excluded.
    assert!(warnings[0].contains("add `!data/` to"));
    assert!(warnings[1].contains("!notes.txt"));
}

#[test]
fn all_excluded_files_can_be_listed() {
    let names: Vec<String> = (10..35).map(|n| format!("{n}.log")).collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    files.push(("train.py", ""));
    let folder = folder(&files);
    let report = |names_all| {
        let options = PackOptions {
            ignore: vec!["*.log".into()],
            names_all,
            ..PackOptions::default()
        };
        pack(folder.path(), &options, |_| {}).unwrap().report
    };
    let (some, all) = (report(false), report(true));
    assert_eq!((some.left_out, all.left_out), (25, 25));
    assert_eq!(some.left_out_examples, names[..10]);
    assert_eq!(all.left_out_examples, names);
}

#[test]
fn gitignore_files_apply_from_the_repository_root() {
    let outer = folder(&[
        (".gitignore", "*\n"),
        ("repo/.git/HEAD", "ref: refs/heads/main\n"),
        ("repo/.git/objects/info/packs", ""),
        ("repo/.git/refs/heads/main", ""),
        ("repo/.gitignore", "secret\n"),
        ("repo/code/a.py", ""),
        ("repo/code/secret", ""),
    ]);
    assert_eq!(names(&pack_all(&outer.path().join("repo/code"))), ["a.py"]);
}

#[test]
fn modes_and_links_are_kept() {
    let folder = folder(&[("run.sh", "#!/bin/sh"), ("lib/a.py", "1")]);
    let mode = |path: &Path| {
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions())
    };
    fs::set_permissions(
        folder.path().join("run.sh"),
        std::os::unix::fs::PermissionsExt::from_mode(0o4711),
    )
    .unwrap();
    symlink("../run.sh", folder.path().join("lib/again")).unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    let target = unpack(&pack_all(folder.path()));
    assert_eq!(mode(&target.path().join("run.sh")) & 0o7777, 0o755);
    assert_eq!(mode(&target.path().join("lib/a.py")) & 0o7777, 0o644);
    assert_eq!(
        fs::read_link(target.path().join("lib/again")).unwrap(),
        Path::new("../run.sh")
    );
    assert!(target.path().join("empty").is_dir());
}

#[test]
fn links_outside_the_folder_are_rejected_unless_ignored() {
    let folder = folder(&[("a.py", "")]);
    symlink("/etc/passwd", folder.path().join("out")).unwrap();
    let error = pack(folder.path(), &PackOptions::default(), |_| {})
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the link out points outside the folder, to /etc/passwd"),
        "{error}"
    );
    let options = PackOptions {
        ignore: vec!["out".into()],
        ..PackOptions::default()
    };
    assert_eq!(
        names(&pack(folder.path(), &options, |_| {}).unwrap()),
        ["a.py"]
    );
}

#[test]
fn all_problems_are_reported_together() {
    let folder = folder(&[
        ("a.py", ""),
        (".env", "A=1"),
        (".netrc", "x"),
        ("c/.pypirc", "x"),
    ]);
    symlink("/etc/passwd", folder.path().join("out")).unwrap();
    symlink("../../x", folder.path().join("c/up")).unwrap();
    let error = pack(folder.path(), &PackOptions::default(), |_| {}).unwrap_err();
    let BundleError::Several { problems, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(problems.len(), 3);
    let text = error.to_string();
    for part in [
        ".env",
        ".netrc",
        "c/.pypirc",
        "the link out points",
        "the link c/up points",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_virtual_environment_in_the_command_is_not_to_be_sent() {
    let folder = folder(&[
        (".venv/pyvenv.cfg", ""),
        (".venv/bin/python", ""),
        ("a.py", ""),
    ]);
    let words = [".venv/bin/python", "a.py"].map(str::to_owned);
    let warnings = pack_all(folder.path()).warnings(&words, |_| false);
    assert_eq!(
        warnings,
        [
            "the command names \".venv/bin/python\", but .venv is a virtual environment of this machine and is not sent: install the packages in the image"
        ]
    );
}

#[test]
fn errors_have_a_length_that_does_not_depend_on_the_folder() {
    let folder = folder(&[("a.py", "")]);
    for n in 0..100 {
        let key = folder.path().join(format!("a-long-name-of-a-key-{n}.pem"));
        fs::write(key, "-----BEGIN PRIVATE KEY-----\n").unwrap();
    }
    let pack = || pack(folder.path(), &PackOptions::default(), |_| {});
    let text = pack().unwrap_err().to_string();
    assert!(text.contains("and 90 more"), "{text}");
    assert!(text.len() < 1000, "{text}");
    for n in 0..200 {
        symlink("/etc/passwd", folder.path().join(format!("link-{n}"))).unwrap();
    }
    let error = pack().unwrap_err();
    assert!(
        matches!(error, BundleError::Several { more: 190, .. }),
        "{error}"
    );
    let text = error.to_string();
    assert!(text.starts_with("201 problems"), "{text}");
    assert!(text.ends_with("; and 190 more"), "{text}");
    assert!(text.len() < 4000, "{text}");
}

#[test]
fn a_folder_deeper_than_paths_can_be_is_an_error() {
    let folder = folder(&[("a.py", "")]);
    // Uses a single descriptor, like a program that creates such a folder.
    let mut at = fs::File::open(folder.path()).unwrap();
    for _ in 0..20_000 {
        rustix::fs::mkdirat(&at, "d", rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        at = rustix::fs::openat(&at, "d", flags, rustix::fs::Mode::empty())
            .unwrap()
            .into();
    }
    // Such a folder must not need more stack than other folders.
    let path = folder.path().to_owned();
    let small = std::thread::Builder::new().stack_size(256 << 10);
    let packed = small.spawn(move || pack(&path, &PackOptions::default(), |_| {}));
    let error = packed.unwrap().join().unwrap().unwrap_err().to_string();
    assert!(error.contains("it is in too many folders"), "{error}");
    assert!(error.len() < 600, "{error}");
    let options = PackOptions {
        ignore: vec!["d/".to_owned()],
        ..PackOptions::default()
    };
    assert_eq!(
        names(&pack(folder.path(), &options, |_| {}).unwrap()),
        ["a.py"]
    );
    let removed = std::process::Command::new("rm")
        .arg("-rf")
        .arg(folder.path())
        .status();
    assert!(removed.unwrap().success());
}

#[test]
fn virtual_environments_of_any_name_are_excluded_and_named() {
    let outside = folder(&[("conda-meta/history", ""), ("modules/a.js", "")]);
    let folder = folder(&[
        ("a.py", ""),
        ("env/pyvenv.cfg", ""),
        ("tools/py3/conda-meta/history", ""),
        (".nox/tests/a", ""),
        ("kept/pyvenv.cfg", ""),
        ("kept/bin/activate", ""),
        (".longshoreignore", "!kept/\n"),
    ]);
    symlink("/usr/bin/python3", folder.path().join("env/python")).unwrap();
    symlink(outside.path(), folder.path().join("conda")).unwrap();
    let modules = outside.path().join("modules");
    symlink(modules, folder.path().join("node_modules")).unwrap();
    let bundle = pack_all(folder.path());
    let expected = [
        ".longshoreignore",
        "a.py",
        "kept",
        "kept/bin",
        "kept/bin/activate",
        "kept/pyvenv.cfg",
        "tools",
    ];
    assert_eq!(names(&bundle), expected);
    let report = &bundle.report;
    assert_eq!(report.environments, ["conda/", "env/", "tools/py3/"]);
    let excluded = [".nox/", "conda/", "env/", "node_modules", "tools/py3/"];
    assert_eq!(report.left_out_examples, excluded);
}

#[test]
fn a_virtual_environment_around_the_code_is_excluded() {
    let folder = folder(&[
        ("pyvenv.cfg", ""),
        ("bin/activate", ""),
        ("lib/python3/site-packages/a.py", ""),
        ("a.py", ""),
        ("src/lib/b.py", ""),
    ]);
    symlink("/usr/bin/python3", folder.path().join("bin/python")).unwrap();
    symlink("lib", folder.path().join("lib64")).unwrap();
    let packed = ["a.py", "src", "src/lib", "src/lib/b.py"];
    assert_eq!(names(&pack_all(folder.path())), packed);
}

#[test]
fn an_invalid_folder_is_named() {
    let folder = folder(&[("a.py", "")]);
    let error = |path: &str| {
        pack(&folder.path().join(path), &PackOptions::default(), |_| {})
            .unwrap_err()
            .to_string()
    };
    assert!(error("a.py").contains("a.py: it is a file, not a folder"));
    assert!(error("none").contains("none: it does not exist"));
}

#[test]
fn a_large_bundle_is_stored_in_a_temporary_file() {
    let folder = folder(&[("a.py", "")]);
    let noise = noise();
    fs::write(folder.path().join("noise"), &noise).unwrap();
    let bundle = pack_all(folder.path());
    let Some(Data::File(file)) = bundle.contents.data.get() else {
        panic!("kept in memory")
    };
    let path = file.path().to_owned();
    assert_eq!(
        hexadecimal(&Sha256::digest(bundle.bytes().unwrap())),
        bundle.sha256
    );
    assert_eq!(
        fs::read(unpack(&bundle).path().join("noise")).unwrap(),
        noise
    );
    drop(bundle);
    assert!(!path.exists());
}

/// Incompressible content that is too large to stay in memory.
fn noise() -> Vec<u8> {
    let mut seed = 1_u64;
    let noise = std::iter::repeat_with(|| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 56) as u8
    });
    noise.take(IN_MEMORY * 2).collect()
}

/// A size that is too large to be packed during a test.
const ENDLESS: u64 = 1 << 40;

#[test]
fn packing_can_be_stopped_within_one_file() {
    let folder = folder(&[("a.py", "1")]);
    // Packed in this order, so that the archive is already in a file when it is stopped.
    fs::write(folder.path().join("noise"), noise()).unwrap();
    let sparse = fs::File::create(folder.path().join("sparse")).unwrap();
    sparse.set_len(ENDLESS).unwrap();
    let options = PackOptions::default();
    let mut seen = Vec::new();
    let mut stopped = None;
    let error = pack(folder.path(), &options, |progress| {
        seen.push(progress);
        if progress.bytes > 64 << 20 && stopped.is_none() {
            options.stop.store(true, Ordering::Relaxed);
            stopped = Some(Instant::now());
        }
    });
    assert!(matches!(error.unwrap_err(), BundleError::Stopped));
    // An idle machine needs a thirtieth of this time.
    assert!(stopped.unwrap().elapsed() < Duration::from_secs(3));
    // Progress is also reported within a file.
    let within: Vec<_> = seen.iter().filter(|progress| progress.files == 2).collect();
    assert!(within.len() > 10, "{seen:?}");
    assert!(within.is_sorted_by(|a, b| a.bytes <= b.bytes));
    let expected = (3, ENDLESS + noise().len() as u64 + 1);
    assert!(
        seen.iter()
            .all(|progress| (progress.total_files, progress.total_bytes) == expected)
    );
    // A scan that is already stopped reads nothing.
    let again = scan(folder.path(), &options);
    assert!(matches!(again.unwrap_err(), BundleError::Stopped));
}

#[test]
fn a_scan_reports_the_files_before_packing() {
    let folder = folder(&[("a.py", "1")]);
    for name in ["large", "larger"] {
        let sparse = fs::File::create(folder.path().join(name)).unwrap();
        sparse.set_len(ENDLESS + name.len() as u64).unwrap();
    }
    let report = scan(folder.path(), &PackOptions::default()).unwrap().report;
    assert_eq!((report.files, report.bytes), (3, 2 * ENDLESS + 5 + 6 + 1));
    assert_eq!(report.largest[0].0, Path::new("larger"));
}

#[test]
fn secrets_are_rejected_unless_allowed() {
    let folder = folder(&[
        ("train.py", "KEY = '-----BEGIN RSA PRIVATE KEY-----'"),
        (".env", "PASSWORD=x"),
        (
            "keys/id_ed25519",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n",
        ),
        ("keys/ca.pem", "-----BEGIN CERTIFICATE-----\nx\n"),
    ]);
    let with = |ignore: &[&str], allow: &[&str]| {
        let list = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        let options = PackOptions {
            ignore: list(ignore),
            allow_secrets: list(allow),
            ..PackOptions::default()
        };
        pack(folder.path(), &options, |_| {}).map_err(|error| error.to_string())
    };
    assert_eq!(
        with(&[], &[]).unwrap_err(),
        "the folder contains files that look like secrets: .env (environment variables, which often contain passwords), \
         keys/id_ed25519 (a private key); exclude them with .longshoreignore and provide them as a Secret, \
         or allow them with `allow_secrets`"
    );
    assert!(with(&[], &["keys/"]).unwrap_err().contains(".env ("));
    assert_eq!(with(&[], &["keys/", ".env"]).unwrap().report.files, 4);
    assert_eq!(with(&[".env"], &["id_*"]).unwrap().report.files, 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn what_is_packed_is_what_is_unpacked(
        files in proptest::collection::btree_map(
            "[a-z]{1,3}/([a-zA-Z0-9 _.é-]{1,40}/){0,2}f[a-z]{1,120}",
            proptest::collection::vec(any::<u8>(), 0..300),
            0..8,
        )
    ) {
        let source = tempfile::tempdir().unwrap();
        let mut written = BTreeMap::new();
        for (path, content) in files {
            let full = source.path().join(&path);
            if path.split('/').any(|part| part == "." || part == "..")
                || fs::create_dir_all(full.parent().unwrap()).is_err()
                || full.exists()
            {
                continue;
            }
            fs::write(&full, &content).unwrap();
            written.insert(path, content);
        }
        let bundle = pack_all(source.path());
        prop_assert_eq!(bundle.report.files, written.len() as u64);
        let target = unpack(&bundle);
        for (path, content) in written {
            prop_assert_eq!(fs::read(target.path().join(path)).unwrap(), content);
        }
    }
}
