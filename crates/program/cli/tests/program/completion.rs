//! Shell completion, run by the shells.

use std::{ffi::OsString, path::Path, process::Command};

use crate::machine::{Answer, Machine, eventually};

/// `PATH` with the program's folder first.
fn path() -> OsString {
    let program = Path::new(env!("CARGO_BIN_EXE_longshore")).parent().unwrap();
    let mut path = program.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    path
}

/// A shell script on the machine, with the program in its PATH.
fn shell(machine: &Machine, shell: &str, script: &str) -> Answer {
    let mut command: Command = machine.shell("");
    let mut own = Command::new(shell);
    own.current_dir(machine.code())
        .env_clear()
        .args(["-c", script]);
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            own.env(name, value);
        }
    }
    own.env("PATH", path());
    command.env_clear();
    Answer::new(&own.output().unwrap())
}

/// The completions that bash offers for the last word.
fn completed(machine: &Machine, words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "source <(longshore completions bash)\n\
         COMP_WORDS=({}); COMP_CWORD={}; COMP_TYPE=9\n\
         _clap_complete_longshore longshore \"${{COMP_WORDS[COMP_CWORD]}}\" ''\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        words.len() - 1
    );
    let answer = shell(machine, "bash", &script).expect(0);
    let mut offered: Vec<String> = answer.out.lines().map(str::to_owned).collect();
    offered.retain(|word| !word.is_empty());
    offered.sort();
    offered
}

#[test]
fn bash_completes_commands_runs_tasks_kinds_and_objects() {
    let machine = Machine::new();
    assert_eq!(
        completed(&machine, &["longshore", "port"]),
        ["port-forward"]
    );
    // Completion does not start a cluster.
    assert!(completed(&machine, &["longshore", "logs", "d"]).is_empty());
    assert!(!machine.data().exists());

    machine.longshore(&["up"]).expect(0);
    let start = [
        "run", "-d", "--name", "digits", "--role", "worker=2", "--", "sleep", "300",
    ];
    machine.write("longshore.toml", "[roles.worker]\ncount = 1\n");
    let run = machine.longshore(&start).expect(0).out.trim().to_owned();
    eventually("the tasks run", || {
        machine
            .longshore(&["exec", "digits/worker/1", "--", "true"])
            .code
            == 0
    });
    for verb in ["logs", "why", "attach", "cancel", "rm"] {
        let offered = completed(&machine, &["longshore", verb, "dig"]);
        assert!(
            offered.iter().any(|word| word.starts_with(&run)),
            "{verb}: {offered:?}"
        );
    }
    assert_eq!(completed(&machine, &["longshore", "logs", "la"]), ["last"]);
    let tasks = [format!("{run}/worker/0"), format!("{run}/worker/1")];
    assert_eq!(
        completed(&machine, &["longshore", "logs", &format!("{run}/")]),
        tasks
    );
    for verb in ["exec", "cp", "port-forward"] {
        assert_eq!(
            completed(&machine, &["longshore", verb, "dig"]),
            tasks,
            "{verb}"
        );
    }
    assert_eq!(
        completed(&machine, &["longshore", "get", "cronj"]),
        ["cronjobs"]
    );
    assert_eq!(
        completed(&machine, &["longshore", "delete", "jobs", "dig"]),
        [format!("{run}-worker")]
    );
    // Completion uses the namespace of the command line.
    assert!(completed(&machine, &["longshore", "logs", "-n", "kube-system", "dig"]).is_empty());
    assert_eq!(
        completed(&machine, &["longshore", "runs", "--watc"]),
        ["--watch"]
    );
}

#[test]
fn completion_starts_nothing_and_is_silent_when_the_cluster_has_died() {
    let machine = Machine::new();
    machine.write(
        "config",
        "apiVersion: v1\nkind: Config\ncurrent-context: gone\n\
         clusters: [{name: gone, cluster: {server: 'http://127.0.0.1:1'}}]\n\
         contexts: [{name: gone, context: {cluster: gone, user: gone}}]\n\
         users: [{name: gone, user: {}}]\n",
    );
    let words = ["longshore", "logs", "--kubeconfig", "config", "d"];
    assert!(completed(&machine, &words).is_empty());
}

#[test]
fn other_shells_accept_their_scripts() {
    let machine = Machine::new();
    for (name, check) in [("zsh", "zsh -n"), ("fish", "fish --no-execute")] {
        let script = machine.longshore(&["completions", name]).expect(0).out;
        assert!(script.contains("LONGSHORE_COMPLETE"), "{script}");
        let is_installed = Command::new(name).arg("--version").output().is_ok();
        if is_installed {
            machine.write("script", &script);
            shell(&machine, "sh", &format!("{check} script")).expect(0);
        }
    }
}
