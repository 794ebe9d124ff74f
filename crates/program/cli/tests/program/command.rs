//! Delivery of a command to its task: byte for byte, with its standard input, and with a terminal.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::machine::{Answer, Machine, eventually};

/// Prints its arguments and the variable `NASTY`, as JSON in ASCII.
const SHOW: &str = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['NASTY']]))";

/// Strings with characters that shells, YAML, JSON and Kubernetes treat specially.
/// Deterministic.
fn nasty_texts() -> Vec<String> {
    let fixed = [
        "",
        " ",
        "$$",
        "$$$",
        "$(HOME)",
        "$$(HOME)",
        "$(",
        "$()",
        "$",
        "a$",
        "${HOME}",
        "`id`",
        "'\"\\'",
        "two\nlines\n",
        "tab\tand\r",
        "é$é",
        "$é",
        "日本語 🚢",
        "- a",
        "a: b",
        "# c",
        "null",
        "true",
        "~",
        "%s %n",
        "--",
        "-",
        "\u{1}\u{7f}",
        "\u{feff}x",
    ];
    let alphabet: Vec<char> = "$()$()\\'\" \n-aé".chars().collect();
    let mut state: u32 = 7;
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        usize::try_from(state >> 16).unwrap()
    };
    let random = std::iter::repeat_with(move || {
        let length = next() % 12;
        (0..length)
            .map(|_| alphabet[next() % alphabet.len()])
            .collect()
    });
    fixed
        .map(str::to_owned)
        .into_iter()
        .chain(random.take(150))
        .collect()
}

/// The lines of a merged log, without the task prefix.
fn said(answer: &Answer) -> Vec<&str> {
    let lines = answer.out.lines();
    lines
        .map(|line| line.split_once(" | ").unwrap().1)
        .collect()
}

#[test]
fn arguments_and_variables_arrive_byte_for_byte() {
    let machine = Machine::new();
    let texts = nasty_texts();
    let value = texts.join("|");
    let variable = format!("NASTY={value}");
    let mut arguments = vec!["run", "--env", &variable, "--", "python3", "-c", SHOW];
    arguments.extend(texts.iter().map(String::as_str));
    let answer = machine.longshore(&arguments).expect(0);
    let arrived: Value = serde_json::from_str(said(&answer)[0]).unwrap();
    assert_eq!(arrived, json!([texts, value]));
}

#[test]
fn a_command_in_longshore_toml_arrives_byte_for_byte_and_kubernetes_expands_a_template() {
    let machine = Machine::new();
    machine.write(
        "longshore.toml",
        r#"command = "echo $$ $(echo \"a  b\") \"$EXPANDED\""
[template.spec]
containers = [{ name = "main", env = [{ name = "A", value = "default" }, { name = "EXPANDED", value = "$(A)-$$" }] }]
"#,
    );
    let answer = machine.longshore(&["run"]).expect(0);
    let said = said(&answer)[0];
    let (pid, rest) = said.split_once(' ').unwrap();
    assert!(pid.parse::<u32>().is_ok(), "{said}");
    assert_eq!(rest, "a b default-$");
}

fn piped(machine: &Machine, arguments: &[&str], input: &[u8]) -> Answer {
    let mut command = machine.command(arguments);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writing = std::thread::spawn(move || stdin.write_all(&input));
    let answer = Answer::new(&child.wait_with_output().unwrap());
    // The command may exit before it has read everything.
    let _ = writing.join().unwrap();
    answer
}

#[test]
fn piped_input_is_sent_or_reported_as_ignored() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let ignored = piped(&machine, &["run", "--", "cat"], b"hallo\n").expect(0);
    assert_eq!(ignored.out, "");
    assert!(
        ignored
            .err
            .contains("warning: stdin is not sent to the task: add -i"),
        "{}",
        ignored.err
    );
    let empty = piped(&machine, &["run", "--", "cat"], b"").expect(0);
    assert!(!empty.err.contains("standard input"), "{}", empty.err);

    let sent = piped(&machine, &["run", "-i", "--", "cat"], b"hallo\nwelt").expect(0);
    assert_eq!(said(&sent), ["hallo", "welt"]);
    let much: Vec<u8> = (0..=255).cycle().take(3_000_000).collect();
    let counted = piped(&machine, &["run", "-i", "--", "wc", "-c"], &much).expect(0);
    assert_eq!(said(&counted), ["3000000"]);
    // A task that does not read its input ends as well.
    piped(&machine, &["run", "-i", "--", "true"], &much).expect(0);
    piped(&machine, &["run", "-i", "--", "false"], b"").expect(1);
}

