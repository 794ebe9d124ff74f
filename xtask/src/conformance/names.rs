//! Whether the tables in the docs name the tests that there are.

use std::{collections::BTreeSet, fs, path::Path};

use super::subjects::{SUBJECTS, Subject};
use crate::run::root;

/// A refusal for each test that a table lacks, and for each that is gone.
pub(crate) fn check(refusals: &mut Vec<String>) {
    for subject in &SUBJECTS {
        check_one(subject, refusals);
    }
}

fn check_one(subject: &Subject, refusals: &mut Vec<String>) {
    let mut tests = BTreeSet::new();
    let folder = root().join("crates/conformance/tests").join(subject.tests);
    collect(&folder, subject.word, &mut tests);
    let text = fs::read_to_string(subject.path()).unwrap_or_default();
    let told: BTreeSet<String> = text
        .split('`')
        .filter(|word| is_test(word, subject.word))
        .map(str::to_owned)
        .collect();
    let document = format!("docs/{}", subject.document);
    let advice = format!("run `cargo xtask conformance` and commit {document}");
    for test in tests.difference(&told) {
        refusals.push(format!("{document} does not know {test}: {advice}"));
    }
    for test in told.difference(&tests) {
        refusals.push(format!("{document} knows {test}, which is gone: {advice}"));
    }
}

/// The tests' names in the files of a folder.
fn collect(folder: &Path, word: &str, tests: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, word, tests);
        } else {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let lines = text.lines().map(str::trim);
            let names = lines
                .filter_map(|line| line.strip_prefix("async fn ").or(line.strip_prefix("fn ")));
            let names = names.filter_map(|rest| rest.split('(').next());
            tests.extend(names.filter(|name| is_test(name, word)).map(str::to_owned));
        }
    }
}

/// `rule_01_what`
fn is_test(name: &str, word: &str) -> bool {
    let Some(rest) = name
        .strip_prefix(word)
        .and_then(|rest| rest.strip_prefix('_'))
    else {
        return false;
    };
    let Some((number, what)) = rest.split_once('_') else {
        return false;
    };
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    number.len() == 2
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && !what.is_empty()
        && what.bytes().all(is_word)
}
