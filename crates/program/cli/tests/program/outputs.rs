//! Outputs of runs: the files that are kept for each kind of end, and their fetching and removal.

use std::fs;

use crate::machine::{Machine, eventually};

/// Writes two files; with an argument, waits until it is terminated, and writes a third one.
const TRAIN: &str = "mkdir -p out; echo weights > out/model.bin; echo $LONGSHORE_INDEX > m.json\n\
     test -z \"$1\" && exit ${FAIL:-0}\n\
     trap 'echo last > out/last; exit 1' TERM; echo ready\n\
     while true; do sleep 0.05; done\n";

fn machine() -> Machine {
    let machine = Machine::new();
    machine.write("train.sh", TRAIN);
    machine.write(
        "longshore.toml",
        "name = 'train'\noutputs = ['out/**', '*.json']\n",
    );
    machine.longshore(&["up"]).expect(0);
    machine
}

fn paths(machine: &Machine, run: &str) -> Vec<String> {
    let answer = machine.longshore(&["outputs", run, "--output", "json"]);
    let json = answer.expect(0).json();
    let tasks = json["tasks"].as_array().unwrap();
    let files = tasks.iter().flat_map(|task| {
        let files = task["files"].as_array().unwrap().iter();
        files.map(move |file| {
            format!(
                "{} {}",
                task["task"].as_str().unwrap(),
                file["path"].as_str().unwrap()
            )
        })
    });
    files.collect()
}

#[test]
fn outputs_of_a_failed_run_are_fetched_at_its_end_with_its_exit_code() {
    let machine = machine();
    let run = [
        "run",
        "--env",
        "FAIL=3",
        "--fetch=got",
        "--",
        "sh",
        "train.sh",
    ];
    let answer = machine.longshore(&run).expect(3);
    assert!(
        answer.err.contains("outputs 2 files, 10 B, to got"),
        "{}",
        answer.err
    );
    assert_eq!(
        fs::read_to_string(machine.code().join("got/out/model.bin")).unwrap(),
        "weights\n"
    );
    let again = machine
        .longshore(&["outputs", "last", "--to", "got"])
        .expect(0);
    assert!(again.err.contains("2 files already there"), "{}", again.err);

    machine.write("got/m.json", "changed");
    let refused = machine
        .longshore(&["outputs", "last", "--to", "got"])
        .expect(1);
    assert!(
        refused.err.contains("another content: m.json; use --force"),
        "{}",
        refused.err
    );
    machine
        .longshore(&["outputs", "last", "--to", "got", "--force"])
        .expect(0);
    assert_eq!(
        fs::read_to_string(machine.code().join("got/m.json")).unwrap(),
        "0\n"
    );
}

#[test]
fn the_end_of_a_run_offers_to_fetch_only_files_that_exist() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    for (pattern, code, expected) in [
        ("nothing*", 0, "no file matched"),
        ("one", 0, "fetches them"),
        ("*", 0, "fetches them"),
        // After a failure, other tasks may still write files.
        ("nothing*", 3, "fetches the files that matched"),
        ("one", 3, "fetches the files that matched"),
    ] {
        let script = format!("echo > one; echo > two; exit {code}");
        let run = ["run", "--output-files", pattern, "--", "sh", "-c", &script];
        let answer = machine.longshore(&run).expect(code);
        let mut lines = answer
            .err
            .lines()
            .filter(|line| line.starts_with("outputs"));
        let line = lines.next().unwrap_or_default();
        assert!(line.ends_with(expected), "{pattern}: {}", answer.err);
    }
}

