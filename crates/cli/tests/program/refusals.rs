//! What is refused, and how: what failed, why, what to do; and that nothing is
//! started for it.

use crate::desk::{Answer, Desk};

/// Runs a command that must fail and must not have started a cluster.
#[track_caller]
fn refused(desk: &Desk, code: i32, arguments: &[&str]) -> Answer {
    let answer = desk.longshore(arguments).expect(code);
    assert!(
        !desk.data().join("cluster.log").exists(),
        "no cluster is started for this"
    );
    answer
}

#[test]
fn a_folder_that_is_not_there() {
    let desk = Desk::new();
    let answer = refused(&desk, 2, &["run", "nowhere", "--", "true"]);
    insta::assert_snapshot!(answer.err, @r"
    error: nowhere does not exist
    hint: the first argument is the folder of code; the command comes after `--`, as in `longshore run -- python train.py`
    ");
}

#[test]
fn a_file_for_a_folder() {
    let desk = Desk::new();
    desk.write("train.py", "");
    let answer = refused(&desk, 2, &["run", "train.py"]);
    assert!(
        answer
            .err
            .starts_with("error: train.py is a file, not a folder\n"),
        "{}",
        answer.err
    );
}

#[test]
fn an_unknown_role_is_told_the_known_ones() {
    let desk = Desk::new();
    desk.write(
        "longshore.toml",
        "command = [\"true\"]\n[roles.worker]\ncount = 2\n",
    );
    let answer = refused(&desk, 2, &["run", "--role", "wroker=4"]);
    assert!(
        answer.err.contains("unknown role \"wroker\""),
        "{}",
        answer.err
    );
    assert!(answer.err.contains("worker"), "{}", answer.err);
}

#[test]
fn no_command() {
    let desk = Desk::new();
    let answer = refused(&desk, 2, &["run"]);
    insta::assert_snapshot!(answer.err, @"error: no command: give one after `--`, as in `longshore run -- python train.py`, or set `command` in longshore.toml");
}

#[test]
fn a_command_without_the_dashes_before_it() {
    let desk = Desk::new();
    let answer = refused(&desk, 2, &["run", "python", "train.py", "--lr", "0.1"]);
    insta::assert_snapshot!(answer.err, @r"
    error: the command `python train.py --lr 0.1` must come after `--`
    hint: write `longshore run -- python train.py --lr 0.1`, with options of longshore before the `--`
    ");
    let answer = refused(&desk, 2, &["run", "--imgae", "x"]);
    assert!(answer.err.contains("'--image'"), "{}", answer.err);
}

#[test]
fn a_size_that_is_not_a_quantity() {
    let desk = Desk::new();
    let answer = refused(&desk, 2, &["run", "--memory", "16GB", "--", "true"]);
    insta::assert_snapshot!(answer.err, @r#"error: invalid --memory "16GB": write 16G (powers of 1000) or 16Gi (powers of 1024)"#);
    desk.write(
        "longshore.toml",
        "command = 'true'\n[resources]\nmemory = \"4GB\"\n",
    );
    let answer = refused(&desk, 2, &["run"]);
    insta::assert_snapshot!(answer.err, @r#"error: ./longshore.toml:3:10: invalid resource memory "4GB": write 4G (powers of 1000) or 4Gi (powers of 1024)"#);
    desk.write("longshore.toml", "command = 'true'\nmemory = \"4GB\"\n");
    let answer = refused(&desk, 2, &["run"]);
    assert!(
        answer
            .err
            .contains("longshore.toml:2:1: unknown key `memory`, did you mean `resources.memory`?"),
        "{}",
        answer.err
    );
}

#[test]
fn a_relative_folder_of_another_clusters_node() {
    let desk = Desk::new();
    desk.write(
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
    let answer = refused(&desk, 2, &line);
    insta::assert_snapshot!(answer.err, @r#"error: invalid volumes host "outs": give the absolute path of a folder on the nodes, without `..`; a relative one is possible on the embedded cluster only"#);
}

#[test]
fn all_refused_files_at_once() {
    let desk = Desk::new();
    desk.write(".env", "A=1");
    desk.write(".netrc", "x");
    for name in ["one", "two"] {
        std::os::unix::fs::symlink("/etc/hosts", desk.code().join(name)).unwrap();
    }
    let answer = refused(&desk, 2, &["run", "--", "true"]);
    for part in [
        "3 problems keep the folder from being sent",
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
    let desk = Desk::new();
    desk.write("longshore.toml", "comand = [\"true\"]\n");
    let answer = refused(&desk, 2, &["run"]);
    assert!(
        answer.err.contains("did you mean `command`?"),
        "{}",
        answer.err
    );
}

#[test]
fn a_selector_that_cannot_be_read() {
    let desk = Desk::new();
    let answer = refused(&desk, 2, &["get", "pods", "-l", "app in web"]);
    assert!(answer.err.contains("invalid selector"), "{}", answer.err);
}

#[test]
fn a_data_folder_that_is_a_file() {
    let desk = Desk::new();
    desk.write("file", "");
    let answer = refused(&desk, 2, &["up", "--data-dir", "file"]);
    assert!(answer.err.contains("is not a folder"), "{}", answer.err);
}

#[test]
fn a_cluster_that_does_not_answer() {
    let desk = Desk::new();
    // A port that was just free: nobody listens there.
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
    desk.write("config", &config);
    for verb in [&["get", "pods"][..], &["runs"], &["run", "--no-code"]] {
        let mut arguments = verb.to_vec();
        arguments.extend(["--kubeconfig", "config"]);
        if verb[0] == "run" {
            arguments.extend(["--", "true"]);
        }
        let answer = refused(&desk, 3, &arguments);
        assert!(
            answer.err.contains("cannot reach the cluster at"),
            "{}",
            answer.err
        );
        assert!(answer.err.contains(&port.to_string()), "{}", answer.err);
    }
}

#[test]
fn a_context_that_is_not_there() {
    let desk = Desk::new();
    desk.write(
        "config",
        "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers: []\n",
    );
    let answer = refused(
        &desk,
        3,
        &["runs", "--kubeconfig", "config", "--context", "nope"],
    );
    assert!(answer.err.contains("nope"), "{}", answer.err);
    assert!(answer.err.contains("hint: "), "{}", answer.err);
}

#[test]
fn a_cluster_that_cannot_start_shows_its_log() {
    let desk = Desk::new();
    std::fs::create_dir(desk.data()).unwrap();
    std::fs::write(desk.data().join("objects.redb"), "this is no database").unwrap();
    let answer = desk.longshore(&["get", "nodes"]).expect(3);
    assert!(
        answer
            .err
            .contains("error: the embedded cluster did not start: the store"),
        "{}",
        answer.err
    );
    assert!(answer.err.contains("cluster.log"), "{}", answer.err);
    desk.longshore(&["status"]).expect(3);
}
