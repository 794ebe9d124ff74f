//! Rejected commands: the error says what failed, why, and what to do, and no cluster is
//! started.

use crate::machine::{Answer, Machine};

/// Runs a command that must fail and must not have started a cluster.
#[track_caller]
fn expect_failure(machine: &Machine, code: i32, arguments: &[&str]) -> Answer {
    let answer = machine.longshore(arguments).expect(code);
    assert!(
        !machine.data().join("cluster.log").exists(),
        "no cluster was started"
    );
    answer
}

#[test]
fn a_missing_folder() {
    let machine = Machine::new();
    let answer = expect_failure(&machine, 2, &["run", "nowhere", "--", "true"]);
    insta::assert_snapshot!(answer.err, @r"
    error: nowhere does not exist
    hint: the first argument is the folder of code; the command comes after `--`, as in `longshore run -- python train.py`
    ");
}

#[test]
fn a_file_instead_of_a_folder() {
    let machine = Machine::new();
    machine.write("train.py", "");
    let answer = expect_failure(&machine, 2, &["run", "train.py"]);
    assert!(
        answer
            .err
            .starts_with("error: train.py is a file, not a folder\n"),
        "{}",
        answer.err
    );
}

#[test]
fn the_error_for_an_unknown_role_lists_the_known_ones() {
    let machine = Machine::new();
    machine.write(
        "longshore.toml",
        "command = [\"true\"]\n[roles.worker]\ncount = 2\n",
    );
    let answer = expect_failure(&machine, 2, &["run", "--role", "wroker=4"]);
    assert!(
        answer.err.contains("unknown role \"wroker\""),
        "{}",
        answer.err
    );
    assert!(answer.err.contains("worker"), "{}", answer.err);
}

#[test]
fn a_missing_command() {
    let machine = Machine::new();
    let answer = expect_failure(&machine, 2, &["run"]);
    insta::assert_snapshot!(answer.err, @"error: no command: give one after `--`, as in `longshore run -- python train.py`, or set `command` in longshore.toml");
}

#[test]
fn a_command_without_preceding_dashes() {
    let machine = Machine::new();
    let answer = expect_failure(&machine, 2, &["run", "python", "train.py", "--lr", "0.1"]);
    insta::assert_snapshot!(answer.err, @r"
    error: the command `python train.py --lr 0.1` must come after `--`
    hint: write `longshore run -- python train.py --lr 0.1`, with options of longshore before the `--`
    ");
    let answer = expect_failure(&machine, 2, &["run", "--imgae", "x"]);
    assert!(answer.err.contains("'--image'"), "{}", answer.err);
}

#[test]
fn a_size_that_is_not_a_quantity() {
    let machine = Machine::new();
    let answer = expect_failure(&machine, 2, &["run", "--memory", "16GB", "--", "true"]);
    insta::assert_snapshot!(answer.err, @r#"error: invalid --memory "16GB": write 16G (powers of 1000) or 16Gi (powers of 1024)"#);
    machine.write(
        "longshore.toml",
        "command = 'true'\n[resources]\nmemory = \"4GB\"\n",
    );
    let answer = expect_failure(&machine, 2, &["run"]);
    insta::assert_snapshot!(answer.err, @r#"error: ./longshore.toml:3:10: invalid resource memory "4GB": write 4G (powers of 1000) or 4Gi (powers of 1024)"#);
    machine.write("longshore.toml", "command = 'true'\nmemory = \"4GB\"\n");
    let answer = expect_failure(&machine, 2, &["run"]);
    assert!(
        answer
            .err
            .contains("longshore.toml:2:1: unknown key `memory`, did you mean `resources.memory`?"),
        "{}",
        answer.err
    );
}

#[test]
fn a_relative_host_folder_of_another_cluster() {
    let machine = Machine::new();
    machine.write(
        "config",
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
        clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n\
        contexts: [{name: c, context: {cluster: c, user: c}}]\nusers: [{name: c, user: {}}]\n",
    );
    let line = [
        "run",
        "--kubeconfig",
        "config",
        "--volume",
        "host:outs:/out",
        "--",
        "true",
    ];
    let answer = expect_failure(&machine, 2, &line);
    insta::assert_snapshot!(answer.err, @r#"error: invalid volumes host "outs": give the absolute path of a folder on the nodes, without `..`; a relative path works only on the embedded cluster"#);
}

#[test]
fn all_rejected_files_are_reported_at_once() {
    let machine = Machine::new();
    machine.write(".env", "A=1");
    machine.write(".netrc", "x");
    for name in ["one", "two"] {
        std::os::unix::fs::symlink("/etc/hosts", machine.code().join(name)).unwrap();
    }
    let answer = expect_failure(&machine, 2, &["run", "--", "true"]);
    for part in [
        "3 problems prevent packing the folder",
        ".env (",
        ".netrc (",
        "the link one ",
        "the link two ",
    ] {
        assert!(answer.err.contains(part), "{part}: {}", answer.err);
    }
}

#[test]
fn an_unknown_key_in_the_configuration() {
    let machine = Machine::new();
    machine.write("longshore.toml", "comand = [\"true\"]\n");
    let answer = expect_failure(&machine, 2, &["run"]);
    assert!(
        answer.err.contains("did you mean `command`?"),
        "{}",
        answer.err
    );
}

#[test]
fn an_invalid_selector() {
    let machine = Machine::new();
    let answer = expect_failure(&machine, 2, &["get", "pods", "-l", "app in web"]);
    assert!(answer.err.contains("invalid selector"), "{}", answer.err);
}

#[test]
fn a_data_folder_that_is_a_file() {
    let machine = Machine::new();
    machine.write("file", "");
    let answer = expect_failure(&machine, 2, &["up", "--data-dir", "file"]);
    assert!(answer.err.contains("is not a folder"), "{}", answer.err);
}

#[test]
fn an_unreachable_cluster() {
    let machine = Machine::new();
    // A port that was just free: no process listens on it.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: gone\n\
         clusters: [{{name: gone, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n\
         contexts: [{{name: gone, context: {{cluster: gone, user: gone}}}}]\n\
         users: [{{name: gone, user: {{}}}}]\n"
    );
    machine.write("config", &config);
    for verb in [&["get", "pods"][..], &["runs"], &["run", "--no-code"]] {
        let mut arguments = verb.to_vec();
        arguments.extend(["--kubeconfig", "config"]);
        if verb[0] == "run" {
            arguments.extend(["--", "true"]);
        }
        let answer = expect_failure(&machine, 3, &arguments);
        assert!(
            answer.err.contains("cannot reach the cluster at"),
            "{}",
            answer.err
        );
        assert!(answer.err.contains(&port.to_string()), "{}", answer.err);
    }
}

#[test]
fn an_unknown_context() {
    let machine = Machine::new();
    machine.write(
        "config",
        "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers: []\n",
    );
    let answer = expect_failure(
        &machine,
        3,
        &["runs", "--kubeconfig", "config", "--context", "nope"],
    );
    assert!(answer.err.contains("nope"), "{}", answer.err);
    assert!(answer.err.contains("hint: "), "{}", answer.err);
}

#[test]
fn a_cluster_that_cannot_start_shows_its_log() {
    let machine = Machine::new();
    std::fs::create_dir(machine.data()).unwrap();
    std::fs::write(machine.data().join("objects.redb"), "this is no database").unwrap();
    let answer = machine.longshore(&["get", "nodes"]).expect(3);
    assert!(
        answer
            .err
            .contains("error: the embedded cluster did not start: the store"),
        "{}",
        answer.err
    );
    assert!(answer.err.contains("cluster.log"), "{}", answer.err);
    machine.longshore(&["status"]).expect(3);
}