#[test]
fn outputs_of_a_cancelled_run_include_what_it_writes_within_its_grace_period() {
    let machine = machine();
    let run = machine
        .longshore(&["run", "-d", "--", "sh", "train.sh", "wait"])
        .expect(0);
    let run = run.out.trim();
    eventually("the task is ready", || {
        machine.longshore(&["logs", run]).out.contains("ready")
    });
    // Outputs of a running task are collected on request.
    let answer = machine
        .longshore(&["outputs", run, "--to", "now"])
        .expect(0);
    assert!(
        answer.err.contains("main/0 is still running"),
        "{}",
        answer.err
    );
    assert!(machine.code().join("now/m.json").exists());
    machine.longshore(&["cancel", run]).expect(0);
    eventually("the pod has ended", || {
        paths(&machine, run).contains(&"main/0 out/last".to_owned())
    });
    assert_eq!(
        paths(&machine, run),
        ["main/0 m.json", "main/0 out/last", "main/0 out/model.bin"]
    );
}

#[test]
fn each_task_has_a_folder_and_rm_frees_the_space() {
    let machine = machine();
    machine
        .longshore(&["run", "--role", "worker=2", "--", "sh", "train.sh"])
        .expect(0);
    assert_eq!(
        paths(&machine, "last"),
        [
            "worker/0 m.json",
            "worker/0 out/model.bin",
            "worker/1 m.json",
            "worker/1 out/model.bin"
        ]
    );
    machine
        .longshore(&["outputs", "last", "--to", "got"])
        .expect(0);
    let read = |path: &str| fs::read_to_string(machine.code().join(path)).unwrap();
    assert_eq!(
        (read("got/worker-0/m.json"), read("got/worker-1/m.json")),
        ("0\n".into(), "1\n".into())
    );
    let wrong = machine
        .longshore(&["outputs", "last", "worker/2"])
        .expect(2);
    assert!(wrong.err.contains("worker/2"), "{}", wrong.err);

    let outputs = &machine.status()["code"]["outputs"];
    assert_eq!(
        outputs,
        &serde_json::json!({"runs": 1, "files": 3, "bytes": 12})
    );
    let answer = machine.longshore(&["rm", "last"]).expect(0);
    assert!(
        answer.err.contains("Freed 12 B of outputs."),
        "{}",
        answer.err
    );
    assert_eq!(machine.status()["code"]["outputs"]["bytes"], 0);
}

#[test]
fn a_full_folder_is_reported_and_a_second_fetch_completes() {
    let machine = machine();
    let script = "mkdir out; echo small > out/a; head -c 2000000 /dev/zero > out/b";
    machine
        .longshore(&["run", "--", "sh", "-c", script])
        .expect(0);
    let program = env!("CARGO_BIN_EXE_longshore");
    let limited = format!("ulimit -f 500; exec {program} outputs last --to got");
    let mut limited = machine.shell(&limited);
    let full = crate::machine::Answer::new(&limited.output().unwrap()).expect(1);
    assert!(
        full.err.contains("no space to write got/out/b"),
        "{}",
        full.err
    );
    assert!(full.err.contains("fetch again"), "{}", full.err);
    let names = || {
        let entries = fs::read_dir(machine.code().join("got/out")).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["a"]);
    let fetch = ["outputs", "last", "--to", "got"];
    let again = machine.longshore(&fetch).expect(0);
    assert!(again.err.contains("1 file already there"), "{}", again.err);
    assert_eq!(names(), ["a", "b"]);
}

#[test]
fn a_checkpoint_is_put_back_from_kept_outputs_after_a_kill_of_the_cluster() {
    let machine = machine();
    let script = "n=$(cat out/step 2>/dev/null || echo 0); echo begins at $n\n\
                  test $n = 3 && exit 0\nmkdir -p out; echo 3 > out/step.new; mv out/step.new out/step\n\
                  echo ready; sleep 600\n";
    machine.write("step.sh", script);
    let run = machine.longshore(&["run", "-d", "--", "sh", "step.sh"]);
    let run = run.expect(0).out.trim().to_owned();
    eventually("the checkpoint is written", || {
        machine.longshore(&["logs", &run]).out.contains("ready")
    });
    crate::machine::signal(machine.pid().unwrap(), "KILL");
    eventually("the cluster has ended", || machine.pid().is_none());
    machine.longshore(&["up"]).expect(0);
    eventually("the files are kept", || {
        machine.longshore(&["outputs", &run, "--to", "."]).code == 0
            && machine.code().join("out/step").exists()
    });
    let next = machine.longshore(&["run", "--", "sh", "step.sh"]).expect(0);
    assert!(next.out.contains("begins at 3"), "{}", next.out);
}

