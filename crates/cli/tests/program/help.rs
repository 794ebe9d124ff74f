//! What the program says about itself.

use crate::desk::Desk;

#[test]
fn the_main_help() {
    let desk = Desk::new();
    insta::assert_snapshot!(desk.longshore(&["--help"]).expect(0).out);
}

#[test]
fn every_verb_has_help_with_an_example() {
    let desk = Desk::new();
    for verb in [
        "run",
        "runs",
        "logs",
        "why",
        "cancel",
        "rm",
        "cp",
        "get",
        "describe",
        "watch",
        "exec",
        "attach",
        "port-forward",
        "create",
        "apply",
        "label",
        "wait",
        "delete",
        "resolve",
        "up",
        "down",
        "status",
        "completions",
    ] {
        let help = desk.longshore(&[verb, "--help"]).expect(0).out;
        assert!(help.contains("Example"), "{verb}:\n{help}");
        assert!(
            help.contains(&format!("  longshore {verb}")) || verb == "completions",
            "{verb}:\n{help}"
        );
    }
}

#[test]
fn the_help_of_run() {
    let desk = Desk::new();
    insta::assert_snapshot!(desk.longshore(&["run", "--help"]).expect(0).out);
}

#[test]
fn the_help_of_why() {
    let desk = Desk::new();
    insta::assert_snapshot!(desk.longshore(&["why", "--help"]).expect(0).out);
}

#[test]
fn nothing_to_do_is_a_usage_error() {
    let desk = Desk::new();
    let answer = desk.longshore::<&str>(&[]).expect(2);
    assert!(answer.err.contains("Usage: longshore"), "{}", answer.err);
}

#[test]
fn the_version_is_the_packages() {
    let desk = Desk::new();
    let version = format!("longshore {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(desk.longshore(&["--version"]).expect(0).out, version);
}

#[test]
fn completions_are_a_script_for_the_shell() {
    let desk = Desk::new();
    let script = desk.longshore(&["completions", "bash"]).expect(0).out;
    assert!(
        script.contains("_clap_complete_longshore") && script.contains("LONGSHORE_COMPLETE"),
        "{script}"
    );
}

#[test]
fn no_colours_without_a_terminal() {
    let desk = Desk::new();
    let answer = desk.longshore(&["run", "nowhere"]).expect(2);
    assert!(!answer.err.contains('\x1b'), "{:?}", answer.err);
}
