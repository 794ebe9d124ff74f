//! The results of suites that ran, in the repository. All suites together need more than an hour,
//! so a run can be continued on another machine.

use std::{fs, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{Row, kopf, modules::MODULES};
use crate::run::{Outcome, root};

/// A row, and the version that it belongs to.
#[derive(Serialize, Deserialize)]
struct Kept<R> {
    version: String,
    #[serde(flatten)]
    row: R,
}

/// The version of the module of a suite.
fn version(suite: &str) -> &'static str {
    let mut modules = MODULES.iter();
    let module = modules.find(|module| suite.starts_with(module.path));
    module.map_or(kopf::VERSION.1, |module| module.version)
}

fn path(suite: &str) -> PathBuf {
    let name = suite.replace(['/', ' ', ':', ','], "-");
    root().join(format!("xtask/operators/{name}.json"))
}

/// The last results of a suite in this version. An unreadable file is ignored.
pub(super) fn read(suite: &str) -> Option<Row> {
    let kept: Kept<Row> = serde_json::from_slice(&fs::read(path(suite)).ok()?).ok()?;
    (kept.version == version(suite)).then_some(kept.row)
}

/// Keeps the results of a suite.
pub(super) fn write(row: &Row) -> Outcome {
    let path = path(&row.suite);
    let kept = Kept {
        version: version(&row.suite).to_owned(),
        row,
    };
    let mut text = serde_json::to_vec_pretty(&kept).map_err(|error| error.to_string())?;
    text.push(b'\n');
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(&path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}
