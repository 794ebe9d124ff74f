//! A command that is given to `run` without the `--` before it, as other launchers have it.

use std::path::Path;

use crate::error::Error;

/// The error for `run python train.py`; `None` where the arguments are not of that sort.
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
    // Options of our own behind the folder: what is wrong with them is another matter.
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

/// A word as a shell reads it.
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

    fn told(arguments: &[&str]) -> Option<String> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let error = misplaced_command(&arguments)?;
        Some(error.lines().last().unwrap().1.clone())
    }

    #[test]
    fn the_right_line_is_written() {
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
            let told = told(arguments).unwrap();
            assert!(told.contains(line), "{told}");
        }
        for arguments in [
            &["run", "--imgae", "x"][..],
            &["run", "/tmp", "--imgae", "x"],
            &["run", "a", "b", "--", "c"],
            &["runs", "a", "b"],
            &["run"],
            &[],
        ] {
            assert_eq!(told(arguments), None, "{arguments:?}");
        }
    }
}
