//! Downloads Go modules.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::run::{Outcome, output};

/// Downloads a module in the version that the module in `from` requires, or in the given
/// version. Returns its folder.
pub(super) fn folder(from: &Path, module: &str) -> Outcome<PathBuf> {
    let mut go = Command::new("go");
    let text = output(
        go.args(["mod", "download", "-json", module])
            .current_dir(from)
            .env("GOFLAGS", "-mod=mod"),
    )?;
    let value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let folder = value["Dir"]
        .as_str()
        .ok_or_else(|| format!("go mod download {module} printed no folder"))?;
    Ok(folder.into())
}
