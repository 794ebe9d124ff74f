//! Suggests commands for the verbs of other tools, and for several runs.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Verbs that other tools use, and the commands that do the same here.
const OTHERS: &[(&[&str], &[&str])] = &[
    (&["ps", "ls", "list", "jobs", "history"], &["runs"]),
    (&["stop", "kill", "abort", "terminate"], &["cancel"]),
    (&["remove", "del", "purge"], &["rm"]),
    (&["submit", "launch", "exec-run", "job"], &["run"]),
    (&["start", "init", "create-cluster"], &["up", "run"]),
    (&["unpause", "unsuspend", "continue"], &["resume"]),
    (&["rbac", "permissions", "rights"], &["role"]),
    (&["log", "tail"], &["logs"]),
    (&["inspect", "info", "show"], &["describe", "why"]),
    (&["explain", "events", "debug"], &["why", "describe"]),
    (&["sh", "bash", "connect", "login"], &["shell", "exec"]),
    (&["download", "pull", "fetch", "artifacts"], &["outputs"]),
    (&["web", "dashboard", "server"], &["ui"]),
    (&["rerun", "resubmit", "restart"], &["retry", "run"]),
    (&["halt", "shutdown", "destroy"], &["down"]),
    (&["stats", "usage"], &["top"]),
    (&["compare"], &["diff"]),
    (&["update", "edit", "replace", "patch"], &["apply"]),
    (&["proxy"], &["port-forward"]),
    (&["completion"], &["completions"]),
];

/// Commands that act on one run, and what does the same for several.
const OF_ONE_RUN: &[(&str, &str)] = &[
    ("attach", "`longshore logs RUN... --follow` follows several"),
    (
        "sweep",
        "repeat it for each sweep, or use `longshore metrics RUN...`",
    ),
];

/// Adds a tip to the error about a second name.
pub(crate) fn suggest_for_several(error: &mut clap::Error, verb: &str) {
    let Some((_, instead)) = OF_ONE_RUN.iter().find(|(of_one, _)| *of_one == verb) else {
        return;
    };
    let is_name = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) => !word.starts_with('-'),
        _ => false,
    };
    if error.kind() == ErrorKind::UnknownArgument && is_name {
        let tip = format!("`longshore {verb}` takes one run: {instead}");
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
}

/// Replaces clap's suggestions for a verb of another tool, which resemble only its spelling.
pub(crate) fn suggest(error: &mut clap::Error) {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return;
    }
    let Some(ContextValue::String(verb)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let known = OTHERS
        .iter()
        .find(|(verbs, _)| verbs.contains(&verb.as_str()));
    if let Some((_, commands)) = known {
        let commands = commands.iter().map(ToString::to_string).collect();
        error.insert(
            ContextKind::SuggestedSubcommand,
            ContextValue::Strings(commands),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{OF_ONE_RUN, OTHERS};
    use crate::app::description;

    #[test]
    fn suggested_commands_exist_and_verbs_of_others_do_not() {
        let program = description();
        let names: BTreeSet<&str> = program
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        assert!(OF_ONE_RUN.iter().all(|(verb, _)| names.contains(verb)));
        let mut seen = BTreeSet::new();
        for (verbs, commands) in OTHERS {
            for verb in *verbs {
                assert!(!names.contains(verb), "{verb} is a command");
                assert!(seen.insert(verb), "{verb} occurs twice");
            }
            for command in *commands {
                assert!(names.contains(command), "{command}");
            }
        }
    }
}
