//! The program that is run when a followed run ends: a program and its arguments, which are not
//! passed to a shell.

use super::{Command, ConfigError, Text, command, values::invalid_at};

/// The program and its arguments, checked.
pub(super) fn words(given: &Command) -> Result<Vec<String>, ConfigError> {
    let words = match given {
        Command::Words(words) => words.clone(),
        Command::Line(program) => vec![program.as_str().into()],
    };
    if words
        .first()
        .is_none_or(|program| program.trim().is_empty())
    {
        let rule = "its first word is the program to run";
        return Err(invalid_at("notify", &Text::from(""), rule));
    }
    command::check_words("notify", &words)?;
    match (given, &words[..]) {
        (Command::Line(_), [program]) if program.contains(char::is_whitespace) => {
            let rule = "no shell reads it: write notify = [\"PROGRAM\", \"ARGUMENT\"] in longshore.toml, or use a script";
            Err(invalid_at("notify", program, rule))
        }
        _ => Ok(words.into_iter().map(Text::into_inner).collect()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_notification_is_a_program_with_arguments() {
        let line = |text: &str| Command::Line(text.to_owned());
        assert_eq!(words(&line("say")).unwrap(), ["say"]);
        let with_space = Command::Words(vec!["/my programs/say".into()]);
        assert_eq!(words(&with_space).unwrap(), ["/my programs/say"]);
        let list = Command::Words(vec!["say".into(), "run ended".into()]);
        assert_eq!(words(&list).unwrap(), ["say", "run ended"]);
        for (wrong, rule) in [
            (line(""), "first word"),
            (Command::Words(Vec::new()), "first word"),
            (line("say done"), "no shell"),
            (Command::Words(vec!["a".into(), "b\0".into()]), "NUL"),
        ] {
            let error = words(&wrong).unwrap_err().to_string();
            assert!(error.contains("notify") && error.contains(rule), "{error}");
        }
    }
}
