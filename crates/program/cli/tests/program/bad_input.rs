//! Invalid input and full disks: the error names the cause and the remedy, the exit code is
//! documented, and the command leaves no files, objects or parts of uploads.

use std::{collections::BTreeSet, fs, io::Read as _, path::Path};

use crate::{
    machine::{Answer, Machine},
    s3::{BUCKET, Fault, S3},
};

/// A size in bytes that is too large for a Secret.
const LARGE: usize = 2 << 20;

/// Writes an incompressible file to the code folder.
fn write_noise(machine: &Machine, bytes: usize) {
    let mut data = vec![0; bytes];
    let mut random = fs::File::open("/dev/urandom").unwrap();
    random.read_exact(&mut data).unwrap();
    fs::write(machine.code().join("data"), data).unwrap();
}

/// A command with its own folder for temporary files.
fn command(machine: &Machine, arguments: &[&str]) -> std::process::Command {
    let temporary = machine.home().join("temporary");
    fs::create_dir_all(&temporary).unwrap();
    let mut command = machine.command(arguments);
    command.env("TMPDIR", temporary);
    command
}

/// All files of the machine, except the files of a cluster and the packing cache.
fn files(machine: &Machine) -> BTreeSet<String> {
    fn walk(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => walk(&entry.path(), found),
                false => drop(found.insert(entry.path().display().to_string())),
            }
        }
    }
    let mut found = BTreeSet::new();
    walk(machine.home(), &mut found);
    let of_others = ["/data/", "/.cache/longshore/bundles/"];
    found.retain(|path| !of_others.iter().any(|part| path.contains(part)));
    found
}

/// The objects of a run in the cluster.
fn objects(machine: &Machine) -> Vec<String> {
    let kinds = ["jobs", "pods", "secrets", "services", "configmaps"];
    let names = kinds.map(|kind| {
        let answer = machine.longshore(&["get", kind, "--output", "name"]);
        answer.expect(0).out
    });
    let names = names.iter().flat_map(|names| names.lines());
    names
        .filter(|name| !name.contains("kube"))
        .map(str::to_owned)
        .collect()
}

/// Runs a command that must fail without leaving a file.
#[track_caller]
fn expect_failure(machine: &Machine, code: i32, arguments: &[&str]) -> String {
    let mut command = command(machine, arguments);
    let before = files(machine);
    let answer = Answer::new(&command.output().unwrap()).expect(code);
    assert_eq!(files(machine), before);
    answer.err
}

