//! Checks that the tables in the docs name exactly the existing tests.

use std::{collections::BTreeSet, fs, path::Path};

use super::suites::{SUITES, Suite};
use crate::run::root;

/// Reports each test that is missing in its table, and each name without a test.
pub(crate) fn check(problems: &mut Vec<String>) {
    for suite in &SUITES {
        check_one(suite, problems);
    }
}

fn check_one(suite: &Suite, problems: &mut Vec<String>) {
    let mut tests = BTreeSet::new();
    let folder = root()
        .join("crates/interop/conformance/tests")
        .join(suite.tests);
    collect(&folder, suite.prefix, &mut tests);
    let text = fs::read_to_string(suite.path()).unwrap_or_default();
    let documented: BTreeSet<String> = text
        .split('`')
        .filter(|word| is_test(word, suite.prefix))
        .map(str::to_owned)
        .collect();
    let document = format!("docs/{}", suite.document);
    let advice = format!("run `cargo xtask conformance` and commit {document}");
    for test in tests.difference(&documented) {
        problems.push(format!("{document} does not list {test}: {advice}"));
    }
    for test in documented.difference(&tests) {
        problems.push(format!(
            "{document} lists {test}, which does not exist: {advice}"
        ));
    }
}

/// Collects the names of the tests in the files of a folder.
fn collect(folder: &Path, prefix: &str, tests: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, prefix, tests);
        } else {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let lines = text.lines().map(str::trim);
            let names = lines
                .filter_map(|line| line.strip_prefix("async fn ").or(line.strip_prefix("fn ")));
            let names = names.filter_map(|rest| rest.split('(').next());
            tests.extend(
                names
                    .filter(|name| is_test(name, prefix))
                    .map(str::to_owned),
            );
        }
    }
}

/// Returns true if a name has the form `rule_01_what`.
fn is_test(name: &str, prefix: &str) -> bool {
    let Some(rest) = name
        .strip_prefix(prefix)
        .and_then(|rest| rest.strip_prefix('_'))
    else {
        return false;
    };
    let Some((number, what)) = rest.split_once('_') else {
        return false;
    };
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    number.len() == 2
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && !what.is_empty()
        && what.bytes().all(is_name_byte)
}
