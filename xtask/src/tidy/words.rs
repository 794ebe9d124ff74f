//! Finds words and phrases that this project does not use, in code and documents.

use std::{collections::HashMap, fs, path::Path, process::Command};

use super::source::tokens;
use crate::run::{Outcome, output};

/// The list of these words, with their replacements.
const LIST: &str = "xtask/words.txt";

/// Files with generated text, and the list itself.
const EXEMPT: &[&str] = &[LIST, "Cargo.lock", "go.sum", "package-lock.json"];

/// A word or phrase to avoid, in lower case, and its replacement.
struct Rule {
    avoid: Vec<String>,
    replacement: String,
}

/// The list.
struct Rules {
    /// By the first word to avoid.
    rules: HashMap<String, Vec<Rule>>,
    /// Text that may contain words to avoid, such as the name of a Unix user.
    permitted: Vec<String>,
}

/// Starts a line with permitted text.
const PERMITTED: char = '+';

/// A paragraph, comment, string or name.
#[derive(Debug, PartialEq, Eq)]
struct Passage {
    /// The number of the passage's first line in the file, from 1.
    line: usize,
    text: String,
}

/// Reports each word or phrase to avoid, with its sentence and its replacement.
pub(super) fn check(root: &Path, problems: &mut Vec<String>) -> Outcome {
    let list = fs::read_to_string(root.join(LIST)).map_err(|error| format!("{LIST}: {error}"))?;
    let rules = parse(&list)?;
    let files = output(Command::new("git").current_dir(root).args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    for file in files.lines() {
        let name = file.rsplit('/').next().unwrap_or(file);
        // Snapshots record the program's output, which is checked where it is written.
        let is_snapshot = name.ends_with(".snap");
        if is_snapshot || EXEMPT.contains(&file) || EXEMPT.contains(&name) {
            continue;
        }
        // Skips binary files.
        let Ok(text) = fs::read_to_string(root.join(file)) else {
            continue;
        };
        for passage in passages(file, &rules.without_permitted(&text)) {
            for (sentence, rule) in passage.find(&rules) {
                problems.push(format!(
                    "{file}:{}: {:?}: write {}: {sentence}",
                    passage.line,
                    rule.avoid.join(" "),
                    rule.replacement
                ));
            }
        }
    }
    Ok(())
}

fn parse(list: &str) -> Outcome<Rules> {
    let lines = list.lines().map(str::trim);
    let (permitted, rules): (Vec<_>, Vec<_>) = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .partition(|line| line.starts_with(PERMITTED));
    let permitted = permitted.into_iter();
    let permitted = permitted.filter_map(|line| line.strip_prefix(PERMITTED));
    let permitted = permitted.map(|text| text.trim().to_owned()).collect();
    let mut by_word: HashMap<String, Vec<Rule>> = HashMap::new();
    for line in rules {
        let malformed = || format!("{LIST}: {line:?} is not `avoid: replacement`");
        let (avoid, replacement) = line.split_once(": ").ok_or_else(malformed)?;
        let avoid: Vec<_> = words(avoid).map(str::to_lowercase).collect();
        let first = avoid.first().ok_or_else(malformed)?.clone();
        let replacement = replacement.to_owned();
        let same = by_word.entry(first).or_default();
        same.push(Rule { avoid, replacement });
    }
    let rules = by_word;
    Ok(Rules { rules, permitted })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let inside = |char: char| char.is_alphanumeric() || char == '\'';
    text.split(move |char| !inside(char))
        .filter(|word| !word.is_empty())
}

impl Rules {
    fn without_permitted(&self, text: &str) -> String {
        let permitted = self.permitted.iter();
        permitted.fold(text.to_owned(), |text, permitted| {
            text.replace(permitted, "")
        })
    }
}

impl Passage {
    /// The sentences that contain a word or phrase to avoid.
    fn find<'a>(&'a self, rules: &'a Rules) -> impl Iterator<Item = (&'a str, &'a Rule)> {
        self.text.split(". ").flat_map(|sentence| {
            let words: Vec<_> = words(sentence).map(str::to_lowercase).collect();
            let found: Vec<_> = (0..words.len())
                .filter_map(|start| words.get(start..))
                .flat_map(|rest| {
                    let same = rest.first().and_then(|first| rules.rules.get(first));
                    let same = same.into_iter().flatten();
                    same.filter(|rule| rest.starts_with(&rule.avoid))
                })
                .collect();
            found.into_iter().map(|rule| (sentence.trim(), rule))
        })
    }
}