#[test]
fn invalid_values_in_longshore_toml_are_reported_with_line_column_and_rule() {
    let machine = Machine::new();
    let cases = [
        (
            "[roles.Worker]",
            "2:8: invalid role \"Worker\": use at most 63 lower-case",
        ),
        (
            "[roles.a-role-with-a-long-name]",
            "2:8: invalid role \"a-role-with-a-long-name\": use at most 16 letters",
        ),
        (
            "[roles.worker]\ncount = 20000",
            "3:9: invalid count of role worker \"20000\": use at most 10000 tasks",
        ),
        (
            "namespace = 'Team A'",
            "2:13: invalid namespace \"Team A\": use at most 63",
        ),
        (
            "[labels]\nteam = 'a b'",
            "3:8: invalid label team \"a b\": use at most 63",
        ),
        (
            "[labels]\n'a b' = 'c'",
            "3:1: invalid label key \"a b\": use an optional DNS",
        ),
        (
            "[annotations]\n'a b' = 'c'",
            "3:1: invalid annotation key \"a b\": use an",
        ),
        (
            "[resources]\ncpu = '2 cores'",
            "3:7: invalid resource cpu \"2 cores\": use a quantity such as 2 or 500m",
        ),
        (
            "[roles.a]\nresources = { memory = '1Zi' }",
            "3:24: invalid resource memory \"1Zi\": use a quantity such as",
        ),
        (
            "[resources]\ncpu = -1",
            "3:7: invalid resource cpu \"-1\": use a quantity such as",
        ),
        (
            "service_account = 'A B'",
            "2:19: invalid service_account \"A B\": use at most 253",
        ),
        (
            "restricted = true\n[roles.worker]\nhost_network = true",
            "4:16: invalid host_network \"true\": the Pod Security Standard `restricted` forbids",
        ),
        (
            "image_pull_secrets = ['ok', 'A B']",
            "2:29: invalid image_pull_secrets \"A B\": use at most 253",
        ),
        (
            "image = ''",
            "2:9: invalid image \"\": use the name of an image",
        ),
        (
            "[resources]\ncpus = 1",
            "3:1: invalid resource \"cpus\": use cpu, memory, gpu,",
        ),
        (
            "[env]\n'1A' = 'x'",
            "3:1: invalid variable name \"1A\": use letters, digits,",
        ),
        (
            "queue = 'A B'",
            "2:9: invalid queue \"A B\": use at most 63",
        ),
        (
            "ttl = 'soon'",
            "2:7: invalid ttl \"soon\": use a time such as 90s,",
        ),
        (
            "store = 'ftp://x'",
            "2:9: invalid store \"ftp://x\": it has an unknown scheme",
        ),
    ];
    for (text, expected) in cases {
        machine.write("longshore.toml", &format!("command = 'true'\n{text}\n"));
        let expected = format!("longshore.toml:{expected}");
        let err = expect_failure(&machine, 2, &["run"]);
        assert!(err.contains(&expected), "{text}: {err}");
    }
    // For syntax errors and wrong types, the message quotes the line.
    for (text, line, column) in [
        ("name = 'x", 2, 10),
        ("port = 99999", 2, 8),
        ("retries = -1", 2, 11),
        ("[roles.worker]\ncount = 'two'", 3, 9),
    ] {
        machine.write("longshore.toml", &format!("command = 'true'\n{text}\n"));
        let err = expect_failure(&machine, 2, &["run"]);
        let place = format!(
            "longshore.toml is not valid: TOML parse error at line {line}, column {column}"
        );
        assert!(err.contains(&place), "{text}: {err}");
    }
    assert!(!machine.data().exists(), "no cluster was started");
}

#[test]
fn invalid_values_of_flags_are_reported_with_their_rule() {
    let machine = Machine::new();
    let cases = [
        ("--label=x", "--label \"x\": write KEY=VALUE\n"),
        (
            "--node-selector=x",
            "--node-selector \"x\": write KEY=VALUE\n",
        ),
        (
            "--volume=data:/data",
            "--volume \"data:/data\": write KIND:NAME:PATH or ",
        ),
        (
            "--volume=claim:a:../data",
            "volumes path \"../data\": give an absolute path",
        ),
        (
            "--toleration=a:Never",
            "toleration effect \"Never\": use one of NoSchedule, ",
        ),
        ("--port=0", "port \"0\": each of the 1 tasks needs a port"),
        (
            "--memory=4GB",
            "--memory \"4GB\": write 4G (powers of 1000) or 4Gi ",
        ),
        (
            "--env=LONGSHORE_NOT_SET",
            "--env \"LONGSHORE_NOT_SET\": no variable ",
        ),
    ];
    for (flag, expected) in cases {
        let err = expect_failure(&machine, 2, &["run", flag, "--", "true"]);
        let expected = format!("error: invalid {expected}");
        assert!(err.starts_with(&expected), "{flag}: {err}");
    }
    let err = expect_failure(&machine, 2, &["run", "--port=65536", "--", "true"]);
    assert!(err.contains("65536 is not in 0..=65535"), "{err}");
    assert!(!machine.data().exists(), "no cluster was started");
}

