//! Commands as written, and their checks.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor, value::SeqAccessDeserializer},
};

use super::{ConfigError, Text, values::invalid_at};

/// A command: a list of strings, or one string that a shell reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Program and arguments.
    Words(Vec<Text>),
    /// A command line for `sh -c`.
    Line(String),
}

impl Command {
    /// The program and its arguments.
    #[must_use]
    pub fn words(&self) -> Vec<Text> {
        match self {
            Self::Words(words) => words.clone(),
            Self::Line(line) if line.trim().is_empty() => Vec::new(),
            Self::Line(line) => vec!["sh".into(), "-c".into(), line.clone().into()],
        }
    }
}

/// Checks that a process can be started with the command.
pub(super) fn check(command: &[Text]) -> Result<(), ConfigError> {
    check_words("command", command)
}

/// Like [`check`], but for a command with another name.
pub(super) fn check_words(what: &'static str, command: &[Text]) -> Result<(), ConfigError> {
    if let Some(program) = command.first().filter(|program| program.is_empty()) {
        let rule = "its first word is the program to run";
        return Err(invalid_at(what, program, rule));
    }
    match command.iter().find(|word| word.contains('\0')) {
        Some(word) => {
            let shown = word.replaced(word.replace('\0', "\u{fffd}"));
            let rule = "it contains a NUL character, which no argument can hold";
            Err(invalid_at(what, &shown, rule))
        }
        None => Ok(()),
    }
}

impl<'de> Deserialize<'de> for Command {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CommandVisitor)
    }
}

/// Unlike serde's untagged enums, this visitor keeps the positions of the words.
struct CommandVisitor;

impl<'de> Visitor<'de> for CommandVisitor {
    type Value = Command;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of strings, or one string")
    }

    fn visit_str<E: Error>(self, line: &str) -> Result<Command, E> {
        Ok(Command::Line(line.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<Command, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(words)).map(Command::Words)
    }
}