/// The passages of a file.
fn passages(file: &str, text: &str) -> Vec<Passage> {
    match file.rsplit('.').next() {
        Some("rs") => rust(text),
        Some("md") => markdown(text),
        _ => (text.lines().enumerate())
            .map(|(index, line)| Passage {
                line: index + 1,
                text: line.to_owned(),
            })
            .collect(),
    }
}

/// Comments, strings and names. Adjacent comments are one passage.
fn rust(text: &str) -> Vec<Passage> {
    let mut found: Vec<Passage> = Vec::new();
    let mut in_comment = false;
    for token in tokens(text) {
        let line = token.line;
        if token.is_comment() {
            let text = token.text.trim_start_matches(['/', '!', '*']);
            match found.last_mut().filter(|_| in_comment) {
                Some(before) => {
                    before.text.push(' ');
                    before.text += text.trim();
                }
                None => found.push(Passage {
                    line,
                    text: text.trim().to_owned(),
                }),
            }
            in_comment = true;
            continue;
        }
        in_comment = false;
        if token.is_identifier() {
            let text = split_name(token.text);
            found.push(Passage { line, text });
        } else if token.is_string() {
            let text = token.text.replace("\\n", " ");
            found.push(Passage { line, text });
        }
    }
    found
}

/// Separates the words of a name: `is_heard` and `IsHeard` become `is heard`.
fn split_name(name: &str) -> String {
    let mut text = String::new();
    let mut before = '_';
    for char in name.chars() {
        if char.is_uppercase() && before.is_lowercase() {
            text.push(' ');
        }
        text.push(if char == '_' { ' ' } else { char });
        before = char;
    }
    text
}

/// Paragraphs, without code spans and code blocks.
fn markdown(text: &str) -> Vec<Passage> {
    let mut found: Vec<Passage> = Vec::new();
    let (mut fenced, mut open) = (false, false);
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            (fenced, open) = (!fenced, false);
            continue;
        }
        if fenced || trimmed.is_empty() {
            open = false;
            continue;
        }
        match found.last_mut().filter(|_| open) {
            Some(before) => {
                before.text.push(' ');
                before.text += trimmed;
            }
            None => found.push(Passage {
                line: index + 1,
                text: trimmed.to_owned(),
            }),
        }
        open = true;
    }
    for passage in &mut found {
        let outside = passage.text.split('`').step_by(2);
        passage.text = outside.collect::<Vec<_>>().join("`");
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn found(file: &str, text: &str) -> Vec<String> {
        let list = "# words\nheard: received\ngoes on: continues\n+ heard:x:\n";
        let rules = parse(list).unwrap();
        let passages = passages(file, &rules.without_permitted(text));
        let find = |passage: &Passage| -> Vec<String> {
            let found = passage.find(&rules);
            found.map(|(sentence, _)| sentence.to_owned()).collect()
        };
        passages.iter().flat_map(find).collect()
    }

    #[test]
    fn comments_strings_and_names_are_checked() {
        let source =
            "/// It goes\n/// on. Then more.\nfn was_heard() { say(\"Heard!\"); overheard() }";
        assert_eq!(
            found("a.rs", source),
            ["It goes on", "was heard", "\"Heard!\""]
        );
    }

    #[test]
    fn code_in_documents_is_ignored() {
        let text = "It `goes on` here.\nAll goes\non there.\n\n```sh\nheard\n```\n\nHeard.";
        assert_eq!(found("a.md", text), ["All goes on there.", "Heard."]);
    }

    #[test]
    fn other_files_are_checked_by_line() {
        assert_eq!(found("a.py", "# heard\nx = 1\n"), ["# heard"]);
    }

    #[test]
    fn permitted_text_is_ignored() {
        assert_eq!(found("passwd", "heard:x:1\nheard x\n"), ["heard x"]);
    }
}
