//! Errors of a configuration.

use std::{fmt, path::PathBuf};

use super::source::Source;

/// An invalid configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file exists but cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not TOML, or a value has the wrong type.
    #[error("{} is not valid: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The problem and its position.
        message: String,
    },
    /// An unknown key.
    #[error("{at}: unknown key `{key}`{} keys{place}: {valid}", nearest.as_ref().map_or_else(|| "; valid".to_owned(), |near| format!(", did you mean `{near}`? Valid")))]
    UnknownKey {
        /// The position of the key, such as `longshore.toml:3:1`.
        at: String,
        /// The key, with its tables.
        key: String,
        /// A description of the table.
        place: String,
        /// The closest valid key.
        nearest: Option<String>,
        /// All valid keys.
        valid: String,
    },
    /// A flag names a role that the file does not define.
    #[error("unknown role \"{role}\" in `--role {flag}`; known roles: {known}")]
    UnknownRole {
        /// The role.
        role: String,
        /// The flag's value.
        flag: String,
        /// The roles of the file.
        known: String,
    },
    /// An invalid value of a flag or key.
    #[error("{position}invalid {what} {value:?}: {rule}")]
    Value {
        /// The position of the value.
        position: Position,
        /// The flag or key.
        what: String,
        /// The value.
        value: String,
        /// The violated rule.
        rule: String,
    },
    /// The configuration contains no command.
    #[error("{}", no_command(role.as_deref()))]
    NoCommand {
        /// The role without a command. `None` if the configuration defines no roles.
        role: Option<String>,
    },
    /// An invalid line of an environment file. The error does not contain the value.
    #[error("{}:{line}: {problem}", path.display())]
    EnvFile {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The problem and the remedy.
        problem: String,
    },
    /// Outputs are files of the folder of the code.
    #[error(
        "outputs: without the folder of the code, tasks have no folder whose files can be kept: remove `--no-code` (`code = false`), or the patterns of outputs"
    )]
    OutputsWithoutCode,
    /// The combinations of a sweep are invalid.
    #[error("invalid sweep: {problem}")]
    Sweep {
        /// The problem and the remedy.
        problem: String,
    },
    /// The run cannot receive standard input.
    #[error("{flag} sends the standard input to one task{problem}")]
    Input {
        /// The flag.
        flag: &'static str,
        /// The reason, and the remedy.
        problem: String,
    },
}

fn no_command(role: Option<&str>) -> String {
    match role {
        Some(role) => format!(
            "no command for role {role:?}: give one after `--`, or set `command` in longshore.toml"
        ),
        None => "no command: give one after `--`, as in `longshore run -- python train.py`, or set `command` in longshore.toml".to_owned(),
    }
}

/// The position of an invalid value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Position {
    /// The value is not in a file.
    #[default]
    None,
    /// An offset in the text of `longshore.toml`, in bytes.
    Offset(usize),
    /// Path, line and column, as in `longshore.toml:3:9`.
    File(String),
}

impl fmt::Display for Position {
    /// The beginning of an error message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(position) => write!(f, "{position}: "),
            Self::None | Self::Offset(_) => Ok(()),
        }
    }
}

impl ConfigError {
    /// Replaces an offset in `source` with path, line and column.
    pub(super) fn in_file(mut self, source: Option<&Source>) -> Self {
        if let Self::Value { position, .. } = &mut self
            && let (Position::Offset(offset), Some(source)) = (&position, source)
        {
            *position = Position::File(source.at(*offset));
        }
        self
    }
}

#[cfg(test)]
mod tests;
