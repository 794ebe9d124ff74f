//! The main help, with the commands in groups. clap can group options, but not commands.

use std::{fmt::Write as _, io};

use clap::Command;
use rustix::termios::tcgetwinsize;

/// The groups in the order of the help, with their commands. Each command that is not hidden
/// belongs to one group.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Runs",
        &[
            "run", "dev", "runs", "attach", "why", "outputs", "metrics", "sweep", "retry", "diff",
            "tag", "note", "cancel", "resume", "rm",
        ],
    ),
    (
        "Tasks",
        &[
            "logs",
            "top",
            "shell",
            "exec",
            "ssh",
            "cp",
            "forward",
            "port-forward",
        ],
    ),
    (
        "Objects",
        &[
            "get", "describe", "watch", "create", "apply", "label", "wait", "delete",
        ],
    ),
    ("Clusters", &["up", "status", "down", "data", "role"]),
    ("Testing", &["envtest", "controllers", "record", "replay"]),
    ("Tools", &["ui", "resolve", "zenml", "completions"]),
];

/// The beginning of the template, like in clap's own.
const BEGINNING: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n";

/// The end of the template, after the heading of the options.
const END: &str = "{options}{after-help}";

/// Refers to `help`, a command that clap adds later.
const HELP: &str = "See `longshore help COMMAND` for the options and examples of a command.";

/// The number of blanks before a command, and between the commands and their descriptions.
const GAP: usize = 2;

/// The number of columns without a terminal, like in clap.
const COLUMNS: usize = 100;

/// Sets the main help of the program.
pub(crate) fn with_groups(program: Command) -> Command {
    let template = template(&program, columns());
    program.help_template(template)
}

/// The number of columns of the terminal that shows the help.
fn columns() -> usize {
    [tcgetwinsize(io::stdout()), tcgetwinsize(io::stderr())]
        .into_iter()
        .flatten()
        .map(|size| usize::from(size.ws_col))
        .find(|columns| *columns > 0)
        .unwrap_or(COLUMNS)
}

/// The template of the main help, with the description of each command.
fn template(program: &Command, columns: usize) -> String {
    let styles = program.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let longest = GROUPS
        .iter()
        .flat_map(|(_, names)| names.iter())
        .map(|name| name.len())
        .max()
        .unwrap_or_default();
    let indent = GAP + longest + GAP;
    let next_line = format!("\n{}", " ".repeat(indent));
    let mut text = BEGINNING.to_owned();
    for (heading, names) in GROUPS {
        let _ = writeln!(text, "{header}{heading}:{header:#}");
        for name in *names {
            let lines = wrap(&about(program, name), columns.saturating_sub(indent));
            let about = lines.join(next_line.as_str());
            let (before, after) = (" ".repeat(GAP), " ".repeat(indent - GAP - name.len()));
            let _ = writeln!(text, "{before}{literal}{name}{literal:#}{after}{about}");
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{HELP}\n\n{header}Options:{header:#}");
    text + END
}

/// The short description of a command.
fn about(program: &Command, name: &str) -> String {
    program
        .find_subcommand(name)
        .and_then(Command::get_about)
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// The lines of a text. A line is longer than `width` only if it consists of one long word.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::{GROUPS, about, template, wrap};
    use crate::app::description;

    /// The names of the commands in all groups.
    fn grouped() -> Vec<&'static str> {
        GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect()
    }

    #[test]
    fn each_visible_command_is_in_one_group() {
        let program = description();
        let mut visible: Vec<&str> = program
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(Command::get_name)
            .collect();
        let mut grouped = grouped();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible);
    }

    #[test]
    fn each_description_is_one_line_without_tags() {
        let program = description();
        let template = template(&program, 100);
        for name in grouped() {
            let about = about(&program, name);
            assert!(!about.is_empty() && !about.contains('{'), "{name}: {about}");
            assert!(template.contains(&about), "{name}: {about}");
        }
    }

    #[test]
    fn long_descriptions_continue_on_the_next_line() {
        let about = "Show runs in a browser";
        assert_eq!(wrap(about, 12), ["Show runs in", "a browser"]);
        assert_eq!(wrap(about, 22), [about]);
        assert_eq!(wrap("Show runs", 2), ["Show", "runs"]);
    }
}
