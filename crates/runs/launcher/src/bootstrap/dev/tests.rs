//! Tests of receiving and applying changes, without a cluster.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::{
        fs::{MetadataExt as _, symlink},
        net::UnixStream,
    },
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use super::{
    apply::apply,
    connection,
    staged::{OrderError, Received, Staged, read},
    supervisor::Supervisor,
};
use crate::{
    bootstrap::Places,
    bundle::{Listing, Manifest, PackOptions},
    dev::{CommandState, Order, PACKED, Report, Request},
};

/// An order with all files of a folder.
fn order(code: &Path, removed: &[&str]) -> (Order, Vec<u8>) {
    let options = PackOptions::default();
    let manifest = Manifest::of_folder(code, &options).unwrap();
    let changes = manifest.changes_since(&Manifest::default());
    let archive = manifest.pack(code, &changes.changed, &options).unwrap();
    let order = Order {
        state: "s.1".to_owned(),
        size: archive.bytes.len() as u64,
        sha256: archive.sha256,
        removed: removed.iter().map(ToString::to_string).collect(),
        restart: true,
    };
    (order, archive.bytes)
}

fn message(order: &Order, archive: &[u8]) -> Vec<u8> {
    let mut message = request(&Request::Order(order.clone()));
    message.extend_from_slice(archive);
    message
}

fn request(request: &Request) -> Vec<u8> {
    let mut message = serde_json::to_vec(request).unwrap();
    message.push(b'\n');
    message
}

