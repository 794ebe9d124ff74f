//! Compares the packed files with the files that git lists.

mod random;

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    process::Command,
};

use super::*;
use crate::bundle::{entry::Kind, walk::walk_with};

/// A folder `code` next to a home folder.
struct Case {
    folder: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        let case = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(case.home()).unwrap();
        fs::create_dir(case.code()).unwrap();
        case
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn code(&self) -> PathBuf {
        self.folder.path().join("code")
    }

    fn variables(&self) -> [(&'static str, OsString); 3] {
        [
            ("HOME", self.home().into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("XDG_CONFIG_HOME", "".into()),
        ]
    }

    /// Writes a file if its path is free.
    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.code().join(path);
        let _ = fs::create_dir_all(path.parent().unwrap());
        let _ = fs::write(path, content);
    }

    fn git(&self, folder: &Path, arguments: &[&str]) -> Vec<u8> {
        let answer = Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
            .args(["-c", "protocol.file.allow=always"])
            .args(arguments)
            .envs(self.variables())
            .output()
            .expect("the tests need git");
        let err = String::from_utf8_lossy(&answer.stderr);
        assert!(answer.status.success(), "git {arguments:?}: {err}");
        answer.stdout
    }

    fn init(&self) {
        self.git(&self.code(), &["init", "-q"]);
    }

    /// The files and links of a folder that git lists, including those in nested repositories.
    fn listed(&self, folder: &Path) -> BTreeSet<PathBuf> {
        let mut listed = BTreeSet::new();
        let arguments = ["ls-files", "-z", "-co", "--exclude-standard"];
        for path in self.git(folder, &arguments).split(|byte| *byte == 0) {
            let path = path.strip_suffix(b"/").unwrap_or(path);
            let path = Path::new(OsStr::from_bytes(path));
            let full = folder.join(path);
            match full.symlink_metadata() {
                _ if path.as_os_str().is_empty() => {}
                Ok(found) if found.is_dir() && full.join(".git").exists() => {
                    let inside = self.listed(&full);
                    listed.extend(inside.iter().map(|inner| path.join(inner)));
                }
                Ok(found) if !found.is_dir() && !is_behind_link(folder, path) => {
                    listed.insert(path.to_owned());
                }
                Ok(_) | Err(_) => {}
            }
        }
        listed
    }

    fn walk(&self, folder: &Path) -> walk::Walked {
        let variables = self.variables();
        let options = PackOptions {
            names_all: true,
            ..PackOptions::default()
        };
        walk_with(folder, &options, &|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.clone())
        })
        .unwrap()
    }

    fn packed(&self, folder: &Path) -> BTreeSet<PathBuf> {
        let walked = self.walk(folder);
        assert_eq!(walked.warnings, [""; 0]);
        let files = walked.entries.into_iter();
        let files = files.filter(|entry| entry.kind != Kind::Folder);
        files.map(|entry| entry.path).collect()
    }
}

fn is_behind_link(folder: &Path, path: &Path) -> bool {
    let above = path.ancestors().skip(1);
    above
        .take_while(|path| !path.as_os_str().is_empty())
        .any(|path| folder.join(path).is_symlink())
}

#[test]
fn tracked_files_are_packed_although_they_are_ignored() {
    let case = Case::new();
    case.init();
    for path in [
        "pkg/data/__init__.py",
        "pkg/data/big.bin",
        "node_modules/a.js",
        "venv/x.py",
    ] {
        case.write(path, "");
    }
    case.write(".gitignore", "data/\n");
    let tracked = ["pkg/data/__init__.py", "node_modules/a.js"];
    case.git(&case.code(), &[&["add", "-f", "--"], &tracked[..]].concat());
    let packed: Vec<_> = case.packed(&case.code()).into_iter().collect();
    let expected = [".gitignore", "node_modules/a.js", "pkg/data/__init__.py"];
    assert_eq!(packed, expected.map(PathBuf::from));
    let walked = case.walk(&case.code());
    assert_eq!(walked.examples, [".git/", "pkg/data/big.bin", "venv/"]);
}

