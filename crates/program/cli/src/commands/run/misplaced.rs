//! Detects a command for `run` without the `--` before it, as in other launchers.

use std::path::Path;

use crate::error::Error;

/// The error for `run python train.py`; `None` for other arguments.
pub(crate) fn misplaced_command(arguments: &[String]) -> Option<Error> {
    let [verb, rest @ ..] = arguments else {
        return None;
    };
    let first = rest.first()?;
    if verb != "run" || first.starts_with('-') || rest.iter().any(|word| word == "--") {
        return None;
    }
    let (folder, command) = match Path::new(first).is_dir() {
        true => (format!("{} ", quoted(first)), &rest[1..]),
        false => (String::new(), rest),
    };
    // Options of `run` after the folder have other errors.
    if command.first()?.starts_with('-') {
        return None;
    }
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let words = words.join(" ");
    let error = Error::usage(format!("the command `{words}` must come after `--`"));
    Some(error.hint(format!(
        "write `longshore run {folder}-- {words}`, with options of longshore before the `--`"
    )))
}

/// Quotes a word for a shell, if necessary.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn hint(arguments: &[&str]) -> Option<String> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let error = misplaced_command(&arguments)?;
        Some(error.lines().last().unwrap().1.clone())
    }

    #[test]
    fn the_correct_command_is_suggested() {
        for (arguments, line) in [
            (
                &["run", "python", "train.py", "--lr", "0.1"][..],
                "`longshore run -- python train.py --lr 0.1`",
            ),
            (
                &["run", "/tmp", "sh", "-c", "a b"],
                "`longshore run /tmp -- sh -c 'a b'`",
            ),
            (
                &["run", "echo", "it's", ""],
                "`longshore run -- echo 'it'\\''s' ''`",
            ),
        ] {
            let hint = hint(arguments).unwrap();
            assert!(hint.contains(line), "{hint}");
        }
        for arguments in [
            &["run", "--imgae", "x"][..],
            &["run", "/tmp", "--imgae", "x"],
            &["run", "a", "b", "--", "c"],
            &["runs", "a", "b"],
            &["run"],
            &[],
        ] {
            assert_eq!(hint(arguments), None, "{arguments:?}");
        }
    }
}