#[test]
fn roles_without_a_command_or_a_task_and_unknown_keys() {
    let machine = Machine::new();
    let no_command = "no command for role \"worker\": give one after `--`, or set `command`";
    let no_task = "count of role worker \"0\": at least one role must have a task";
    let cases: [(&str, &[&str], &str); 8] = [
        ("[roles.worker]", &[], no_command),
        ("[roles.worker]\ncommand = []", &[], no_command),
        ("[roles.worker]\ncommand = ' '", &[], no_command),
        (
            "[roles.ps]\ncommand = 'true'\n[roles.worker]",
            &[],
            no_command,
        ),
        ("command = 'true'\n[roles.worker]\ncount = 0", &[], no_task),
        (
            "command = 'true'\n[roles.worker]",
            &["--role", "worker=0"],
            no_task,
        ),
        (
            "[roles.worker]\nreplicas = 2",
            &[],
            "longshore.toml:2:1: unknown key `roles.worker.replicas`; valid keys in [roles.worker]: affinity, command, count",
        ),
        ("[roles.worker]\ncuont = 2", &[], "did you mean `count`?"),
    ];
    for (text, more, expected) in cases {
        machine.write("longshore.toml", text);
        let arguments = [&["run"], more].concat();
        let err = expect_failure(&machine, 2, &arguments);
        assert!(err.contains(expected), "{text}: {err}");
    }
    assert!(!machine.data().exists(), "no cluster was started");
}

#[test]
fn a_folder_that_exceeds_the_limit_of_a_cluster_without_a_store_is_rejected() {
    let machine = Machine::new();
    machine.longshore(&["up", "--kubeconfig", "ours"]).expect(0);
    write_noise(&machine, LARGE);
    let line = [
        "run",
        "--kubeconfig",
        "ours",
        "--allow-secret",
        "ours",
        "--",
        "true",
    ];
    let err = expect_failure(&machine, 4, &line);
    for part in [
        "but a Secret holds at most 983040",
        "set `store` (file:///…, s3://…, gs://… or az://…)",
        ".longshoreignore",
        "largest files: data (2097152 bytes)",
    ] {
        assert!(err.contains(part), "{err}");
    }
    assert_eq!(objects(&machine), [""; 0]);
}

#[test]
fn a_store_that_rejects_a_part_leaves_nothing_behind() {
    let server = S3::start();
    let machine = Machine::new();
    write_noise(&machine, (16 << 20) + 1000);
    machine.longshore(&["up"]).expect(0);
    server.fail("partNumber=2", &[Fault::Answer(403)]);
    let store = format!("s3://{BUCKET}/team");
    let mut command = command(&machine, &["run", "--store", &store, "--", "true"]);
    let before = files(&machine);
    let answer = command.envs(server.settings()).output().unwrap();
    let err = Answer::new(&answer).expect(4).err;
    let expected = format!("the store {store} denies access: ");
    assert!(err.contains(&expected), "{err}");
    assert!(err.contains("check AWS_ACCESS_KEY_ID"), "{err}");
    assert_eq!(server.leftovers(), [""; 0]);
    assert!(!server.file("team/bundles").exists());
    assert_eq!(files(&machine), before);
    assert_eq!(objects(&machine), [""; 0]);
}

#[test]
fn a_modified_bundle_in_a_folder_store_is_not_run() {
    let machine = Machine::new();
    machine.write("train.py", "");
    let store = format!("file://{}/shared", machine.home().display());
    let run = ["run", "--store", &store, "--", "echo", "it", "runs"];
    machine.longshore(&run).expect(0);
    let mut bundles = fs::read_dir(machine.home().join("shared/bundles")).unwrap();
    let bundle = bundles.next().unwrap().unwrap().path();
    let size = fs::metadata(&bundle).unwrap().len();
    fs::write(&bundle, vec![0; usize::try_from(size).unwrap()]).unwrap();
    let answer = machine.longshore(&run).expect(4);
    assert!(!answer.out.contains("it runs"), "{}", answer.out);
    let expected = format!("{}{}", answer.out, answer.err);
    assert!(expected.contains("is damaged: its sha256 is"), "{expected}");
    assert!(
        expected.contains("delete it from the store and submit the run again"),
        "{expected}"
    );
    fs::remove_file(&bundle).unwrap();
    machine.longshore(&run).expect(0);
    // A bundle of the wrong size is detected before the upload, and replaced.
    fs::write(&bundle, "cut").unwrap();
    machine.longshore(&run).expect(0);
    assert_eq!(fs::metadata(&bundle).unwrap().len(), size);
}

