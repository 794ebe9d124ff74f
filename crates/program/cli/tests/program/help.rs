//! The program's help, version and completion scripts.

use crate::machine::Machine;

#[test]
fn the_main_help() {
    let machine = Machine::new();
    insta::assert_snapshot!(machine.longshore(&["--help"]).expect(0).out);
}

/// The commands that the main help lists, in its groups.
pub(crate) fn commands(help: &str) -> Vec<&str> {
    help.lines()
        .skip_while(|line| !line.starts_with("Usage:"))
        .take_while(|line| *line != "Options:")
        .filter_map(|line| line.strip_prefix("  "))
        // Continued descriptions are indented further.
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split(' ').next())
        .collect()
}

#[test]
fn every_command_has_help_with_an_example() {
    let machine = Machine::new();
    let main = machine.longshore(&["--help"]).expect(0).out;
    let commands = commands(&main);
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands {
        let help = machine.longshore(&[command, "--help"]).expect(0).out;
        assert!(help.contains("Example"), "{command}:\n{help}");
        assert!(
            help.contains(&format!("  longshore {command}")) || command == "completions",
            "{command}:\n{help}"
        );
    }
}

#[test]
fn the_help_of_run() {
    let machine = Machine::new();
    insta::assert_snapshot!(machine.longshore(&["run", "--help"]).expect(0).out);
}

#[test]
fn the_help_of_why() {
    let machine = Machine::new();
    insta::assert_snapshot!(machine.longshore(&["why", "--help"]).expect(0).out);
}

#[test]
fn a_missing_command_is_a_usage_error() {
    let machine = Machine::new();
    let answer = machine.longshore::<&str>(&[]).expect(2);
    assert!(answer.err.contains("Usage: longshore"), "{}", answer.err);
}

#[test]
fn the_usage_of_bootstrap_names_the_program() {
    let machine = Machine::new();
    for (arguments, usage) in [
        (&["bootstrap"][..], "Usage: longshore bootstrap <COMMAND>"),
        (
            &["bootstrap", "install"],
            "Usage: longshore bootstrap install <TARGET>",
        ),
    ] {
        let answer = machine.longshore(arguments).expect(2);
        assert!(answer.err.contains(usage), "{}", answer.err);
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let machine = Machine::new();
    let version = format!("longshore {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(machine.longshore(&["--version"]).expect(0).out, version);
}

#[test]
fn completions_prints_a_script_for_the_shell() {
    let machine = Machine::new();
    let script = machine.longshore(&["completions", "bash"]).expect(0).out;
    assert!(
        script.contains("_clap_complete_longshore") && script.contains("LONGSHORE_COMPLETE"),
        "{script}"
    );
}

#[test]
fn no_colours_without_a_terminal() {
    let machine = Machine::new();
    let answer = machine.longshore(&["run", "nowhere"]).expect(2);
    assert!(!answer.err.contains('\x1b'), "{:?}", answer.err);
}

#[test]
fn help_and_version_are_commands_too() {
    let machine = Machine::new();
    let by_option = machine.longshore(&["run", "--help"]).expect(0).out;
    assert_eq!(machine.longshore(&["help", "run"]).expect(0).out, by_option);
    let by_option = machine.longshore(&["--version"]).expect(0).out;
    assert_eq!(machine.longshore(&["version"]).expect(0).out, by_option);
}

#[test]
fn verbs_of_other_tools_lead_to_commands() {
    let machine = Machine::new();
    for (verb, command) in [
        ("ps", "runs"),
        ("ls", "runs"),
        ("stop", "cancel"),
        ("kill", "cancel"),
    ] {
        let answer = machine.longshore(&[verb]).expect(2);
        assert!(
            answer.err.contains(&format!("'{command}'")),
            "{verb}: {}",
            answer.err
        );
    }
}
