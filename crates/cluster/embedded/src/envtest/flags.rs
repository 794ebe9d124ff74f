//! Flags in the forms of Kubernetes' programs: `--name=value`, `--name value`, `--name`.

use std::collections::BTreeMap;

use super::EnvtestError;

/// The flags of a command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    /// The values of each flag, in order.
    values: BTreeMap<String, Vec<String>>,
    /// True if the help was requested.
    pub(super) help: bool,
}

impl Flags {
    /// Reads flags. A flag without a value has the value `true`.
    pub(super) fn read(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut flags = Self::default();
        let mut arguments = arguments.into_iter().peekable();
        while let Some(word) = arguments.next() {
            let name = word.trim_start_matches('-');
            if matches!(word.as_str(), "-h" | "--help") {
                flags.help = true;
                continue;
            }
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => {
                    let value =
                        arguments.next_if(|next| word.starts_with('-') && !next.starts_with('-'));
                    (name, value.unwrap_or_else(|| "true".to_owned()))
                }
            };
            flags.values.entry(name.to_owned()).or_default().push(value);
        }
        flags
    }

    /// Removes a flag and returns its last value.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        self.values.remove(name)?.pop()
    }

    /// Like [`Flags::take`], parsed.
    pub(super) fn parse<T>(&mut self, name: &'static str) -> Result<Option<T>, EnvtestError>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        match value.parse() {
            Ok(parsed) => Ok(Some(parsed)),
            Err(error) => Err(EnvtestError::Flag {
                name,
                value,
                problem: error.to_string(),
            }),
        }
    }

    /// The names of the flags that are left.
    pub(super) fn names(&self) -> Vec<String> {
        self.values.keys().map(|name| format!("--{name}")).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn read(words: &[&str]) -> Flags {
        Flags::read(words.iter().map(|&word| word.to_owned()))
    }

    #[test]
    fn values_follow_an_equals_sign_or_a_space() {
        let mut flags = read(&["--a=1", "--b", "2", "--c", "--a=3=4", "-v", "5"]);
        assert_eq!(flags.names(), ["--a", "--b", "--c", "--v"]);
        assert_eq!(flags.take("a").as_deref(), Some("3=4"));
        assert_eq!(flags.parse::<u16>("b").unwrap(), Some(2));
        assert_eq!(flags.take("c").as_deref(), Some("true"));
        assert_eq!(flags.take("v").as_deref(), Some("5"));
        assert_eq!(flags, Flags::default());
    }

    #[test]
    fn an_invalid_value_is_named() {
        let error = read(&["--secure-port=x"]).parse::<u16>("secure-port");
        let error = error.unwrap_err().to_string();
        assert_eq!(
            error,
            "invalid value \"x\" of --secure-port: invalid digit found in string"
        );
    }

    proptest! {
        #[test]
        fn any_words_are_read(words: Vec<String>) {
            Flags::read(words);
        }
    }
}
