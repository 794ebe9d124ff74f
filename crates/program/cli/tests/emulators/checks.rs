//! Checks that pass on every server.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    machine::{Answer, Machine, Running, eventually},
    server::{BUCKET, Server},
};

/// Two parts and a remainder.
const SIZE: usize = (16 << 20) + 1000;

/// Writes two files, and prints how many of the store's variables the pod has.
const TRAIN: &str = "mkdir -p out; echo weights > out/model.bin; echo $LONGSHORE_INDEX > m.json\n\
     env | grep -c -e AZURE_ -e GOOGLE_ -e sig= -e Signature\nexit ${FAIL:-0}\n";

/// The program with the variables of the server, and the embedded cluster as any other cluster,
/// which keeps no outputs.
fn command(machine: &Machine, server: &dyn Server, arguments: &[&str]) -> Command {
    let mut command = machine.command(arguments);
    command
        .envs(server.settings())
        .env("LONGSHORE_KUBECONFIG", machine.data().join("kubeconfig"));
    command
}

fn longshore(machine: &Machine, server: &dyn Server, arguments: &[&str]) -> Answer {
    Answer::new(&command(machine, server, arguments).output().unwrap())
}

/// A machine with a running cluster, and code with an incompressible file of this size.
fn machine(bytes: usize) -> Machine {
    let machine = Machine::new();
    machine.write("train.sh", TRAIN);
    let size = bytes.to_string();
    let script = format!("head -c {size} /dev/urandom > data");
    Answer::new(&machine.shell(&script).output().unwrap()).expect(0);
    machine.longshore(&["up"]).expect(0);
    machine
}

pub(crate) fn code_and_outputs(server: &dyn Server) {
    let machine = machine(1000);
    let longshore = |arguments: &[&str]| longshore(&machine, server, arguments);
    let read = |path: &str| fs::read_to_string(machine.code().join(path)).unwrap();
    let store = server.url("team");
    let options = ["run", "--name", "train", "--store", &store];
    let outputs = ["--output-files", "out/**", "--output-files", "*.json"];
    let task = ["--role", "main=2", "--env", "FAIL=3", "--fetch=got"];
    let run = [&options[..], &outputs, &task, &["--", "sh", "train.sh"]].concat();

    let first = longshore(&[&options[..], &["--", "true"]].concat()).expect(0);
    let sent = first.err.lines().find(|line| line.contains(&store));
    assert!(sent.unwrap().ends_with(" sent"), "{}", first.err);
    assert_eq!(server.below("team/bundles/").len(), 1);

    // The same code is not sent again, and outputs of a task that fails are uploaded, too.
    let second = longshore(&run).expect(3);
    assert!(second.err.contains("already uploaded"), "{}", second.err);
    assert!(second.out.contains("| 0\n"), "{}", second.out);
    let news = "outputs 4 files, 20 B, to got";
    assert!(second.err.contains(news), "{}", second.err);
    assert_eq!(read("got/main-0/out/model.bin"), "weights\n");
    assert_eq!(read("got/main-1/m.json"), "1\n");
    assert_eq!(server.below("team/bundles/").len(), 1);
    assert_eq!(server.below("team/outputs/").len(), 2);
    let list = longshore(&["outputs", "last", "main/1", "--list"]).expect(0);
    assert_eq!(list.out.matches("main/1").count(), 2, "{}", list.out);
    longshore(&["outputs", "last", "main/0", "--to", "again"]).expect(0);
    assert_eq!(read("again/main-0/m.json"), "0\n");
    longshore(&["cp", "last/main/1:out/model.bin", "weights"]).expect(0);
    assert_eq!(read("weights"), "weights\n");

    // Keys and signatures are only in the Secrets of the runs.
    let mut shown = [first.out, first.err, second.out, second.err].concat();
    for kind in ["pods", "jobs", "events"] {
        shown += &longshore(&["get", kind, "-o", "yaml"]).expect(0).out;
    }
    shown += &fs::read_to_string(machine.data().join("cluster.log")).unwrap();
    let verbose = command(&machine, server, &["outputs", "last", "--list"])
        .env("LONGSHORE_LOG", "trace")
        .output();
    let verbose = Answer::new(&verbose.unwrap()).expect(0);
    assert!(verbose.err.contains("TRACE"), "{}", verbose.err);
    shown += &verbose.err;
    for secret in server.secrets() {
        let line = shown.lines().find(|line| line.contains(&secret));
        assert_eq!(line, None, "{secret} is printed");
    }

    let removed = longshore(&["rm", "last"]).expect(0);
    assert!(removed.err.contains("of outputs"), "{}", removed.err);
    assert_eq!(server.below("team/outputs/"), [""; 0]);
    // Other runs may use the bundle.
    assert_eq!(server.below("team/bundles/").len(), 1);
}