#[test]
fn an_object_that_the_cluster_rejects_leaves_nothing_behind() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write("pod.yaml", "spec: {restartPolicy: Sometimes}\n");
    let err = expect_failure(
        &machine,
        4,
        &["run", "--template", "pod.yaml", "--", "true"],
    );
    assert!(
        err.contains("restartPolicy") && err.contains("Sometimes"),
        "{err}"
    );
    assert_eq!(objects(&machine), [""; 0]);
}

/// Runs a script with a small disk mounted at `$DISK` and the program as `$PROGRAM`.
/// Returns `None` where a test is not allowed to mount one.
#[expect(clippy::print_stderr, reason = "shows in the test's output")]
fn with_a_disk(machine: &Machine, size: &str, script: &str) -> Option<Answer> {
    let disk = machine.home().join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = "mount -t tmpfs -o size=$SIZE none \"$DISK\"";
    // Root of a user namespace may mount.
    let unshare = "unshare --user --map-root-user --mount";
    let run = |inside: &str| {
        let mut shell = machine.shell(&format!("exec {unshare} sh -c '{mount} && {inside}'"));
        shell.env("SIZE", size).env("DISK", &disk);
        shell.env("PROGRAM", env!("CARGO_BIN_EXE_longshore"));
        shell.env("SCRIPT", script);
        Answer::new(&shell.output().unwrap())
    };
    let may = run("true");
    if may.code != 0 {
        eprintln!("skipped: cannot mount a disk: {}", may.err);
        return None;
    }
    Some(run("exec sh -c \"$SCRIPT\""))
}

#[test]
fn a_full_disk_while_packing() {
    let machine = Machine::new();
    write_noise(&machine, 8 << 20);
    let script = "TMPDIR=$DISK $PROGRAM run -- true || code=$?; ls -A $DISK; exit $code";
    let Some(answer) = with_a_disk(&machine, "1m", script) else {
        return;
    };
    let answer = answer.expect(4);
    for part in [
        "cannot write the bundle: No space left on device",
        "/disk/",
        "check the free space of the temporary folder",
    ] {
        assert!(answer.err.contains(part), "{}", answer.err);
    }
    assert_eq!(answer.out, "", "the disk is empty again");
    assert!(!machine.data().exists(), "no cluster was started");
}

#[test]
fn a_full_disk_in_a_folder_store() {
    let machine = Machine::new();
    write_noise(&machine, 8 << 20);
    let script =
        "$PROGRAM run --store file://$DISK -- true || code=$?; find $DISK -type f; exit $code";
    let Some(answer) = with_a_disk(&machine, "1m", script) else {
        return;
    };
    let answer = answer.expect(4);
    for part in [
        "/disk/bundles/",
        "in the store: No space left on device",
        "check the free space and the permission to write there",
    ] {
        assert!(answer.err.contains(part), "{}", answer.err);
    }
    assert_eq!(answer.out, "", "the disk is empty again");
    assert_eq!(objects(&machine), [""; 0]);
}

#[test]
fn an_unwritable_cache_is_ignored() {
    let machine = Machine::new();
    write_noise(&machine, 8 << 20);
    let server = S3::start();
    let script = "head -c 64k /dev/zero > $DISK/full
        export XDG_CACHE_HOME=$DISK
        $PROGRAM run --store $STORE -- true";
    let settings = server.settings().into_iter();
    let settings = settings.map(|(key, value)| format!("export {key}='{value}'\n"));
    let script =
        settings.collect::<String>() + &script.replace("$STORE", &format!("s3://{BUCKET}/team"));
    let Some(answer) = with_a_disk(&machine, "64k", &script) else {
        return;
    };
    answer.expect(0);
    assert_eq!(server.leftovers(), [""; 0]);
}

