//! Parses an incomplete command line for completion. Pure.

use std::collections::BTreeMap;

/// The classified words of a command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// The command.
    pub(crate) verb: Option<String>,
    /// Options with a value, by long name.
    pub(crate) options: BTreeMap<String, String>,
    /// Options without a value, by long name.
    pub(crate) flags: Vec<String>,
    /// The other words.
    pub(crate) words: Vec<String>,
}

impl Line {
    /// Parses the words after the program's name.
    pub(crate) fn read(program: &clap::Command, words: &[String]) -> Self {
        let mut line = Self::default();
        let mut verb: Option<&clap::Command> = None;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                break;
            }
            let Some(option) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
                if verb.is_none() {
                    verb = program.find_subcommand(word);
                    line.verb = Some(word.clone());
                } else {
                    line.words.push(word.clone());
                }
                continue;
            };
            let (name, value) = match option.strip_prefix('-') {
                Some(long) => match long.split_once('=') {
                    Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                    None => (long.to_owned(), None),
                },
                // `-n team` or `-nteam`.
                None => {
                    let mut letters = option.chars();
                    let short = letters.next();
                    let rest = letters.as_str();
                    let arg = verb
                        .and_then(|verb| verb.get_arguments().find(|arg| arg.get_short() == short));
                    let name = arg.and_then(clap::Arg::get_long).unwrap_or(option);
                    let value = (!rest.is_empty()).then(|| rest.to_owned());
                    (name.to_owned(), value)
                }
            };
            let takes_value = verb.is_some_and(|verb| {
                let mut all = verb.get_arguments();
                let arg = all.find(|arg| arg.get_long() == Some(name.as_str()));
                arg.is_some_and(|arg| arg.get_action().takes_values())
            });
            match (takes_value, value) {
                (true, Some(value)) => {
                    line.options.insert(name, value);
                }
                (true, None) => {
                    if let Some(value) = words.next() {
                        line.options.insert(name, value.clone());
                    }
                }
                (false, _) => line.flags.push(name),
            }
        }
        line
    }

    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    pub(crate) fn has_flag(&self, name: &str) -> bool {
        self.flags.iter().any(|flag| flag == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_classified() {
        let program = crate::app::description();
        let read = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            Line::read(&program, &words)
        };
        let line = read("get pods web -n team --context=x -A -l a=b we");
        assert_eq!(line.verb.as_deref(), Some("get"));
        assert_eq!(line.words, ["pods", "web", "we"]);
        assert_eq!(line.option("namespace"), Some("team"));
        assert_eq!(line.option("context"), Some("x"));
        assert_eq!(line.option("selector"), Some("a=b"));
        assert!(line.has_flag("all-namespaces"));
        assert_eq!(read("logs -nteam").option("namespace"), Some("team"));
        assert_eq!(read("exec a -- --context y").option("context"), None);
        assert_eq!(
            read("get --namespace"),
            Line {
                verb: Some("get".to_owned()),
                ..Line::default()
            }
        );
        assert_eq!(read("nothing -x --y").flags, ["x", "y"]);
    }
}
