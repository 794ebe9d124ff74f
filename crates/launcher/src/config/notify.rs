//! The program that is run when a followed run ends.

use serde::Deserialize;

use super::{ConfigError, Text, values::invalid_at};

/// A program and its arguments: no shell reads them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    expecting = "a program, or a list of a program and its arguments"
)]
pub enum Notify {
    /// A program.
    Program(Text),
    /// A program and its arguments.
    Words(Vec<Text>),
}

impl Notify {
    /// A program without arguments.
    #[must_use]
    pub fn program(text: &str) -> Self {
        Self::Program(text.into())
    }

    /// The program and its arguments, checked.
    pub(super) fn words(&self) -> Result<Vec<String>, ConfigError> {
        let words = match self {
            Self::Program(program) => std::slice::from_ref(program),
            Self::Words(words) => words,
        };
        let Some(program) = words.first().filter(|program| !program.trim().is_empty()) else {
            let rule = "its first word is the program to run";
            return Err(invalid_at("notify", &Text::from(""), rule));
        };
        if let Some(word) = words.iter().find(|word| word.contains('\0')) {
            let rule = "it contains a NUL character, which no argument can hold";
            let shown = word.replaced(word.replace('\0', "\u{fffd}"));
            return Err(invalid_at("notify", &shown, rule));
        }
        if words.len() == 1 && program.contains(char::is_whitespace) {
            let rule = "no shell reads it: write notify = [\"PROGRAM\", \"ARGUMENT\"] in longshore.toml, or a script";
            return Err(invalid_at("notify", program, rule));
        }
        Ok(words.iter().map(|word| word.to_string()).collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_notification_is_a_program_with_arguments() {
        assert_eq!(Notify::program("say").words().unwrap(), ["say"]);
        let words = Notify::Words(vec!["say".into(), "run ended".into()]);
        assert_eq!(words.words().unwrap(), ["say", "run ended"]);
        for (wrong, rule) in [
            (Notify::program(""), "first word"),
            (Notify::Words(Vec::new()), "first word"),
            (Notify::program("say done"), "no shell"),
            (Notify::Words(vec!["a".into(), "b\0".into()]), "NUL"),
        ] {
            let error = wrong.words().unwrap_err().to_string();
            assert!(error.contains("notify") && error.contains(rule), "{error}");
        }
    }
}
