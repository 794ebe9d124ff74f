//! Helpers of the security tests: other users, and the output of scripts.

use std::{collections::BTreeMap, fs, os::unix::process::CommandExt, process::Command};

use super::*;

/// An unprivileged user ID, for a node agent without root and for a container.
pub(super) const UNPRIVILEGED: u32 = 65_534;

pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs an ignored test of this program in its own process, as `user`.
fn run_as(user: u32, test: &str, variables: &[(&str, &str)]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--ignored"])
        .arg("--nocapture")
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", "/")
        .envs(variables.iter().copied())
        .current_dir("/");
    if is_root() {
        command.uid(user).gid(user);
    }
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(
        output.status.success() && text[0].contains("1 passed"),
        "as {user}: {} {}",
        text[0],
        text[1]
    );
}

/// Runs a test without root.
pub(super) fn run_as_unprivileged(test: &str) {
    run_as(UNPRIVILEGED, test, &[]);
}

/// Runs a test as the current user, and as an unprivileged user if the current one is root.
pub(super) fn run_as_both(test: &str, variables: &[(&str, &str)]) {
    run_as(0, test, variables);
    if is_root() {
        run_as(UNPRIVILEGED, test, variables);
    }
}

/// Returns true if this agent's pods have namespaces. If the kernel forbids them, these tests
/// cannot check anything.
pub(super) async fn has_namespaces(stage: &Stage) -> bool {
    let own = fs::read_link("/proc/self/ns/pid").unwrap();
    stage
        .run("probe", run_once("readlink /proc/self/ns/pid"))
        .await;
    let pod = stage.ended("probe").await;
    stage.log(&pod).await.trim() != own.to_str().unwrap()
}

/// The output of a script, by the first word of each line.
pub(super) async fn facts_of(stage: &Stage, name: &str, spec: Value) -> BTreeMap<String, String> {
    stage.run(name, spec).await;
    let pod = stage.ended(name).await;
    let log = stage.log(&pod).await;
    assert_eq!(pod["status"]["phase"], "Succeeded", "{log} {pod:#}");
    split(&log)
}

pub(super) fn split(text: &str) -> BTreeMap<String, String> {
    let line = |line: &str| {
        let (word, rest) = line.split_once(char::is_whitespace)?;
        Some((word.to_owned(), rest.trim().to_owned()))
    };
    text.lines().filter_map(line).collect()
}

pub(super) fn check(facts: &BTreeMap<String, String>, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        let found = facts.get(*name).map(String::as_str);
        assert_eq!(found, Some(*value), "{name} of {facts:#?}");
    }
}