/// The end of a run is stored when there is space again, without a restart of the cluster.
#[test]
fn a_run_ends_while_the_disk_is_full() {
    let machine = Machine::new();
    let script = r#"
        export LONGSHORE_DATA_DIR=$DISK/data
        trap '$PROGRAM down --force > /dev/null' EXIT
        $PROGRAM up > /dev/null
        $PROGRAM run --detach --name job -- sh -c \
            "touch $HOME/begun; until test -e $HOME/go; do sleep 0.1; done; echo it has ended"
        until test -e $HOME/begun; do sleep 0.1; done
        cat /dev/zero > $DISK/filler 2> /dev/null || true
        # Until nothing more fits into the store, first large objects, then small ones.
        for digits in 0100000 01000; do
            i=0
            while printf "kind: ConfigMap\napiVersion: v1\nmetadata: {name: c$i-$digits}\ndata: {a: %${digits}d}\n" 0 |
                $PROGRAM create -f - > /dev/null 2> $HOME/refused; do i=$((i + 1)); test $i -lt 300; done
        done
        touch $HOME/go
        sleep 3
        $PROGRAM runs
        rm $DISK/filler
        i=0
        until $PROGRAM runs --output json > $HOME/free && grep -q '"state": "succeeded"' $HOME/free; do
            i=$((i + 1)); test $i -lt 300; sleep 0.2
        done
        # The Job's condition follows the pod's phase, from which the run's state is known.
        until $PROGRAM get jobs --output yaml > $HOME/objects && grep -q 'type: Complete' $HOME/objects; do
            i=$((i + 1)); test $i -lt 300; sleep 0.2
        done
        $PROGRAM get pods --output yaml >> $HOME/objects
        # The line about lost output may follow later.
        until $PROGRAM logs job > $HOME/logs && test -s $HOME/logs; do
            i=$((i + 1)); test $i -lt 300; sleep 0.2
        done
        cp $LONGSHORE_DATA_DIR/cluster.log $HOME
    "#;
    let Some(answer) = with_a_disk(&machine, "24m", &format!("set -e\n{script}")) else {
        return;
    };
    let read = |name| fs::read_to_string(machine.home().join(name)).unwrap_or_default();
    let answer = Answer {
        err: format!("{}\n{}\n{}", answer.err, read("refused"), read("free")),
        ..answer
    };
    answer.expect(0);
    let refused = read("refused");
    for part in [
        "cannot store changes",
        "No space left on device",
        "free space",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    let objects = read("objects");
    for part in ["type: Complete", "phase: Succeeded"] {
        assert!(objects.contains(part), "{objects}");
    }
    let logs = read("logs");
    let is_shown = logs.contains("it has ended") || logs.contains("bytes of output since");
    assert!(is_shown, "{logs}");
    let log = read("cluster.log");
    assert!(log.contains("changes are stored again"), "{log}");
}

#[test]
fn a_full_disk_while_a_pod_unpacks() {
    let machine = Machine::new();
    // A file that compresses well, so that it fills the disk only when it is unpacked.
    fs::write(machine.code().join("data"), vec![0; 4 << 20]).unwrap();
    let template =
        "spec:\n  volumes:\n  - name: longshore\n    emptyDir: null\n    hostPath: {path: DISK}\n";
    let disk = machine.home().join("disk").display().to_string();
    machine.write("pod.yaml", &template.replace("DISK", &disk));
    let script = "$PROGRAM run --template pod.yaml -- echo it runs";
    let Some(answer) = with_a_disk(&machine, "1m", script) else {
        return;
    };
    let answer = answer.expect(4);
    assert!(!answer.out.contains("it runs"), "{}", answer.out);
    for part in ["the code could not be fetched", "No space left on device"] {
        assert!(answer.err.contains(part), "{}", answer.err);
    }
    machine.longshore(&["status"]).expect(3);
}