fn staged(received: Option<Received>) -> Box<Staged> {
    match received {
        Some(Received::Order(staged)) => staged,
        other => panic!("{other:?}"),
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_order_that_arrives_in_part_leaves_nothing() {
    let (code, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(code.path().join("a.py"), "print(1)\n").unwrap();
    let (order, archive) = order(code.path(), &[]);
    let whole = message(&order, &archive);
    for length in 1..whole.len() {
        let result = read(&mut &whole[..length], home.path());
        assert!(matches!(result, Err(OrderError::Ended(_))), "{length}");
        assert_eq!(entries(home.path()), [""; 0], "{length}");
    }
    assert!(read(&mut &whole[..0], home.path()).unwrap().is_none());
    let staged = staged(read(&mut &whole[..], home.path()).unwrap());
    assert_eq!(entries(&staged.folder().unwrap()), ["a.py"]);
    drop(staged);
    assert_eq!(entries(home.path()), [""; 0]);
}

#[test]
fn a_damaged_archive_is_refused_and_the_next_order_is_read() {
    let (code, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(code.path().join("a.py"), "print(1)\n").unwrap();
    let (order, archive) = order(code.path(), &[]);
    let mut damaged = archive.clone();
    damaged[archive.len() / 2] ^= 1;
    let mut stream = message(&order, &damaged);
    stream.extend(message(&order, &archive));
    let mut stream = &stream[..];
    let Err(OrderError::Refused(problem)) = read(&mut stream, home.path()) else {
        panic!("it is not refused");
    };
    assert!(problem.contains("is damaged"), "{problem}");
    assert!(read(&mut stream, home.path()).unwrap().is_some());
}

#[test]
fn changes_replace_files_and_keep_those_of_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    for path in [
        "work/old",
        "work/both",
        "work/outside",
        "new/sub",
        "new/both",
    ] {
        fs::create_dir_all(at(path)).unwrap();
    }
    fs::write(at("work/a.py"), "old").unwrap();
    fs::write(at("work/old/b.py"), "old").unwrap();
    fs::write(at("work/both/checkpoint"), "kept").unwrap();
    fs::write(at("work/both/gone.py"), "old").unwrap();
    fs::write(at("new/a.py"), "new").unwrap();
    fs::write(at("new/sub/c.py"), "new").unwrap();
    fs::write(at("new/both/d.py"), "new").unwrap();
    fs::write(at("target"), "target").unwrap();
    symlink(at("target"), at("work/link")).unwrap();
    symlink(folder.path(), at("work/out")).unwrap();
    let before = fs::metadata(at("work/a.py")).unwrap();
    let removed = [
        "old/b.py",
        "old",
        "both/gone.py",
        "both",
        "link",
        "out/target",
        "none/x",
    ];
    let removed = removed.map(str::to_owned);
    apply(&at("work"), &removed, Some(&at("new"))).unwrap();
    assert_eq!(
        entries(&at("work")),
        ["a.py", "both", "out", "outside", "sub"]
    );
    assert_eq!(entries(&at("work/both")), ["checkpoint", "d.py"]);
    assert_eq!(fs::read_to_string(at("work/a.py")).unwrap(), "new");
    assert_eq!(fs::read_to_string(at("target")).unwrap(), "target");
    // Python recognizes the change, although the size and the second are the same.
    let after = fs::metadata(at("work/a.py")).unwrap();
    assert!(after.mtime() > before.mtime());
    for path in ["../target", "/etc/passwd", ".", "a/../.."] {
        apply(&at("work"), &[path.to_owned()], None).unwrap_err();
    }
    // A file does not replace a folder with files of the command.
    fs::create_dir(at("more")).unwrap();
    fs::write(at("more/both"), "file").unwrap();
    let problem = apply(&at("work"), &[], Some(&at("more"))).unwrap_err();
    assert!(problem.starts_with("cannot write both: "), "{problem}");
    assert_eq!(entries(&at("work/both")), ["checkpoint", "d.py"]);
}

struct Client {
    reports: BufReader<UnixStream>,
}

impl Client {
    fn connect(home: &Path) -> Self {
        let begin = Instant::now();
        loop {
            match connection::connect(home) {
                Ok(stream) => {
                    return Self {
                        reports: BufReader::new(stream),
                    };
                }
                Err(error) => assert!(begin.elapsed() < Duration::from_secs(20), "{error}"),
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Connects, and begins a session.
    fn begin(home: &Path, session: u64) -> Self {
        let mut client = Self::connect(home);
        let first = client.report();
        assert!(matches!(first, Report::Hello { .. }), "{first:?}");
        client.send(&request(&Request::Begin(session)));
        client
    }

    fn report(&mut self) -> Report {
        let mut line = String::new();
        self.reports.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn send(&mut self, bytes: &[u8]) {
        self.reports.get_mut().write_all(bytes).unwrap();
    }
}

const WAITS: &str = "LONGSHORE_TEST_DEV";

/// Started by the next test in a process of its own, because a supervisor reaps all children of its
/// process.
#[test]
#[ignore = "the next test starts it"]
fn supervisor() {
    let Some(folder) = std::env::var_os(WAITS) else {
        return;
    };
    let folder = Path::new(&folder);
    let places = Places {
        home: folder.join("home"),
        config: folder.join("config"),
        bundle: folder.join("bundle"),
        data: folder.join("data"),
    };
    let mut command = Command::new("sh");
    command
        .args(["run.sh"])
        .current_dir(folder.join("home/work"));
    let grace = Duration::from_millis(300);
    let code = Listing::of_folder(&folder.join("home/work"));
    let code = Supervisor::start(&places, command, grace, code).and_then(Supervisor::run);
    std::process::exit(code.unwrap());
}

#[test]
fn the_command_starts_restarts_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    for path in ["home/work", "code", "home/.dev-left"] {
        fs::create_dir_all(at(path)).unwrap();
    }
    let script = |text: &str| fs::write(at("code/run.sh"), text).unwrap();
    fs::write(
        at("home/work/run.sh"),
        "echo packed >> ../log; exec sleep 60\n",
    )
    .unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["bootstrap::dev::tests::supervisor", "--exact", "--ignored"])
        .env(WAITS, folder.path())
        .spawn()
        .unwrap();
    let log = || fs::read_to_string(at("home/log")).unwrap_or_default();
    let until = |text: &str| {
        let begin = Instant::now();
        while !log().ends_with(text) {
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "{text}: {}",
                log()
            );
            thread::sleep(Duration::from_millis(5));
        }
    };
    let mut client = Client::begin(&at("home"), 0);
    let hello = Report::Hello {
        state: PACKED.to_owned(),
        command: CommandState::Waiting,
    };
    assert_eq!(client.report(), hello);
    assert!(!at("home/.dev-left").exists());
    // The command waits for the first order, so that it does not run old code. This command
    // ignores SIGTERM.
    assert_eq!(log(), "");
    script("trap '' TERM; echo one >> ../log; while :; do sleep 0.05; done\n");
    let (first, archive) = order(&at("code"), &[]);
    client.send(&message(&first, &archive));
    let done = |state: &str| Report::Done {
        state: state.to_owned(),
        started: true,
    };
    assert_eq!(client.report(), done("s.1"));
    until("one\n");
    // The command is killed after the grace period. Half an order of a lost connection changes
    // nothing.
    script("echo two >> ../log; exit 3\n");
    let (second, archive) = order(&at("code"), &[]);
    let second = Order {
        state: "s.2".to_owned(),
        ..second
    };
    let whole = message(&second, &archive);
    client.send(&whole[..whole.len() - 1]);
    drop(client);
    let mut client = Client::begin(&at("home"), 0);
    let hello = Report::Hello {
        state: "s.1".to_owned(),
        command: CommandState::Running,
    };
    assert_eq!(client.report(), hello);
    let begin = Instant::now();
    client.send(&whole);
    assert_eq!(client.report(), done("s.2"));
    assert!(begin.elapsed() >= Duration::from_millis(300));
    until("two\n");
    assert_eq!(client.report(), Report::Ended { code: 3 });
    assert_eq!(log(), "one\ntwo\n");
    // A later session takes over. It gets a listing of the code, without the command's files.
    let mut before = client;
    let mut client = Client::begin(&at("home"), 2);
    assert_eq!(before.report(), Report::Replaced);
    let hello = Report::Hello {
        state: "s.2".to_owned(),
        command: CommandState::Ended { code: 3 },
    };
    assert_eq!(client.report(), hello);
    fs::write(at("home/work/checkpoint"), "of the command").unwrap();
    client.send(&request(&Request::Describe));
    let listing = Listing::of_folder(&at("code"));
    assert_eq!(client.report(), Report::Listing(listing));
    // The earlier session reconnects, but its orders are not executed.
    let mut before = Client::begin(&at("home"), 1);
    assert_eq!(before.report(), Report::Replaced);
    before.reports.get_mut().write_all(&whole).ok();
    assert_eq!(before.reports.read_line(&mut String::new()).unwrap_or(0), 0);
    // A client without a session number cannot give orders either.
    let mut without = Client::connect(&at("home"));
    assert_eq!(without.report(), hello);
    without.send(&whole);
    assert_eq!(log(), "one\ntwo\n");
    // A signal ends the task, with the exit code of the command.
    script("echo three >> ../log; exec sleep 60\n");
    let (third, archive) = order(&at("code"), &[]);
    client.send(&message(&third, &archive));
    assert_eq!(client.report(), done("s.1"));
    until("three\n");
    let pid = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let mut rest = Vec::new();
    let end = io::Read::read_to_end(&mut client.reports, &mut rest);
    assert!(end.is_ok() && rest.is_empty(), "{rest:?}");
}
