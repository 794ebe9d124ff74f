//! Counts phrases in comments that the documentation of Kubernetes and Rust hardly has.

use std::{fs, path::Path};

use crate::run::Outcome;

/// A phrase, how to write instead, and the most places with it. The numbers only fall: lower them
/// when you rewrite comments.
struct Phrase {
    name: &'static str,
    instead: &'static str,
    is_in: fn(&str) -> bool,
    most: usize,
}

const PHRASES: &[Phrase] = &[
    Phrase {
        name: "that of, those of",
        instead: "name the noun again",
        is_in: |sentence| {
            let sentence = format!(" {} ", sentence.to_lowercase());
            sentence.contains(" that of ") || sentence.contains(" those of ")
        },
        most: 21,
    },
    Phrase {
        name: "a sentence that begins with What",
        instead: "begin with the noun",
        is_in: |sentence| sentence.starts_with("What ") && !sentence.ends_with('?'),
        most: 7,
    },
    Phrase {
        name: "a sentence that begins with Whether",
        instead: "write \"Returns true if\" or \"True if\"",
        is_in: |sentence| sentence.starts_with("Whether "),
        most: 2,
    },
    Phrase {
        name: "As [`X`], As there, See there",
        instead: "say what it is, or \"Like [`X`], but\"",
        is_in: |sentence| {
            ["As [`", "As there", "See there"]
                .iter()
                .any(|start| sentence.starts_with(start))
        },
        most: 0,
    },
];

/// Reports phrases of which there are more than before, with their places.
pub(super) fn check(root: &Path, problems: &mut Vec<String>) -> Outcome {
    let files = super::layout::rust_files(root)?;
    let mut places: Vec<Vec<String>> = PHRASES.iter().map(|_| Vec::new()).collect();
    for file in files.lines() {
        // Deleted files are still in the index.
        let Ok(text) = fs::read_to_string(root.join(file)) else {
            continue;
        };
        for (line, sentence) in sentences(&text) {
            for (phrase, places) in PHRASES.iter().zip(&mut places) {
                if (phrase.is_in)(&sentence) {
                    places.push(format!("{file}:{line}: {sentence}"));
                }
            }
        }
    }
    for (phrase, places) in PHRASES.iter().zip(places) {
        if places.len() > phrase.most {
            problems.push(format!(
                "comments have {} places with {}, and may have {}: {}\n  {}",
                places.len(),
                phrase.name,
                phrase.most,
                phrase.instead,
                places.join("\n  ")
            ));
        }
    }
    Ok(())
}

/// The sentences of all comments, with the numbers of their first lines.
fn sentences(text: &str) -> Vec<(usize, String)> {
    let mut all = Vec::new();
    let mut current: Option<(usize, String)> = None;
    for (line, text) in (1..).zip(text.lines()) {
        let Some(comment) = comment(text) else {
            all.extend(current.take());
            continue;
        };
        for (place, part) in comment.split_inclusive(". ").enumerate() {
            if place > 0 || part.is_empty() {
                all.extend(current.take());
            }
            let (_, sentence) = current.get_or_insert_with(|| (line, String::new()));
            if !sentence.is_empty() {
                sentence.push(' ');
            }
            sentence.push_str(part.trim());
        }
        if comment.is_empty() || comment.ends_with(['.', ':']) {
            all.extend(current.take());
        }
    }
    all.extend(current);
    all
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.strip_prefix(['/', '!']).unwrap_or(text).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_continue_over_lines_and_end_with_comments() {
        let text = "//! One is\n//! here. Two.\n\nfn f() {}\n    // Three\nlet x = \"// none\";\n";
        let expected = [(1, "One is here."), (2, "Two."), (5, "Three")];
        let expected = expected.map(|(line, sentence)| (line, sentence.to_owned()));
        assert_eq!(sentences(text), expected);
    }

    #[test]
    fn phrases_are_recognized() {
        let found = |sentence: &str| -> Vec<&str> {
            let phrases = PHRASES.iter().filter(|phrase| (phrase.is_in)(sentence));
            phrases.map(|phrase| phrase.name).collect()
        };
        for (sentence, count) in [
            ("The limits are those of the pod.", 1),
            ("What the pod uses.", 1),
            ("What is it?", 0),
            ("Whether it runs.", 1),
            ("As [`Pod`].", 1),
            ("Returns true if it runs, as in Kubernetes.", 0),
        ] {
            assert_eq!(found(sentence).len(), count, "{sentence}");
        }
    }
}
