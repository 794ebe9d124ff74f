//! The examples in the help of every command are run as written. Run names that begin with
//! `digits-` are replaced by the name of a run of that folder, and ports by free ports.

use std::{
    ffi::OsString,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::machine::{Answer, Machine, TIMEOUT, eventually};

/// The examples of a command, without their trailing remarks.
fn examples(machine: &Machine, command_name: &str) -> Vec<String> {
    let help = machine.longshore(&[command_name, "--help"]).expect(0).out;
    let examples = help.split("Examples:").nth(1);
    let examples = examples.or_else(|| help.split("Example:").nth(1));
    let lines = examples.unwrap_or_default().lines().skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    lines
        .map(|line| match line.split_once("   ") {
            Some((indent, rest)) if indent.trim().is_empty() => rest.trim(),
            Some((command, _)) => command.trim(),
            None => line.trim(),
        })
        .map(|line| line.split("  #").next().unwrap_or(line).trim().to_owned())
        .collect()
}

struct Examples {
    machine: Machine,
    path: OsString,
    run: String,
}

impl Examples {
    fn new() -> Self {
        let machine = Machine::new();
        let bin = machine.home().join("bin");
        std::fs::create_dir(&bin).unwrap();
        // Not every machine has all of these programs.
        let python = "#!/bin/sh\nexec python3 \"$@\"\n";
        for (name, script) in [
            ("python", python),
            ("jq", "#!/bin/sh\ncat\n"),
            ("kubectl", "#!/bin/sh\ngrep -q server: \"$KUBECONFIG\"\n"),
        ] {
            std::fs::write(bin.join(name), script).unwrap();
            Command::new("chmod")
                .arg("+x")
                .arg(bin.join(name))
                .status()
                .unwrap();
        }
        let program = Path::new(env!("CARGO_BIN_EXE_longshore")).parent().unwrap();
        let mut path = bin.into_os_string();
        for folder in [program.as_os_str(), &std::env::var_os("PATH").unwrap()] {
            path.push(":");
            path.push(folder);
        }
        Self {
            machine,
            path,
            run: String::new(),
        }
    }

    fn command(&self, script: &str) -> Command {
        let mut shell = Command::new("bash");
        let own = self.machine.shell("");
        shell.current_dir(self.machine.code()).env_clear();
        for (name, value) in own.get_envs() {
            if let Some(value) = value {
                shell.env(name, value);
            }
        }
        let script = script.replace("digits-x7k2p", &self.run);
        shell
            .env("PATH", &self.path)
            .args(["-e", "-o", "pipefail", "-c", &script]);
        shell.stdin(Stdio::null());
        shell
    }

    /// Runs a command that must succeed.
    #[track_caller]
    fn run(&self, script: &str) -> Answer {
        let answer = Answer::new(&self.command(script).output().unwrap());
        assert_eq!(answer.code, 0, "{script}\n{}\n{}", answer.out, answer.err);
        answer
    }

    /// Runs a command that keeps running until it is terminated.
    #[track_caller]
    fn terminate(&self, script: &str) {
        let script = format!("exec {script}");
        let mut command = self.command(&script);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        // Waits long enough for an error to appear.
        while begin.elapsed() < Duration::from_millis(1500) {
            if let Some(status) = child.try_wait().unwrap() {
                let answer = Answer::new(&child.wait_with_output().unwrap());
                panic!("{script} ended: {status}\n{}\n{}", answer.out, answer.err);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // Not SIGINT, because the process that runs the tests may ignore it.
        crate::machine::signal(i32::try_from(child.id()).unwrap(), "TERM");
        let begin = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < TIMEOUT, "{script} does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs a command in a terminal and types `input`.
    #[track_caller]
    fn type_into(&self, script: &str, input: &str) {
        let program = "import os, pty, sys, time\n\
             pid, fd = pty.fork()\n\
             if pid == 0: os.execvp('bash', ['bash', '-c', sys.argv[1]])\n\
             time.sleep(1)\n\
             os.write(fd, sys.argv[2].encode())\n\
             out = b''\n\
             try:\n\
             \twhile True:\n\
             \t\tpiece = os.read(fd, 1000)\n\
             \t\tif not piece: break\n\
             \t\tout += piece\n\
             except OSError: pass\n\
             _, status = os.waitpid(pid, 0)\n\
             sys.stdout.buffer.write(out)\n\
             sys.exit(os.waitstatus_to_exitcode(status))\n";
        let script = script.replace("digits-x7k2p", &self.run);
        let mut python = Command::new("python3");
        python.current_dir(self.machine.code()).env_clear();
        for (name, value) in self.command("").get_envs() {
            if let Some(value) = value {
                python.env(name, value);
            }
        }
        python
            .env("TERM", "xterm")
            .args(["-c", program, &script, input]);
        let answer = Answer::new(&python.output().unwrap());
        assert_eq!(answer.code, 0, "{script}\n{}\n{}", answer.out, answer.err);
    }

    fn all(&self, command_name: &str) -> Vec<String> {
        let found = examples(&self.machine, command_name);
        assert!(!found.is_empty(), "{command_name} has no examples");
        found
    }
}

/// A Job of four tasks.
const JOB: &str = r#"
apiVersion: batch/v1
kind: Job
metadata: {name: train, labels: {app: shop}}
spec:
  completionMode: Indexed
  completions: 4
  parallelism: 4
  template:
    metadata: {labels: {app: train}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: any, command: [sleep, "600"]}]
"#;

#[test]
fn examples_of_runs() {
    let mut examples = Examples::new();
    let machine = &examples.machine;
    std::fs::create_dir_all(machine.code().join("examples/digits")).unwrap();
    machine.write("train.py", "print('trained')\n");
    machine.write("data.csv", "a,b\n");
    machine.write("with:colon", "x\n");
    machine.write(
        "examples/digits/longshore.toml",
        "command = ['sh', '-c', 'echo ready; mkdir -p /tmp/results; exec sleep 600']\n\
         outputs = ['longshore.toml']\n\
         [roles.worker]\ncount = 2\n",
    );
    examples.run("longshore up --kubeconfig config");
    examples.run("mkdir -p ~/.kube; sed 's/current-context: .*/current-context: x/; s/name: longshore/name: production/' config > ~/.kube/config");
    let digits = examples
        .run("longshore run examples/digits -d")
        .out
        .trim()
        .to_owned();
    examples.run = digits;
    eventually("the tasks run", || {
        let answer = examples
            .command("longshore exec digits-x7k2p/worker/1 -- true")
            .output();
        answer.unwrap().status.success()
    });
    let alone =
        "longshore run --no-code -d --label team=vision -- sh -c 'echo ready; exec sleep 600'";
    examples.run(alone);
    eventually("the newest run runs", || {
        examples
            .command("longshore exec last -- true")
            .output()
            .unwrap()
            .status
            .success()
    });
    examples.run("printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: main, image: any, command: [sleep, \"600\"]}]}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: shell}\nspec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: main, image: any, stdin: true, tty: true, command: [sh]}]}\n' | longshore create -f -");
    examples.run("longshore wait pods web shell");

    for command_name in [
        "exec",
        "cp",
        "port-forward",
        "runs",
        "why",
        "logs",
        "attach",
        "shell",
        "forward",
        "cancel",
        "outputs",
        "data",
        "rm",
    ] {
        for example in examples.all(command_name) {
            match (command_name, example.as_str()) {
                // These examples need another cluster, or a container that has restarted.
                (_, text)
                    if ["--context", "--all-contexts", "--previous"]
                        .iter()
                        .any(|option| text.contains(option)) => {}
                (_, text) if text.contains("-it") => {
                    examples.type_into(text, "exit 0\n");
                }
                ("port-forward", text) => {
                    let free = |word: &str| match word.split_once(':') {
                        Some((_, port)) => format!(":{port}"),
                        None if word.chars().all(|c| c.is_ascii_digit()) => format!(":{word}"),
                        None => word.to_owned(),
                    };
                    let words: Vec<String> = text.split(' ').map(free).collect();
                    examples.terminate(&words.join(" "));
                }
                (_, text) if text.contains("--watch") || text.contains("--follow") => {
                    examples.terminate(text);
                }
                ("attach", text) => examples.terminate(text),
                ("forward", text) => {
                    // The local ports may be in use.
                    let text = text.replace(" 6006", " :6006").replace(":16006:", "::");
                    examples.terminate(&text);
                }
                ("shell", text) if !text.contains("echo") => {
                    examples.type_into(text, "exit 0\n");
                }
                ("shell", text) => drop(examples.run(&text.replace("TF_CONFIG", "LONGSHORE_RUN"))),
                ("cancel", "longshore cancel last") => {
                    examples.run(alone);
                    examples.run("longshore cancel last");
                }
                ("outputs", text) if text.contains(" last") => {
                    examples.run("longshore run examples/digits --role worker=1 -- true");
                    examples.run(text);
                }
                ("outputs", text) if text.contains("sweep-*") => {
                    let run = "longshore run examples/digits --name sweep --role worker=1";
                    examples.run(&format!("{run} -- true"));
                    examples.run(text);
                    examples.run("longshore rm 'sweep-*' --force");
                }
                ("why" | "logs", text) if text.contains("sweep-*") => {
                    examples.run("longshore run --no-code --name sweep -- echo done");
                    examples.run(text);
                    examples.run("longshore rm 'sweep-*' --force");
                }
                ("rm", text) => {
                    examples.run("longshore run --no-code --name sweep -- true");
                    examples.run(text);
                }
                (_, text) => drop(examples.run(text)),
            }
        }
    }
    examples.run("rm -rf /tmp/results /tmp/data.csv /tmp/with:colon");
}

#[test]
fn examples_of_launching() {
    let mut examples = Examples::new();
    // The run that `longshore dev --keep` leaves.
    "last".clone_into(&mut examples.run);
    let machine = &examples.machine;
    std::fs::create_dir_all(machine.code().join("examples/digits")).unwrap();
    std::fs::create_dir_all(machine.code().join("data/cifar")).unwrap();
    machine.write("data/cifar/a.csv", "1\n");
    machine.write("train.py", "print('trained')\n");
    machine.write("count.py", "import sys; print(len(sys.stdin.read()))\n");
    machine.write(
        "examples/digits/longshore.toml",
        "command = ['true']\n[roles.worker]\ncount = 2\n",
    );
    machine.write("longshore.toml", "[roles.worker]\ncount = 1\n");
    examples.run("printf data | gzip > data.gz");
    let kubeconfig = machine.home().join("production");
    examples.run(&format!(
        "longshore up --kubeconfig {}",
        kubeconfig.display()
    ));
    for example in examples.all("run") {
        match example.as_str() {
            text if text.contains("-it ") => {
                examples.type_into(text, "continue\nquit\n");
            }
            text if text.contains("--context production") => {
                // The example's context is in a kubeconfig.
                let here = format!("--kubeconfig {}", kubeconfig.display());
                examples.run(&text.replace("--context production", &here));
            }
            text => drop(examples.run(text)),
        }
    }
    machine.write("serve.py", "print('serves')\n");
    for example in examples.all("dev") {
        if example.contains("--run") {
            examples.terminate("longshore dev --keep -- python serve.py");
        }
        examples.terminate(&example);
    }
    // The examples of the program itself; the last one starts a cluster, which is already
    // running.
    let help = machine.longshore(&["--help"]).expect(0).out;
    let lines = help
        .lines()
        .filter_map(|line| line.strip_prefix("  longshore "));
    let mut played = 0;
    for line in lines {
        let command = line.split("   ").next().unwrap_or(line);
        examples.run(&format!("longshore {command}"));
        played += 1;
    }
    assert!(played >= 4, "{help}");
}

#[test]
fn examples_of_objects() {
    let examples = Examples::new();
    let machine = &examples.machine;
    machine.write("job.yaml", JOB);
    for name in ["ps-1", "ps-2"] {
        let text = JOB
            .replace("name: train,", &format!("name: {name},"))
            .replace("completions: 4", "completions: 1")
            .replace("parallelism: 4", "parallelism: 1")
            .replace("app: train", "app: ps");
        std::fs::write(machine.home().join(name), text).unwrap();
    }
    machine.write(
        "deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 0, selector: {matchLabels: {app: front}}, template: {metadata: {labels: {app: front}}, spec: {containers: [{name: main, image: any, command: [sleep, \"600\"]}]}}}\n",
    );
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME, labels: {app: web}}\nspec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: main, image: any, command: [sleep, \"600\"]}]}\n";
    let web = machine.home().join("web.yaml");
    std::fs::write(
        &web,
        format!(
            "{}---\n{}",
            pod.replace("NAME", "web"),
            pod.replace("NAME", "digits-worker-0")
        ),
    )
    .unwrap();
    let web = web.display().to_string();
    examples.run("longshore up");
    examples.run("for name in shop team scratch; do printf \"apiVersion: v1\nkind: Namespace\nmetadata: {name: $name}\n\"; echo ---; done | longshore create -f -");
    examples.run(&format!("longshore create -f {web}"));
    for example in examples.all("create") {
        examples.run(&example);
        examples.run("longshore delete -f job.yaml --ignore-not-found");
    }
    examples.run("longshore create -f job.yaml -f ~/ps-1 -f ~/ps-2");
    examples.run("longshore run --no-code --name digits -- true");
    for command_name in [
        "apply", "get", "describe", "watch", "label", "resolve", "wait", "delete",
    ] {
        for example in examples.all(command_name) {
            match (command_name, example.as_str()) {
                ("watch", text) if text.contains("| jq") => {
                    let (watch, _) = text.split_once(" |").unwrap();
                    examples.terminate(watch);
                }
                ("watch", text) => examples.terminate(text),
                ("resolve", text) if text.contains("--watch") => examples.terminate(text),
                ("resolve", text) if text.contains("digits-x7k2p") => {
                    examples.run(
                        &text
                            .replace("digits-x7k2p", "last")
                            .replace("worker:0", "main:0"),
                    );
                }
                ("resolve", text) if text.contains("--job") => {
                    eventually("the pods run", || {
                        examples.command(text).output().unwrap().status.success()
                    });
                }
                ("label", text) if text.contains("node this") => {
                    let node = examples.run("longshore get nodes -o name").out;
                    let node = node.trim().trim_start_matches("node/").to_owned();
                    examples.run(&text.replace("node this", &format!("node {node}")));
                }
                ("wait", text) if text.contains("deployment") => {
                    examples.run(text);
                }
                ("wait", text) if text.contains("job train") => {
                    // The example's tasks sleep longer than a test may take.
                    examples.terminate(text);
                }
                ("wait", text) if text.contains("gone") => {
                    examples.run(&format!("longshore delete -f {web}"));
                    examples.run(text);
                    examples.run(&format!("longshore create -f {web}"));
                }
                ("delete", "longshore delete -f job.yaml") => {
                    examples.run("longshore create -f job.yaml && longshore delete -f job.yaml");
                }
                (_, text) => drop(examples.run(text)),
            }
        }
    }
}

#[test]
fn examples_of_the_cluster() {
    let examples = Examples::new();
    let own = examples.machine.home().join("try").display().to_string();
    for command_name in ["up", "status", "completions", "down"] {
        for example in examples.all(command_name) {
            let example = example.replace("/tmp/try", &own);
            match command_name {
                "completions" if example.contains("fish") || example.contains("zsh") => {
                    let shell = if example.contains("fish") {
                        "fish"
                    } else {
                        "zsh"
                    };
                    examples.run(&format!("longshore completions {shell}"));
                }
                "up" => {
                    examples.run(&example);
                    let folder = match example.contains(&own) {
                        true => format!(" --data-dir {own}"),
                        false => String::new(),
                    };
                    examples.run(&format!("longshore down{folder}"));
                }
                "status" => {
                    examples.run("longshore up");
                    examples.run(&example);
                }
                _ => drop(examples.run(&example)),
            }
        }
    }
}

#[test]
fn examples_of_recordings() {
    let examples = Examples::new();
    let kubeconfig = examples.machine.home().join("staging");
    // kubectl asks for pods with the kubeconfig that it gets; pytest does nothing.
    let bin = examples.machine.home().join("bin");
    std::fs::write(bin.join("kubectl"), "#!/bin/sh\nexec longshore get pods\n").unwrap();
    std::fs::write(bin.join("pytest"), "#!/bin/sh\nexec longshore get pods\n").unwrap();
    let mut chmod = Command::new("chmod");
    assert!(
        chmod
            .arg("+x")
            .arg(bin.join("pytest"))
            .status()
            .unwrap()
            .success()
    );
    examples.run(&format!(
        "longshore up --kubeconfig {}",
        kubeconfig.display()
    ));
    for command_name in ["record", "replay"] {
        for example in examples.all(command_name) {
            let here = format!("--kubeconfig {}", kubeconfig.display());
            let example = example.replace("--context staging", &here);
            match example.contains(" -- ") {
                true => drop(examples.run(&example)),
                false => {
                    examples.terminate(&example);
                    // The recording without requests replaces the recording for the next examples.
                    examples.run("longshore record pods.jsonl -- longshore get pods");
                }
            }
        }
    }
}