#[test]
fn lines_that_match_nothing_do_not_prevent_packing() {
    for (name, ignore) in [
        ("a backslash at the end", &b"data/\nlogs\\\n"[..]),
        ("a reversed range", b"data/\nlogs[z-a]\n"),
        ("an open bracket", b"data/\nlogs[\n[a\n"),
        ("Latin-1", b"# donn\xe9es\ndata/\n*.\xe9\n"),
        ("braces", b"data/\n*.{pt,ckpt}\n"),
        ("a byte order mark", b"\xef\xbb\xbfdata/\n"),
        ("Windows line ends", b"data/\r\n*.pt\r"),
        ("a NUL", b"data/\n*.pt\0x\n"),
        ("a random file", &noise()[..4096]),
    ] {
        let case = Case::new();
        case.init();
        for path in ["data/x", "logs/y", "a.pt", "b.{pt,ckpt}"] {
            case.write(path, "");
        }
        case.write(".gitignore", ignore);
        let code = case.code();
        assert_eq!(case.packed(&code), case.listed(&code), "{name}");
    }
}

#[test]
fn the_users_own_ignore_file_is_found_as_git_finds_it() {
    let config = |text: &str| format!("[core]\n\texcludesFile = {text}\n");
    for (file, text, ignores) in [
        (
            ".config/git/ignore",
            "*.log".to_owned(),
            ".config/git/ignore",
        ),
        (".gitconfig", config("~/own"), "own"),
        (
            ".config/git/config",
            config("\"~/o\\\"wn\" ; a comment"),
            "o\"wn",
        ),
        (".gitconfig", "[include]\npath = more".to_owned(), "own"),
        (
            ".gitconfig",
            "[includeIf \"gitdir:~/../code/\"]\n\tpath = more".to_owned(),
            "own",
        ),
        (
            ".gitconfig",
            "[includeIf \"gitdir/i:CODE/**\"]\n\tpath = ~/more".to_owned(),
            "own",
        ),
        (
            ".gitconfig",
            "[includeIf \"gitdir:elsewhere/\"]\n\tpath = more".to_owned(),
            "own",
        ),
        (
            ".gitconfig",
            "[includeIf \"onbranch:ma*\"]\n\tpath = more".to_owned(),
            "own",
        ),
        (
            ".gitconfig",
            "[core]\n\texcludesfile\n".replace("file\n", "file = none\n"),
            "own",
        ),
    ] {
        let case = Case::new();
        case.init();
        let code = case.code();
        case.git(&code, &["symbolic-ref", "HEAD", "refs/heads/main"]);
        fs::create_dir_all(case.home().join(".config/git")).unwrap();
        fs::write(case.home().join("more"), config("~/own")).unwrap();
        fs::write(case.home().join(ignores), "*.log").unwrap();
        fs::write(case.home().join(file), &text).unwrap();
        case.write("a.log", "");
        case.write("a.py", "");
        assert_eq!(case.packed(&code), case.listed(&code), "{text}");
    }
}

#[test]
fn submodules_and_other_repositories_have_their_own_rules() {
    let case = Case::new();
    let lib = case.folder.path().join("lib");
    fs::create_dir(&lib).unwrap();
    case.git(&lib, &["init", "-q"]);
    fs::write(lib.join(".gitignore"), "out\n").unwrap();
    fs::write(lib.join("a.log"), "").unwrap();
    case.git(&lib, &["add", "-A"]);
    case.git(&lib, &["commit", "-q", "-m", "first"]);
    case.init();
    let code = case.code();
    case.write(".gitignore", "*.log\nignored/\n");
    case.git(&code, &["submodule", "--quiet", "add", "../lib", "lib"]);
    for clone in ["clone", "ignored"] {
        case.git(&code, &["clone", "-q", "../lib", clone]);
    }
    for path in [
        "out",
        "lib/out",
        "lib/b.log",
        "clone/out",
        "clone/b.log",
        "b.log",
    ] {
        case.write(path, "");
    }
    let packed: Vec<_> = case.packed(&code).into_iter().collect();
    let expected = [
        ".gitignore",
        ".gitmodules",
        "clone/.gitignore",
        "clone/a.log",
        "clone/b.log",
        "lib/.gitignore",
        "lib/a.log",
        "lib/b.log",
        "out",
    ];
    assert_eq!(packed, expected.map(PathBuf::from));
    assert_eq!(case.packed(&code), case.listed(&code));
    assert_eq!(
        case.packed(&code.join("lib")),
        case.listed(&code.join("lib"))
    );
}

