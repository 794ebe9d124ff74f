//! The results of suites that ran, in the target folder: all suites together need more than an
//! hour.

use std::{fs, path::PathBuf};

use super::Row;
use crate::run::{Outcome, target};

fn path(suite: &str) -> PathBuf {
    let name = suite.replace(['/', ' ', ':', ','], "-");
    target().join(format!("operators/results/{name}.json"))
}

/// The last results of a suite. A file that cannot be read counts as none.
pub(super) fn read(suite: &str) -> Option<Row> {
    serde_json::from_slice(&fs::read(path(suite)).ok()?).ok()
}

/// Keeps the results of a suite.
pub(super) fn write(row: &Row) -> Outcome {
    let path = path(&row.suite);
    let text = serde_json::to_vec_pretty(row).map_err(|error| error.to_string())?;
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(&path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}