/// The upload journals on the machine.
fn journals(machine: &Machine) -> Vec<String> {
    let folder = machine.home().join(".cache/longshore/uploads");
    let files = fs::read_dir(folder).into_iter().flatten();
    files
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect()
}

/// Starts a run, and waits until all parts of its code but one have arrived.
fn uploading(machine: &Machine, server: &dyn Server) -> Running {
    server.emulator().stall();
    let store = server.url("team");
    let run = ["run", "--name", "job", "--store", &store, "--", "true"];
    let running = Running::start(command(machine, server, &run));
    // The first line is about the upload.
    eventually("all parts but one have arrived", || {
        let all = journals(machine);
        all.iter().any(|text| text.lines().count() == 3)
    });
    running
}

pub(crate) fn resumed_upload(server: &dyn Server) {
    let machine = machine(SIZE);
    let killed = uploading(&machine, server);
    killed.signal("KILL");
    killed.end();
    server.emulator().resume();
    assert!(server.objects().is_empty());
    for journal in journals(&machine) {
        for secret in server.secrets() {
            assert!(!journal.contains(&secret), "{journal}");
        }
    }

    let store = server.url("team");
    let verify = "wc -c < data; sha256sum < data";
    let run = ["run", "--name", "job", "--store", &store];
    let run = [&run[..], &["--", "sh", "-c", verify]].concat();
    let again = longshore(&machine, server, &run).expect(0);
    let news = "16 MiB sent (8.0 MiB by an earlier attempt)";
    assert!(again.err.contains(news), "{}", again.err);
    let sum = Answer::new(&machine.shell("sha256sum < data").output().unwrap());
    assert!(again.out.contains(sum.out.trim()), "{}", again.out);
    assert!(again.out.contains(&format!("| {SIZE}\n")), "{}", again.out);
    assert_eq!(journals(&machine), [""; 0]);

    // A bundle that was overwritten is not run.
    let objects = server.objects();
    let [(bundle, size)] = objects.as_slice() else {
        panic!("{objects:?}");
    };
    server.put(bundle, &vec![0; *size]);
    let run = ["run", "--name", "job", "--store", &store];
    let run = [&run[..], &["--", "echo", "it", "runs"]].concat();
    let damaged = longshore(&machine, server, &run).expect(4);
    let shown = format!("{}{}", damaged.out, damaged.err);
    assert!(!damaged.out.contains("it runs"), "{shown}");
    assert!(shown.contains("is damaged: its sha256 is"), "{shown}");
}

pub(crate) fn interrupted_upload(server: &dyn Server) {
    let machine = machine(SIZE);
    let running = uploading(&machine, server);
    running.signal("INT");
    running.end().expect(130);
    server.emulator().resume();
    assert!(server.objects().is_empty());
    assert_eq!(journals(&machine), [""; 0]);
}

/// Data of five files, the third with this name.
pub(crate) fn data(server: &dyn Server, third: &str) {
    let machine = machine(1000);
    let files = ["a.bin", "b/c.bin", third, "f.bin", "g.bin"];
    for file in files {
        server.put(&format!("models/{file}"), format!("in {file}\n").as_bytes());
    }
    let data = format!("models={}:/models", server.url("models"));
    let print = "cd /models; find . -type f -exec cat {} +; find . -type f | wc -l";
    let run = ["run", "--data", &data, "--", "sh", "-c", print];
    let check = |answer: Answer| {
        let answer = answer.expect(0);
        for file in files {
            let line = format!("| in {file}\n");
            assert!(answer.out.contains(&line), "{}", answer.out);
        }
        assert!(answer.out.contains("| 5\n"), "{}", answer.out);
    };
    // On this machine's cluster, and on any other cluster, where pods fetch the files.
    let mut here = machine.command(&run);
    here.envs(server.settings());
    check(Answer::new(&here.output().unwrap()));
    check(longshore(&machine, server, &run));
}

/// A run with other settings is refused early, with these words and without the key.
pub(crate) fn refused(
    server: &dyn Server,
    settings: &[(&str, &str)],
    bucket: &str,
    words: &[&str],
) {
    let machine = Machine::new();
    machine.write("train.sh", TRAIN);
    let store = server.url("team").replace(BUCKET, bucket);
    let mut command = machine.command(&["run", "--store", &store, "--", "true"]);
    command
        .envs(server.settings())
        .envs(settings.iter().copied());
    let begin = Instant::now();
    let answer = Answer::new(&command.output().unwrap()).expect(4);
    assert!(begin.elapsed() < Duration::from_secs(50), "{begin:?}");
    for word in words {
        assert!(answer.err.contains(word), "{word}: {}", answer.err);
    }
    assert!(!answer.err.contains("hush"), "{}", answer.err);
}
