//! Missing files and modules that were excluded when the folder of the code was packed.

use longshore_model::facts::PodFacts;

use super::{Cause, Explanation, text::has_any};
use crate::names;

/// Extends the explanation of a command that ended, if the last line of its log names a file or a
/// module that was excluded from the code.
pub(super) fn extend(pod: &PodFacts, found: Explanation, said: &str) -> Explanation {
    let words = [
        "no such file",
        "no module named",
        "not found",
        "cannot open",
        "cannot find",
        "does not exist",
    ];
    let kinds = [Cause::ExitCode, Cause::CommandNotFound];
    if !kinds.contains(&found.kind) || !has_any(said, &words) {
        return found;
    }
    let list = pod.metadata.annotations.get(names::EXCLUDED);
    let list = list.and_then(|list| serde_json::from_str::<Vec<String>>(list).ok());
    let list = list.unwrap_or_default();
    let mut named = paths(said);
    let entry = named.find_map(|path| list.iter().find(|entry| covers(entry, &path)));
    if let Some(entry) = entry {
        let plain = entry.trim_end_matches('/');
        return Explanation {
            remedy: format!(
                "{entry:?} was excluded when the folder was packed: pass it with `--data {plain}`, or include it with a line `!{entry}` in .longshoreignore"
            ),
            ..found
        };
    }
    let environment = list.iter().find(|entry| entry.contains("venv"));
    let caller = pod.metadata.annotations.get(names::CALLER);
    let is_used = caller.is_some_and(|caller| caller.contains("\"VIRTUAL_ENV\""));
    match environment {
        Some(environment) if has_any(said, &["no module named"]) && !is_used => Explanation {
            remedy: format!(
                "the virtual environment {environment:?} is not used by the task: activate it before `longshore run` on the embedded cluster, or use an image with the module"
            ),
            ..found
        },
        _ => found,
    }
}

/// The paths that a line may contain: quoted words, parts between colons, and Python's modules.
fn paths(line: &str) -> impl Iterator<Item = String> {
    let quoted = line
        .split(['\'', '"', '`', '\u{2018}', '\u{2019}'])
        .skip(1)
        .step_by(2);
    let parts = line.split(": ");
    let modules = line.split("No module named ").skip(1);
    let modules = modules.map(|name| name.trim_matches(['\'', '"']).replace('.', "/"));
    let work = format!("{}/", names::WORK);
    let plain = move |path: &str| {
        let path = path.trim();
        let path = path.strip_prefix(work.as_str()).unwrap_or(path);
        path.trim_start_matches("./").to_owned()
    };
    quoted
        .chain(parts)
        .map(plain)
        .chain(modules)
        .filter(|path| !path.is_empty())
        .collect::<Vec<_>>()
        .into_iter()
}

/// Returns true if the entry is this path, a folder that contains it, or the file of this module.
fn covers(entry: &str, path: &str) -> bool {
    match entry.strip_suffix('/') {
        Some(folder) => path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        None => entry == path || entry.strip_suffix(".py") == Some(path),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn excluded_files_and_modules_are_named() {
        let excluded = json!(["data/", "models/big.bin", "local.py", ".venv/"]).to_string();
        let pod = |caller: &str| -> PodFacts {
            let pod = json!({"metadata": {"annotations": {
                "longshore.dev/excluded": excluded, "longshore.dev/caller": caller,
            }}});
            serde_json::from_value(pod).unwrap()
        };
        // The last line of the log, and a part of the remedy.
        let cases = [
            (
                "FileNotFoundError: [Errno 2] No such file or directory: 'data/a.csv'",
                "`--data data`",
            ),
            (
                "FileNotFoundError: [Errno 2] No such file or directory: '/longshore/work/data/a.csv'",
                "`--data data`",
            ),
            (
                "FileNotFoundError: [Errno 2] No such file or directory: './data'",
                "`--data data`",
            ),
            (
                "cat: data/a.csv: No such file or directory",
                "`--data data`",
            ),
            (
                "RuntimeError: cannot open \"models/big.bin\"",
                "`--data models/big.bin`",
            ),
            (
                "ModuleNotFoundError: No module named 'data.loader'",
                "`!data/`",
            ),
            (
                "ModuleNotFoundError: No module named 'local'",
                "`!local.py`",
            ),
            (
                "ModuleNotFoundError: No module named 'torch'",
                "\".venv/\" is not used",
            ),
            (
                "FileNotFoundError: [Errno 2] No such file or directory: 'database/a.csv'",
                "LOG",
            ),
            ("ValueError: bad data/a.csv", "LOG"),
        ];
        let explain = |pod: &PodFacts, line: &str| {
            extend(pod, Explanation::new(Cause::ExitCode, "ended", "LOG"), line).remedy
        };
        for (line, remedy) in cases {
            let found = explain(&pod("{}"), line);
            assert!(found.contains(remedy), "{line}: {found}");
        }
        let active = pod("{\"env\":{\"VIRTUAL_ENV\":\"/home/ada/.venv\"}}");
        assert_eq!(
            explain(&active, "ModuleNotFoundError: No module named 'torch'"),
            "LOG"
        );
        assert_eq!(explain(&PodFacts::default(), cases[0].0), "LOG");
    }
}
