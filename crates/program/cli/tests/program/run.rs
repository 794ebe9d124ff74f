//! `run`: from a folder to the command's exit code.

use crate::machine::{Answer, Machine};

#[test]
fn the_exit_code_is_the_commands() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.run_script("exit 0").expect(0);
    let failed = machine.run_script("echo going; exit 7").expect(7);
    assert!(failed.out.contains("main/0 | going"), "{}", failed.out);
    assert!(
        failed.err.contains("main/0"),
        "names the task:\n{}",
        failed.err
    );
    assert!(failed.err.contains('7'), "{}", failed.err);
}

#[test]
fn the_first_line_names_the_cluster_and_its_lifetime() {
    let machine = Machine::new();
    let first = |answer: &crate::machine::Answer| answer.err.lines().next().unwrap().to_owned();
    let answer = machine.run_script("true").expect(0);
    assert_eq!(
        first(&answer),
        "cluster embedded, local processes; starts for this run, stops when no runs are active"
    );
    let json = ["run", "--output", "json", "--", "true"];
    let started = |answer: &crate::machine::Answer| -> serde_json::Value {
        serde_json::from_str(answer.out.lines().next().unwrap()).unwrap()
    };
    let cluster = started(&machine.longshore(&json).expect(0))["cluster"].clone();
    assert_eq!(
        (
            &cluster["kind"],
            &cluster["lifetime"],
            &cluster["startedForThis"]
        ),
        (&"embedded".into(), &"on-demand".into(), &true.into())
    );
    machine.longshore(&["up"]).expect(0);
    let answer = machine.run_script("true").expect(0);
    let line = first(&answer);
    assert!(
        line.starts_with("cluster embedded, local processes; up since ")
            && line.ends_with(", stays until `longshore down`"),
        "{line}"
    );
    let cluster = started(&machine.longshore(&json).expect(0))["cluster"].clone();
    assert_eq!(
        (&cluster["lifetime"], &cluster["startedForThis"]),
        (&"lasting".into(), &false.into())
    );
}

