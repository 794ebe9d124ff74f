//! Every public function of the client is shown by an example that runs: its
//! own, its type's, or one of the guide.

use std::{collections::BTreeMap, fs, path::Path};

use crate::run::Outcome;

/// Where the functions are, and where besides their own docs they are shown.
const CRATE: &str = "crates/client/src";
const GUIDE: &str = "docs/client.md";
/// What no test can do, for it is the machine's: its kubeconfig, its ports.
const ELSEWHERE: &[&str] = &["connect"];

/// Names each function that no example calls.
pub(super) fn check(root: &Path, refusals: &mut Vec<String>) -> Outcome {
    let mut found = Found::default();
    found.folder(&root.join(CRATE))?;
    let guide = fs::read_to_string(root.join(GUIDE));
    found.shown_by(&guide.map_err(|error| format!("{GUIDE}: {error}"))?, "");
    if found.shown.contains("async fn example(") {
        let problem = "an example of the client is only compiled: let it run";
        refusals.push(problem.to_owned());
    }
    for (name, place) in found.functions {
        if !ELSEWHERE.contains(&&*name) && !calls(&found.shown, &name) {
            refusals.push(format!(
                "{place}: no example that runs shows {name}(): write one where people look for it"
            ));
        }
    }
    Ok(())
}

#[derive(Default)]
struct Found {
    /// Public functions, and where one of that name is.
    functions: BTreeMap<String, String>,
    /// The code of all examples that run.
    shown: String,
}

impl Found {
    fn folder(&mut self, folder: &Path) -> Outcome {
        for path in super::files(folder) {
            if path.is_dir() {
                self.folder(&path)?;
            } else if super::is_rust(&path) {
                let text = fs::read_to_string(&path)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                self.functions_of(code, &path);
                self.shown_by(code, "//");
            }
        }
        Ok(())
    }

    fn functions_of(&mut self, code: &str, path: &Path) {
        for line in code.lines() {
            let line = line.trim_start().strip_prefix("pub ").unwrap_or_default();
            let line = line
                .trim_start_matches("async ")
                .trim_start_matches("const ");
            let Some(rest) = line.strip_prefix("fn ") else {
                continue;
            };
            let end = rest.find(|sign: char| !sign.is_alphanumeric() && sign != '_');
            let name = rest[..end.unwrap_or(rest.len())].to_owned();
            // Macros make functions whose names are given elsewhere.
            if !name.is_empty() {
                self.functions.insert(name, path.display().to_string());
            }
        }
    }

    /// Takes the blocks of code in comments that begin with `mark`.
    fn shown_by(&mut self, text: &str, mark: &str) {
        let mut inside = None;
        for line in text.lines() {
            let Some(line) = line.trim_start().strip_prefix(mark) else {
                inside = None;
                continue;
            };
            let line = line.trim_start_matches(['/', '!']).trim_start();
            match (line.strip_prefix("```"), inside) {
                (Some(kind), None) => {
                    inside = Some(matches!(kind, "" | "rust"));
                }
                (Some(_), Some(_)) => inside = None,
                (None, Some(true)) => {
                    self.shown.push_str(line);
                    self.shown.push('\n');
                }
                (None, _) => {}
            }
        }
    }
}

fn calls(shown: &str, name: &str) -> bool {
    shown.match_indices(name).any(|(at, _)| {
        let before = shown[..at].chars().next_back();
        let after = &shown[at + name.len()..];
        let begins = before.is_some_and(|sign| sign == '.' || sign == ':');
        begins && (after.starts_with('(') || after.starts_with("::<") || after.starts_with(')'))
    })
}
