//! Checks that an example calls every public function of the client: in its own docs, in those
//! of another item of the crate, or in the guide. The example must run as a test.

use std::{collections::BTreeMap, fs, path::Path};

use crate::run::Outcome;

/// The sources of the client.
const CRATE: &str = "crates/client/client/src";
/// The guide to the client.
const GUIDE: &str = "docs/client.md";
/// Functions that an example cannot call, as they depend on the machine's kubeconfig.
const WITHOUT_EXAMPLE: &[&str] = &["connect"];

/// Reports each function that no example calls.
pub(super) fn check(root: &Path, problems: &mut Vec<String>) -> Outcome {
    let mut found = Found::default();
    found.folder(&root.join(CRATE))?;
    let guide = fs::read_to_string(root.join(GUIDE));
    found.shown_by(&guide.map_err(|error| format!("{GUIDE}: {error}"))?, "");
    if found.shown.contains("async fn example(") {
        let problem =
            "an example of the client is compiled but does not run: remove `async fn example(`";
        problems.push(problem.to_owned());
    }
    for (name, file) in found.functions {
        if !WITHOUT_EXAMPLE.contains(&&*name) && !calls(&found.shown, &name) {
            problems.push(format!(
                "{file}: no example calls {name}(): add one to its docs or to docs/client.md"
            ));
        }
    }
    Ok(())
}

#[derive(Default)]
struct Found {
    /// Names of public functions, each with a file that defines it.
    functions: BTreeMap<String, String>,
    /// The code of all examples.
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
            // In a macro, the name is a macro variable.
            if !name.is_empty() {
                self.functions.insert(name, path.display().to_string());
            }
        }
    }

    /// Collects the code blocks in lines that start with `mark`.
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
