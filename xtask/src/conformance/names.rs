//! Whether the table in the docs names the tests that there are.

use std::{collections::BTreeSet, fs, path::Path};

use super::document;
use crate::run::root;

/// A refusal for each test that the table lacks, and for each that is gone.
pub(crate) fn check(refusals: &mut Vec<String>) {
    let mut tests = BTreeSet::new();
    collect(&root().join("crates/conformance/tests/rules"), &mut tests);
    let text = fs::read_to_string(document()).unwrap_or_default();
    let told: BTreeSet<String> = text
        .split('`')
        .filter(|word| is_test(word))
        .map(str::to_owned)
        .collect();
    let advice = "run `cargo xtask conformance` and commit docs/conformance.md";
    for test in tests.difference(&told) {
        refusals.push(format!(
            "docs/conformance.md does not know {test}: {advice}"
        ));
    }
    for test in told.difference(&tests) {
        refusals.push(format!(
            "docs/conformance.md knows {test}, which is gone: {advice}"
        ));
    }
}

/// The tests' names in the files of a folder.
fn collect(folder: &Path, tests: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, tests);
        } else {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let lines = text.lines().map(str::trim);
            let names = lines
                .filter_map(|line| line.strip_prefix("async fn ").or(line.strip_prefix("fn ")));
            let names = names.filter_map(|rest| rest.split('(').next());
            tests.extend(names.filter(|name| is_test(name)).map(str::to_owned));
        }
    }
}

/// `rule_01_what`
fn is_test(name: &str) -> bool {
    let number = name
        .strip_prefix("rule_")
        .and_then(|rest| rest.split('_').next());
    number
        .is_some_and(|number| number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit()))
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.len() > "rule_00_".len()
}
