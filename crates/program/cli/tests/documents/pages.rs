//! Checks that the documentation is correct: each block with a name is written as a file, and each
//! `sh` block is run, in order.

use std::{fs, path::Path, process::Stdio};

use crate::{
    blocks::blocks,
    machine::{Answer, Machine},
    s3::{BUCKET, S3},
};

/// Runs a block, at most for ten minutes: a loop may wait for what never happens.
const LIMITED: &str = "exec timeout --kill-after=10 600 sh -e -c \"$PAGE_BLOCK\"";

/// Runs a document on a machine: blocks with a name become files, and `sh` blocks must succeed.
/// Only `variables` are set in all blocks; variables that one block exports are not set in the
/// others.
fn play(document: &str, variables: &[(String, String)]) {
    let machine = Machine::new();
    let folder = machine.code();
    let program = Path::new(env!("CARGO_BIN_EXE_longshore")).parent().unwrap();
    let mut path = program.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let path_of = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../docs")
        .join(document);
    let text = fs::read_to_string(path_of).unwrap();
    let mut played = 0;
    for block in blocks(&text) {
        if !block.name.is_empty() {
            let file = folder.join(block.name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, block.text).unwrap();
        } else if block.language == "sh" {
            let mut shell = machine.shell(LIMITED);
            shell.env("PAGE_BLOCK", &block.text);
            shell.env("PATH", &path).stdin(Stdio::null());
            shell.envs(variables.iter().cloned());
            let answer = Answer::new(&shell.output().unwrap());
            assert_eq!(
                answer.code, 0,
                "{}\n{}\n{}",
                block.text, answer.out, answer.err
            );
            played += 1;
        }
    }
    assert!(played > 3, "{document} has too few blocks to run");
}

#[test]
fn the_commands_of_the_launchers_page_succeed() {
    play("launcher.md", &[]);
}

#[test]
fn the_commands_of_the_page_on_the_embedded_cluster_succeed() {
    play("embedded-cluster.md", &[]);
}

#[test]
fn the_commands_of_the_page_on_outputs_succeed() {
    let server = S3::start();
    let mut variables = server.settings();
    variables.push(("BUCKET".to_owned(), BUCKET.to_owned()));
    play("outputs.md", &variables);
}

#[test]
fn the_commands_of_the_page_on_several_clusters_succeed() {
    play("contexts.md", &[]);
}

#[test]
fn the_commands_of_the_page_on_inputs_succeed() {
    let server = S3::start();
    let mut variables = server.settings();
    variables.push(("BUCKET".to_owned(), BUCKET.to_owned()));
    let models = server.file("models");
    fs::create_dir_all(models.join("small")).unwrap();
    fs::write(models.join("small/weights.bin"), "weights").unwrap();
    fs::write(models.join("config.json"), "{}").unwrap();
    play("inputs.md", &variables);
}

#[test]
fn the_commands_of_the_page_on_sweeps_succeed() {
    play("sweeps.md", &[]);
}

#[test]
fn the_commands_of_the_page_on_restarts_succeed() {
    play("restarts.md", &[]);
}

#[test]
fn the_commands_of_the_page_on_usage_succeed() {
    play("usage.md", &[]);
}

#[test]
fn the_commands_of_the_page_side_by_side_succeed() {
    play("side-by-side.md", &[]);
}

#[test]
fn the_commands_of_the_page_on_runs_succeed() {
    play("runs.md", &[]);
}

#[test]
fn the_commands_of_the_page_on_development_succeed() {
    play("dev.md", &[]);
}

#[test]
#[expect(clippy::print_stderr, reason = "says that the test was left out")]
fn the_commands_of_the_page_on_ssh_succeed() {
    if std::process::Command::new("ssh")
        .arg("-V")
        .output()
        .is_err()
    {
        eprintln!("skipped: OpenSSH's client is not installed (Debian: openssh-client)");
        return;
    }
    play("ssh.md", &[]);
}

#[test]
fn the_commands_of_the_page_on_recordings_succeed() {
    play("recording.md", &[]);
}

#[test]
fn the_commands_of_the_page_on_stores_succeed() {
    let server = S3::start();
    let mut variables = server.settings();
    variables.push(("BUCKET".to_owned(), BUCKET.to_owned()));
    play("stores.md", &variables);
}