#[test]
fn outputs_survive_the_end_of_the_clusters_process() {
    let machine = machine();
    let run = machine
        .longshore(&["run", "-d", "--", "sh", "train.sh", "wait"])
        .expect(0);
    let run = run.out.trim();
    eventually("the task is ready", || {
        machine.longshore(&["logs", run]).out.contains("ready")
    });
    crate::machine::signal(machine.pid().unwrap(), "KILL");
    eventually("the cluster has ended", || machine.pid().is_none());
    machine.longshore(&["up"]).expect(0);
    eventually("the next cluster keeps the files", || {
        machine.longshore(&["outputs", run, "--list"]).code == 0
    });
    assert_eq!(
        paths(&machine, run),
        ["main/0 m.json", "main/0 out/model.bin"]
    );
}

#[test]
fn runs_that_cannot_have_outputs_are_refused_with_a_remedy() {
    let machine = machine();
    let kubeconfig = machine.data().join("kubeconfig");
    let kubeconfig = kubeconfig.to_str().unwrap();
    let other = ["run", "--kubeconfig", kubeconfig, "--", "true"];
    let refused = machine.longshore(&other);
    assert_ne!(refused.code, 0);
    assert!(
        refused
            .err
            .contains("this cluster keeps no files of tasks: set `store`"),
        "{}",
        refused.err
    );
    assert!(
        refused
            .err
            .contains("`outputs_claim` to a PersistentVolumeClaim"),
        "{}",
        refused.err
    );
    let refused = machine
        .longshore(&["run", "--no-code", "--", "true"])
        .expect(2);
    assert!(
        refused.err.contains("remove `--no-code`"),
        "{}",
        refused.err
    );
    machine.write("longshore.toml", "outputs = ['../x']\n");
    let refused = machine.longshore(&["run", "--", "true"]).expect(2);
    assert!(
        refused.err.contains("longshore.toml:1:12: invalid outputs"),
        "{}",
        refused.err
    );
    machine.write("longshore.toml", "");
    let refused = machine
        .longshore(&["run", "--fetch", "--", "true"])
        .expect(2);
    assert!(
        refused.err.contains("the run has no outputs"),
        "{}",
        refused.err
    );
    assert!(
        machine
            .longshore(&["runs", "--output", "name"])
            .expect(0)
            .out
            .is_empty()
    );
}

/// The number of files below a folder.
fn files_in(folder: &std::path::Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let counts = entries.map(|entry| match entry.path().is_dir() {
        true => files_in(&entry.path()),
        false => 1,
    });
    counts.sum()
}