#[test]
fn late_input_is_reported_as_ignored_when_it_arrives() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let (began, end) = (machine.code().join("began"), machine.code().join("end"));
    let script = format!(
        "touch {}; while test ! -e {}; do sleep 0.05; done",
        began.display(),
        end.display()
    );
    let words = ["run", "--no-code", "--", "sh", "-c", &script];
    let mut command = machine.command(&words);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    eventually("the task runs", || began.exists());
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"hallo\n").unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    let is_notice = |line: &String| line.contains("stdin is not sent to the task");
    assert!(errors.any(|line| is_notice(&line.unwrap())));
    stdin.write_all(b"welt\n").unwrap();
    std::fs::write(end, "").unwrap();
    let rest: Vec<String> = errors.map(Result::unwrap).collect();
    assert!(!rest.iter().any(is_notice), "{rest:?}");
    assert!(child.wait().unwrap().success());

    // Without input, the command prints no notice: programs often pass on an unused pipe.
    let mut command = machine.command(&["run", "--no-code", "--", "true"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    let idle = Answer::new(&child.wait_with_output().unwrap()).expect(0);
    drop(stdin);
    assert!(!idle.err.contains("standard input"), "{}", idle.err);
}

#[test]
fn unusable_standard_input_is_rejected() {
    let machine = Machine::new();
    let refused = |arguments: &[&str]| machine.longshore(arguments).expect(2).err;
    let several = refused(&["run", "-i", "--role", "worker=2", "--", "cat"]);
    assert!(
        several.contains("-i sends the standard input to one task, and this run has 2"),
        "{several}"
    );
    let no_terminal = refused(&["run", "-it", "--", "sh"]);
    assert!(
        no_terminal.contains("-t requires a terminal"),
        "{no_terminal}"
    );
    let detached = refused(&["run", "-i", "--detach", "--", "cat"]);
    assert!(detached.contains("cannot be used with"), "{detached}");
    assert!(!machine.data().exists(), "no cluster was started");
}

/// Runs the program in a terminal and performs these steps.
fn in_terminal(machine: &Machine, arguments: &[&str], steps: &Value) -> Value {
    let program = env!("CARGO_BIN_EXE_longshore");
    let argv: Vec<&str> = [&[program], arguments].concat();
    let task = json!({"argv": argv, "steps": steps}).to_string();
    let mut command: Command = machine.shell("exec python3 -c \"$DRIVER\"");
    let command = command.env("DRIVER", include_str!("terminal.py"));
    let command = command.env("TERM", "xterm").stdin(Stdio::piped());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(task.as_bytes())
        .unwrap();
    Answer::new(&child.wait_with_output().unwrap())
        .expect(0)
        .json()
}

#[test]
fn a_debugger_can_use_the_terminal() {
    let machine = Machine::new();
    machine.write(
        "train.py",
        "import sys\nword = 'x'\nbreakpoint()\nprint('word', word)\nsys.exit(5)\n",
    );
    let steps = json!([
        ["see", "(Pdb) "],
        ["type", "word = 'typed' * 2\n"],
        ["see", "(Pdb) "],
        ["type", "c\n"],
        ["see", "word typedtyped"],
    ]);
    let run = ["run", "-it", "--", "python3", "train.py"];
    let end = in_terminal(&machine, &run, &steps);
    assert_eq!(end["code"], 5, "{end}");
    assert_eq!(end["restored"], true, "{end}");
    let screen = end["screen"].as_str().unwrap();
    assert!(
        !screen.contains("main/0 |"),
        "its lines have no prefix: {screen}"
    );
}

#[test]
fn a_shell_gets_the_terminals_size_and_keys() {
    let machine = Machine::new();
    let steps = json!([
        ["type", "stty -echo; stty size; echo ready\n"],
        ["see", "30 100"],
        ["see", "ready"],
        ["resize", 40, 90],
        [
            "type",
            "while [ \"$(stty size)\" != '40 90' ]; do sleep 0.02; done; echo re''sized\n"
        ],
        ["see", "resized"],
        // The shell that is going to be interrupted prints the marker: a shell that is
        // about to start another program may miss the signal.
        ["type", "sh -c \"echo sle''eping; exec sleep 1000\"\n"],
        ["see", "sleeping"],
        ["type", "\u{3}"],
        ["see", "# "],
        ["type", "echo inter''rupted $?\n"],
        ["see", "interrupted 130"],
        ["type", "exit 7\n"],
    ]);
    let end = in_terminal(&machine, &["run", "-it", "--", "sh"], &steps);
    assert_eq!(end["code"], 7, "{end}");
    assert_eq!(end["restored"], true, "{end}");
}

#[test]
fn output_of_a_short_task_reaches_the_terminal() {
    let machine = Machine::new();
    let run = ["run", "-it", "--no-code", "--", "echo", "at once"];
    let end = in_terminal(&machine, &run, &json!([["see", "at once"]]));
    assert_eq!(end["code"], 0, "{end}");
    assert_eq!(end["restored"], true, "{end}");
    let missing = ["run", "-it", "--", "no-such-program"];
    let end = in_terminal(&machine, &missing, &json!([["see", "not found"]]));
    assert_eq!(end["code"], 4, "{end}");
}

#[test]
fn a_signal_ends_the_program_restores_the_terminal_and_keeps_the_task() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    for signal in ["SIGTERM", "SIGHUP"] {
        let steps = json!([
            ["type", "echo at''tached\n"],
            ["see", "attached"],
            ["signal", signal]
        ]);
        let end = in_terminal(
            &machine,
            &["run", "-it", "--name", "shell", "--", "sh"],
            &steps,
        );
        assert_eq!(end["code"], 130, "{end}");
        assert_eq!(end["restored"], true, "{end}");
        let screen = end["screen"].as_str().unwrap();
        assert!(screen.contains("continues: "), "{screen}");
    }
    let runs = machine
        .longshore(&["runs", "--output", "json"])
        .expect(0)
        .json();
    let states = runs.as_array().unwrap().iter().map(|run| &run["state"]);
    assert_eq!(states.collect::<Vec<_>>(), ["running", "running"]);
}
