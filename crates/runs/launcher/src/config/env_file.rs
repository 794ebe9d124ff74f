//! Environment files, in the format of `docker run --env-file`, and variables that are
//! passed through by name.
//!
//! - `NAME=VALUE` sets a variable. Everything after the first `=` is the value, including
//!   quotes, `#`, `$` and trailing blanks.
//! - `NAME` alone passes through the variable of the invoking shell, and is ignored if the caller
//!   has no such variable.
//! - Blank lines and lines whose first character is `#` are ignored, as are blanks before a
//!   name. Lines end with LF or CR LF.

use std::path::Path;

use super::{ConfigError, values::invalid};

/// The maximum file size in bytes: the values are stored in a Secret, which cannot be larger.
const LARGEST_FILE: u64 = 1024 * 1024;

/// The variables of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvFile {
    /// Names and values, in the order of the file.
    pub variables: Vec<(String, String)>,
    /// Names whose values begin and end with a quotation mark, which is part of them.
    pub quoted: Vec<String>,
}

impl EnvFile {
    /// Reads a file. `variable` returns the variables of the invoking shell.
    ///
    /// # Errors
    /// [`ConfigError::Read`] and [`ConfigError::EnvFile`], which contains the line number, but
    /// never a value.
    pub fn load(
        path: &Path,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let read = |source| ConfigError::Read {
            path: path.to_owned(),
            source,
        };
        let content = longshore_files::read_limited(path, LARGEST_FILE).map_err(read)?;
        Self::parse(&content, path, variable)
    }

    /// Parses the content of a file. Errors contain `path`.
    ///
    /// # Errors
    /// The same as [`EnvFile::load`].
    pub fn parse(
        content: &[u8],
        path: &Path,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        let mut file = Self::default();
        for (number, line) in (1..).zip(content.split(|&byte| byte == b'\n')) {
            let refuse = |problem: &str| ConfigError::EnvFile {
                path: path.to_owned(),
                line: number,
                problem: problem.to_owned(),
            };
            let line = std::str::from_utf8(line).map_err(|_| refuse("it is not UTF-8 text"))?;
            let line = line.strip_suffix('\r').unwrap_or(line).trim_start();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, value) = match line.split_once('=') {
                Some(("", _)) => return Err(refuse("there is no name before `=`")),
                Some((name, _)) if name.contains(char::is_whitespace) => {
                    return Err(refuse(
                        "the name before `=` contains blanks: write NAME=VALUE, without `export`",
                    ));
                }
                Some((name, value)) => (name, value.to_owned()),
                None => match line.trim_end() {
                    words if words.contains(char::is_whitespace) => {
                        return Err(refuse("write NAME=VALUE, or the NAME of a variable alone"));
                    }
                    name => match variable(name) {
                        Some(value) => (name, value),
                        None => continue,
                    },
                },
            };
            if value.contains('\0') {
                return Err(refuse("the value contains a NUL character"));
            }
            if is_quoted(&value) {
                file.quoted.push(name.to_owned());
            }
            file.variables.push((name.to_owned(), value));
        }
        Ok(file)
    }
}

fn is_quoted(value: &str) -> bool {
    let value = value.trim_end();
    ['"', '\'']
        .iter()
        .any(|&quote| value.len() > 1 && value.starts_with(quote) && value.ends_with(quote))
}

/// Adds the value of the invoking shell's variable to each `--env` flag without a value.
///
/// # Errors
/// The shell does not have the variable.
pub fn pass_through(
    flags: &[String],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Vec<String>, ConfigError> {
    let complete = |flag: &String| match flag.contains('=') {
        true => Ok(flag.clone()),
        false => match variable(flag) {
            Some(value) => Ok(format!("{flag}={value}")),
            None => {
                let rule = "no variable of that name is set here, or it is not UTF-8: set it, or write NAME=VALUE";
                Err(invalid("--env", flag, rule))
            }
        },
    };
    flags.iter().map(complete).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn parse(content: &[u8]) -> Result<EnvFile, ConfigError> {
        let variable = |name: &str| (name == "HERE").then(|| "of the caller".to_owned());
        EnvFile::parse(content, Path::new("a.env"), variable)
    }

    #[test]
    fn the_format_is_dockers() {
        let content = b"\xef\xbb\xbf# comment\n\nA=1\n  B = 2 # no comment \r\nC=\nD=a=b\nHERE\nAWAY\nQ=\"x y\"\nHERE  ";
        let error = parse(content).unwrap_err().to_string();
        assert_eq!(
            error,
            "a.env:4: the name before `=` contains blanks: write NAME=VALUE, without `export`"
        );
        let content = b"\xef\xbb\xbf# comment\n\nA=1\n  B= 2 # no comment \r\nC=\nD=a=b\nHERE\nAWAY\nQ=\"x y\"\nHERE  ";
        let file = parse(content).unwrap();
        let pairs: Vec<(&str, &str)> = file
            .variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("A", "1"),
                ("B", " 2 # no comment "),
                ("C", ""),
                ("D", "a=b"),
                ("HERE", "of the caller"),
                ("Q", "\"x y\""),
                ("HERE", "of the caller"),
            ]
        );
        assert_eq!(file.quoted, ["Q"]);
    }

    #[test]
    fn errors_name_the_line_but_not_the_value() {
        for (content, problem) in [
            (&b"A=1\n=hush"[..], "a.env:2: there is no name before `=`"),
            (
                b"export A=hush",
                "a.env:1: the name before `=` contains blanks",
            ),
            (b"A=1\n\nhush hush", "a.env:3: write NAME=VALUE"),
            (b"A=hush\xff", "a.env:1: it is not UTF-8 text"),
            (b"A=hush\0", "a.env:1: the value contains a NUL"),
        ] {
            let error = parse(content).unwrap_err().to_string();
            assert!(error.starts_with(problem), "{error}");
            assert!(!error.contains("hush"), "{error}");
        }
        let error = EnvFile::load(Path::new("/"), |_| None).unwrap_err();
        assert!(error.to_string().starts_with("cannot read /: "), "{error}");
        let error = EnvFile::load(Path::new("/dev/zero"), |_| None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read /dev/zero: it is larger than 1048576 bytes"
        );
    }

    #[test]
    fn names_alone_are_passed_through() {
        let variable = |name: &str| (name == "A").then(|| "1=2".to_owned());
        let flags = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let passed = pass_through(&flags(&["A", "B=3", "C="]), variable).unwrap();
        assert_eq!(passed, ["A=1=2", "B=3", "C="]);
        let error = pass_through(&flags(&["NO"]), variable).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("invalid --env \"NO\": no variable of that name")
        );
    }

    proptest! {
        #[test]
        fn values_arrive_as_they_are(value in "[^\n\r\0]{0,40}") {
            let file = parse(format!("NAME={value}\n").as_bytes()).unwrap();
            prop_assert_eq!(&file.variables, &[("NAME".to_owned(), value)]);
        }

        #[test]
        fn no_content_panics(content in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse(&content);
        }
    }
}