#[test]
fn a_large_folder_is_reported_before_packing_and_packed_once() {
    let machine = Machine::new();
    machine.write("a.py", "");
    let sparse = std::fs::File::create(machine.code().join("data")).unwrap();
    sparse.set_len(40 << 20).unwrap();
    // The packing cache ignores files that changed in the last two seconds.
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    let code_lines = || {
        let answer = machine.longshore(&["run", "--dry-run", "--", "true"]);
        let code_lines = answer.expect(0).err;
        let lines = code_lines.lines().filter(|line| line.starts_with("code"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let first = code_lines();
    assert_eq!(
        first[0],
        "code    packing 2 files, 40 MiB; largest: data (40 MiB); exclude files that the \
         tasks do not need with .longshoreignore"
    );
    assert!(
        first[1].starts_with("code    2 files, 40 MiB ("),
        "{first:?}"
    );
    assert_eq!(code_lines(), first[1..]);
}

#[test]
fn a_run_without_a_cluster_starts_and_stops_one() {
    let machine = Machine::new();
    machine.run_script("true").expect(0);
    machine.longshore(&["status"]).expect(3);
    machine.run_script("exit 7").expect(7);
    machine.longshore(&["status"]).expect(3);
    machine.assert_no_process(machine.data().to_str().unwrap());
}

#[test]
fn the_folder_is_sent_with_the_run() {
    let machine = Machine::new();
    machine.write("say.sh", "cat words\n");
    machine.write("words", "from the folder\n");
    machine.write(".gitignore", "secret\n");
    machine.write("secret", "x");
    let answer = machine.longshore(&["run", "--", "sh", "say.sh"]).expect(0);
    assert!(
        answer.out.contains("main/0 | from the folder"),
        "{}",
        answer.out
    );
    assert!(answer.err.contains("3 files"), "{}", answer.err);
    machine
        .longshore(&["run", "--", "test", "!", "-e", "secret"])
        .expect(0);
}

#[test]
fn a_command_that_does_not_exist() {
    let machine = Machine::new();
    let answer = machine
        .longshore(&["run", "--", "no-such-program-anywhere"])
        .expect(4);
    let all = format!("{}{}", answer.out, answer.err);
    assert!(all.contains("no-such-program-anywhere"), "{all}");
    assert!(all.contains("not found"), "{all}");
}

#[test]
fn environment_variables_reach_the_task() {
    let machine = Machine::new();
    let arguments = [
        "run",
        "--env",
        "A=b c",
        "-e",
        "N=1",
        "--",
        "sh",
        "-c",
        "echo \"<$A$N>\"",
    ];
    let answer = machine.longshore(&arguments).expect(0);
    assert!(answer.out.contains("| <b c1>"), "{}", answer.out);
}

#[test]
fn two_roles_reach_each_other() {
    let machine = Machine::new();
    // The tasks end at once: a slower one must still resolve the others.
    machine.write(
        "longshore.toml",
        "command = [\"sh\", \"-c\", \"echo $TF_CONFIG\"]\n\
         [roles.worker]\ncount = 1\n[roles.chief]\ncount = 1\n",
    );
    let answer = machine.longshore(&["run", "--role", "worker=2"]).expect(0);
    let configs: Vec<(&str, serde_json::Value)> = answer
        .out
        .lines()
        .map(|line| line.split_once(" | ").unwrap())
        .map(|(task, text)| (task.trim(), serde_json::from_str(text).unwrap()))
        .collect();
    let mut tasks: Vec<&str> = configs.iter().map(|(task, _)| *task).collect();
    tasks.sort_unstable();
    assert_eq!(tasks, ["chief/0", "worker/0", "worker/1"]);
    for (task, config) in &configs {
        let (role, index) = task.split_once('/').unwrap();
        assert_eq!(config["task"]["type"], role);
        assert_eq!(config["task"]["index"].to_string(), index);
        assert_eq!(config["cluster"]["worker"].as_array().unwrap().len(), 2);
        assert_eq!(config["cluster"], configs[0].1["cluster"]);
    }
}

#[test]
fn a_dry_run_prints_what_would_be_sent_and_sends_nothing() {
    let machine = Machine::new();
    let answer = machine
        .longshore(&["run", "--name", "dry", "--dry-run", "--", "true"])
        .expect(0);
    assert!(
        answer.out.contains("kind: Job") && answer.out.contains("kind: Secret"),
        "{}",
        answer.out
    );
    assert!(!machine.data().join("cluster.log").exists());
}

#[test]
fn a_run_ends_at_its_timeout() {
    let machine = Machine::new();
    let answer = machine.longshore(&["run", "--timeout", "1s", "--", "sleep", "300"]);
    assert_ne!(answer.code, 0);
    assert!(
        answer.err.contains("deadline") || answer.err.contains("time"),
        "{}",
        answer.err
    );
}

#[test]
fn a_relative_host_folder_becomes_a_volume() {
    let machine = Machine::new();
    let volume = [
        "run",
        "--volume",
        "host:outs:/out",
        "--",
        "sh",
        "-c",
        "echo result > /out/file",
    ];
    machine.longshore(&volume).expect(0);
    let written = std::fs::read_to_string(machine.code().join("outs/file")).unwrap();
    assert_eq!(written, "result\n");
}

#[test]
fn runs_share_a_claim() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let run = |script: &str| {
        let volume = ["run", "--volume", "claim:data:/data", "--", "sh", "-c"];
        machine.longshore(&[volume.as_slice(), &[script]].concat())
    };
    let answer = run("true").expect(4);
    assert!(
        answer
            .err
            .contains("the PersistentVolumeClaim \"data\" is missing"),
        "{}",
        answer.err
    );
    machine.write(
        "claim.yaml",
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: default}\n\
         spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
    );
    machine.longshore(&["create", "-f", "claim.yaml"]).expect(0);
    run("echo result > /data/file").expect(0);
    let answer = run("cat /data/file").expect(0);
    assert!(answer.out.contains("result"), "{}", answer.out);
}

#[test]
fn a_launcher_image_installs_the_program() {
    let machine = Machine::new();
    let run = [
        "run",
        "--dry-run",
        "--launcher-image",
        "registry.example/longshore:1",
        "--",
        "true",
    ];
    let plan = machine.longshore(&run).expect(0).out;
    assert!(
        plan.contains("image: registry.example/longshore:1"),
        "{plan}"
    );
    assert!(plan.contains("/longshore/bin/longshore"), "{plan}");

    // The init container installs the program that the main container then starts.
    let run = [
        "run",
        "--launcher-image",
        "registry.example/longshore:1",
        "--",
        "/longshore/bin/longshore",
        "--version",
    ];
    let said = machine.longshore(&run).expect(0).out;
    let version = concat!("main/0 | longshore ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(said, version);
}

/// Only the worker of the example, as in a new user's first run.
#[test]
fn an_example_with_one_worker() {
    let machine = Machine::new();
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    let digits = examples.join("digits").display().to_string();
    let answer = machine
        .longshore(&["run", &digits, "--role", "worker=1", "--env", "EPOCHS=1"])
        .expect(0);
    assert!(
        answer.out.contains("worker/0 | test accuracy"),
        "{}",
        answer.out
    );
}

#[test]
fn a_run_of_one_task_has_the_frameworks_variables() {
    let machine = Machine::new();
    let names = [
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "MASTER_ADDR",
        "MASTER_PORT",
        "TF_CONFIG",
    ];
    let script = names.map(|name| format!("echo {name}=${name}")).join(";");
    let answer = machine.run_script(&script).expect(0);
    for line in [
        "RANK=0",
        "WORLD_SIZE=1",
        "LOCAL_RANK=0",
        "MASTER_ADDR=localhost",
        "MASTER_PORT=8470",
        r#"TF_CONFIG={"cluster":{"main":["localhost:8470"]},"task":{"index":0,"type":"main"}}"#,
    ] {
        assert!(
            answer.out.contains(&format!("main/0 | {line}\n")),
            "{line}: {}",
            answer.out
        );
    }
}

/// The variable counts for runs that are started, as for `--dry-run`.
#[test]
fn the_launcher_image_of_the_environment_is_that_of_the_run() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let ours = "registry.example/ours:1";
    let file = "launcher_image = 'registry.example/file:1'\n";
    let option = ["--launcher-image", "registry.example/option:1"];
    for (value, settings, options, expected) in [
        (ours, "", &[][..], ours),
        (ours, file, &[], ours),
        (ours, file, &option, "registry.example/option:1"),
        ("", file, &[], "registry.example/file:1"),
    ] {
        machine.write("longshore.toml", settings);
        let words = [&["run"], options, &["--", "true"]].concat();
        let mut command = machine.command(&words);
        command.env("LONGSHORE_LAUNCHER_IMAGE", value);
        Answer::new(&command.output().unwrap()).expect(0);
        let jobs = machine.longshore(&["get", "jobs", "-o", "json"]).expect(0);
        let images = jobs.out.matches("\"image\": \"registry.example/");
        assert_eq!(images.count(), 1, "{}", jobs.out);
        let image = format!("\"image\": \"{expected}\"");
        assert!(jobs.out.contains(&image), "{expected}: {}", jobs.out);
        machine.longshore(&["rm", "last"]).expect(0);
    }
}