#[test]
fn outputs_are_complete_although_the_node_was_killed_while_it_collected_them() {
    let machine = machine();
    let complete = machine.home().join("complete");
    let script = format!(
        "mkdir out; for n in $(seq 1000); do echo $n $LONGSHORE_RUN > out/$n; done\n\
         rm -rf {complete}; cp -r out {complete}",
        complete = complete.display()
    );
    machine.write("many.sh", &script);
    let outputs = machine.data().join("outputs");
    for kept in [1, 500] {
        let before = files_in(&outputs);
        let run = machine.longshore(&["run", "-d", "--", "sh", "many.sh"]);
        let run = run.expect(0).out.trim().to_owned();
        let pid = machine.pid().unwrap();
        let begin = std::time::Instant::now();
        while files_in(&outputs) < before + kept {
            assert!(begin.elapsed() < crate::machine::TIMEOUT, "{kept}");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        crate::machine::signal(pid, "KILL");
        let list = outputs.join("runs/default").join(&run).join("main.0.json");
        assert!(!list.exists(), "all was collected before the kill: {kept}");
        eventually("the cluster has ended", || machine.pid().is_none());
        machine.longshore(&["up"]).expect(0);
        eventually("the next node collects the files", || {
            machine.longshore(&["outputs", &run, "--list"]).code == 0
        });
        let to = format!("got-{kept}");
        machine.longshore(&["outputs", &run, "--to", &to]).expect(0);
        let mut diff = std::process::Command::new("diff");
        let diff = diff
            .arg("-r")
            .arg(&complete)
            .arg(machine.code().join(to).join("out"));
        let diff = diff.output().unwrap();
        assert!(diff.status.success(), "{kept}: {diff:?}");
        machine.longshore(&["rm", &run, "--force"]).expect(0);
    }
    assert_eq!(
        files_in(&outputs.join("runs/default")),
        2,
        "the marks of removed runs"
    );
    machine.longshore(&["down", "--force"]).expect(0);
}

/// A small file system for the data of a cluster.
pub(crate) struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    /// `None`, with a line of the reason, if it cannot be mounted.
    #[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
    pub(crate) fn mount(machine: &Machine) -> Option<Self> {
        let path = machine.data();
        fs::create_dir(&path).unwrap();
        let mut mount = std::process::Command::new("mount");
        let mount = mount.args(["-t", "tmpfs", "-o", "size=80m,mode=700", "tmpfs"]);
        let mounted = mount.arg(&path).output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(path)),
            Ok(output) => {
                let problem = String::from_utf8_lossy(&output.stderr);
                println!("skipped: no file system can be mounted: {problem}");
                None
            }
            Err(error) => {
                println!("skipped: no file system can be mounted: {error}");
                None
            }
        }
    }

    fn free(&self) -> u64 {
        let found = rustix::fs::statvfs(&self.0).unwrap();
        found.f_bavail * found.f_frsize
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let mut umount = std::process::Command::new("umount");
        let _ = umount.arg("-l").arg(&self.0).status();
    }
}

/// Writes outputs of 20 MB, and fills the disk with another file, except for the space that the
/// cluster needs to store the end of the task.
pub(crate) const FILLS_DISK: &str = "mkdir out; echo 1 > m.json; head -c 20000000 /dev/urandom > out/b\n\
     sha256sum < out/b; free=$(df --output=avail -B1 . | tail -1)\n\
     head -c $((free - 3000000)) /dev/zero > filler; exit 0\n";

#[test]
fn outputs_are_kept_although_the_task_has_filled_the_disk() {
    let machine = Machine::new();
    let Some(disk) = SmallDisk::mount(&machine) else {
        return;
    };
    machine.write(
        "longshore.toml",
        "name = 'fills'\noutputs = ['out/**', '*.json']\n",
    );
    machine.write("fill.sh", FILLS_DISK);
    machine.longshore(&["up"]).expect(0);
    let run = machine.longshore(&["run", "--fetch=../got", "--", "sh", "fill.sh"]);
    let run = run.expect(0);
    assert!(run.err.contains("outputs 2 files"), "{}", run.err);
    let mut sum = machine.shell("sha256sum < ../got/out/b");
    let sum = crate::machine::Answer::new(&sum.output().unwrap());
    assert!(run.out.contains(sum.out.trim()), "{} {}", run.out, sum.out);
    assert!(disk.free() > 30_000_000, "the files of the pod are removed");

    // Outputs that do not fit are reported.
    let large = "mkdir out; echo 1 > m.json; head -c 60000000 /dev/zero > out/large";
    let large = ["run", "--fetch=../less", "--", "sh", "-c", large];
    let large = machine.longshore(&large).expect(0);
    assert!(
        large.err.contains("not kept: main/0 out/large"),
        "{}",
        large.err
    );
    assert!(machine.home().join("less/m.json").exists());
    machine
        .longshore(&["rm", "--finished", "--force"])
        .expect(0);
    machine.longshore(&["down", "--force"]).expect(0);
}
