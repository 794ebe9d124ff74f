//! Refused words: what people read is in plain technical English, with the field's terms.

use std::{fs, path::Path, process::Command};

use super::source::tokens;
use crate::run::{Outcome, output};

/// The list of refused words.
const LIST: &str = "xtask/words.txt";

/// Files with others' text, or with the list itself.
const EXEMPT: &[&str] = &[LIST, "Cargo.lock", "go.sum", "package-lock.json"];

/// A word or phrase, in lower case, and what to write instead.
struct Rule {
    refused: Vec<String>,
    better: String,
}

/// A piece of text: a paragraph, a comment, a string, a name.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    /// Where it begins, counted from 1.
    line: usize,
    text: String,
}

/// Lists each refused word, with its sentence and a better word.
pub(super) fn check(root: &Path, refusals: &mut Vec<String>) -> Outcome {
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
        if EXEMPT.contains(&file) || EXEMPT.contains(&name) {
            continue;
        }
        // Pictures and archives have no words.
        let Ok(text) = fs::read_to_string(root.join(file)) else {
            continue;
        };
        for piece in pieces(file, &text) {
            for rule in &rules {
                if let Some(sentence) = piece.find(rule) {
                    refusals.push(format!(
                        "{file}:{}: {:?}: write {}: {sentence}",
                        piece.line,
                        rule.refused.join(" "),
                        rule.better
                    ));
                }
            }
        }
    }
    Ok(())
}

fn parse(list: &str) -> Outcome<Vec<Rule>> {
    let lines = list.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (refused, better) = line
                .split_once(": ")
                .ok_or_else(|| format!("{LIST}: {line:?} is not `refused: better`"))?;
            let refused = words(refused).map(str::to_lowercase).collect();
            let better = better.to_owned();
            Ok(Rule { refused, better })
        })
        .collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let inside = |char: char| char.is_alphanumeric() || char == '\'';
    text.split(move |char| !inside(char))
        .filter(|word| !word.is_empty())
}

impl Piece {
    /// The first sentence in which the refused words follow each other.
    fn find(&self, rule: &Rule) -> Option<String> {
        let sentences = self.text.split(". ");
        let mut found = sentences.filter(|sentence| {
            let words: Vec<_> = words(sentence).map(str::to_lowercase).collect();
            words
                .windows(rule.refused.len())
                .any(|here| here == rule.refused)
        });
        found.next().map(|sentence| sentence.trim().to_owned())
    }
}

/// What people read in a file.
fn pieces(file: &str, text: &str) -> Vec<Piece> {
    match file.rsplit('.').next() {
        Some("rs") => rust(text),
        Some("md") => markdown(text),
        _ => (text.lines().enumerate())
            .map(|(index, line)| Piece {
                line: index + 1,
                text: line.to_owned(),
            })
            .collect(),
    }
}

/// Comments, strings and names; comments that follow each other are one piece.
fn rust(text: &str) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::new();
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
                None => found.push(Piece {
                    line,
                    text: text.trim().to_owned(),
                }),
            }
            in_comment = true;
            continue;
        }
        in_comment = false;
        if token.is_identifier() {
            let text = apart(token.text);
            found.push(Piece { line, text });
        } else if token.is_string() {
            let text = token.text.replace("\\n", " ");
            found.push(Piece { line, text });
        }
    }
    found
}

/// The words of a name: `is_told` and `IsTold` are `is told`.
fn apart(name: &str) -> String {
    let mut text = String::new();
    for char in name.chars() {
        if char.is_uppercase() {
            text.push(' ');
        }
        text.push(if char == '_' { ' ' } else { char });
    }
    text
}

/// Paragraphs, without what stands between backticks and fences.
fn markdown(text: &str) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::new();
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
            None => found.push(Piece {
                line: index + 1,
                text: trimmed.to_owned(),
            }),
        }
        open = true;
    }
    for piece in &mut found {
        let outside = piece.text.split('`').step_by(2);
        piece.text = outside.collect::<Vec<_>>().join("`");
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn found(file: &str, text: &str) -> Vec<String> {
        let rules = parse("# words\nheard: received\ngoes on: continues\n").unwrap();
        let pieces = pieces(file, text);
        let of = |piece: &Piece| -> Vec<String> {
            rules.iter().filter_map(|rule| piece.find(rule)).collect()
        };
        pieces.iter().flat_map(of).collect()
    }

    #[test]
    fn comments_strings_and_names_are_read() {
        let source =
            "/// It goes\n/// on. Then more.\nfn was_heard() { say(\"Heard!\"); unheard() }";
        assert_eq!(
            found("a.rs", source),
            ["It goes on", "was heard", "\"Heard!\""]
        );
    }

    #[test]
    fn code_in_documents_is_not_read() {
        let text = "It `goes on` here.\nAll goes\non there.\n\n```sh\nheard\n```\n\nHeard.";
        assert_eq!(found("a.md", text), ["All goes on there.", "Heard."]);
    }

    #[test]
    fn other_files_are_read_by_line() {
        assert_eq!(found("a.py", "# heard\nx = 1\n"), ["# heard"]);
    }
}