#[test]
fn all_states_of_an_index_are_read() {
    let case = Case::new();
    case.init();
    let code = case.code();
    case.write(".gitignore", "*.log\n");
    for n in 0..40 {
        case.write(&format!("d{}/{n}.log", n % 4), n.to_string());
    }
    case.git(&code, &["add", "-f", "d0", "d1", "d2"]);
    case.git(&code, &["commit", "-q", "-m", "first"]);
    let compare = |name: &str| assert_eq!(case.packed(&code), case.listed(&code), "{name}");
    compare("a commit");
    case.write("d3/new", "");
    case.git(&code, &["add", "-N", "-f", "d3/3.log", "d3/new"]);
    compare("files that will be added");
    case.git(&code, &["update-index", "--split-index"]);
    case.git(&code, &["rm", "-q", "--cached", "d0/0.log"]);
    case.git(&code, &["update-index", "--chmod=+x", "d1/1.log"]);
    case.git(&code, &["add", "-f", "d3"]);
    compare("a split index");
    case.git(&code, &["update-index", "--index-version", "4"]);
    compare("version 4");
    case.git(&code, &["update-index", "--no-split-index"]);
    case.git(&code, &["update-index", "--skip-worktree", "d1/5.log"]);
    compare("an extended entry");
    fs::remove_dir_all(code.join("d2")).unwrap();
    compare("removed files");
    case.git(&code, &["checkout", "-q", "-f", "-b", "two"]);
    case.write("d0/4.log", "two");
    case.git(&code, &["commit", "-q", "-am", "two"]);
    case.git(&code, &["checkout", "-q", "-f", "-b", "three", "HEAD~"]);
    case.write("d0/4.log", "three");
    case.git(&code, &["commit", "-q", "-am", "three"]);
    let merge = Command::new("git")
        .arg("-C")
        .arg(&code)
        .args(["merge", "-q", "two"])
        .output();
    assert!(!merge.unwrap().status.success());
    compare("a conflict");
    case.git(&code, &["merge", "--abort"]);
    case.git(
        &code,
        &["sparse-checkout", "set", "--cone", "--sparse-index", "d1"],
    );
    case.write("d2/left.log", "");
    compare("a sparse index");
}

#[test]
fn a_damaged_index_is_a_warning() {
    let case = Case::new();
    case.init();
    let code = case.code();
    for n in 0..9 {
        case.write(&format!("{n}.py"), "");
    }
    case.git(&code, &["add", "-A"]);
    let index = code.join(".git/index");
    let data = fs::read(&index).unwrap();
    fs::write(&index, &data[..data.len() / 2]).unwrap();
    let warnings = case.walk(&code).warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains(".git/index is damaged"),
        "{warnings:?}"
    );
    // The walk ends for any content of the file.
    for at in 0..data.len() {
        let mut damaged = data.clone();
        damaged[at] ^= 0xff;
        fs::write(&index, damaged).unwrap();
        assert_eq!(case.walk(&code).entries.len(), 9);
    }
}

#[test]
fn the_settings_of_a_repository_start_no_program() {
    let case = Case::new();
    case.init();
    let (code, made) = (case.code(), case.folder.path().join("made"));
    let program = format!("touch {}", made.display());
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.hooksPath",
    ] {
        case.git(&code, &["config", key, &program]);
    }
    let pipe = code.join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    for key in ["core.excludesFile", "include.path"] {
        case.git(&code, &["config", "--add", key, pipe.to_str().unwrap()]);
    }
    case.write("a.py", "");
    assert_eq!(case.packed(&code), BTreeSet::from([PathBuf::from("a.py")]));
    assert!(!made.exists());
}

#[test]
fn a_folder_that_git_ignores_is_packed_if_it_is_asked_for() {
    let case = Case::new();
    case.init();
    for path in ["scratch/one/a.py", "scratch/one/b.log", "scratch/one/out/c"] {
        case.write(path, "");
    }
    case.write(".gitignore", "*.log\nscratch/\n");
    case.write("scratch/one/.gitignore", "out/\n");
    let packed: Vec<_> = case
        .packed(&case.code().join("scratch/one"))
        .into_iter()
        .collect();
    assert_eq!(packed, [".gitignore", "a.py"].map(PathBuf::from));
    // A pattern for all files of the repository, as in a repository for a home folder.
    case.write(".gitignore", "*\n");
    assert_eq!(case.packed(&case.code().join("scratch/one")).len(), 3);
}
