//! The programs and charts from Go modules.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::{Chart, client::Client};
use crate::run::{Outcome, output, root, run_command, target};

/// What stands for the folder of the programs in the options of a chart.
const FOLDER: &str = "TARGET";

/// The folder of the built programs, which every user can read: containers run as others.
pub(super) struct Programs {
    folder: tempfile::TempDir,
}

impl Programs {
    /// Builds the programs that the images of the chart name, if they do not exist.
    pub(super) fn build(chart: &Chart) -> Outcome<Self> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))
            .map_err(|error| error.to_string())?;
        for name in ["cert-manager", "trust-manager"] {
            let used = format!("{FOLDER}/{name}");
            if chart.images().any(|(_, value)| value.contains(&used)) {
                let built = build(name)?;
                fs::copy(&built, folder.path().join(name))
                    .map_err(|error| format!("cannot copy {}: {error}", built.display()))?;
            }
        }
        Ok(Self { folder })
    }

    /// The options of `longshore up`.
    pub(super) fn options(&self, chart: &Chart) -> Vec<String> {
        let folder = self.folder.path().display().to_string();
        let words = chart.images().flat_map(|(option, value)| [option, value]);
        words.map(|word| word.replace(FOLDER, &folder)).collect()
    }

    /// Packages the chart in a module with the module's version, as its release does.
    pub(super) fn package(&self, client: &Client, module: &Module) -> Outcome<String> {
        let chart = download(module)?.join(module.chart);
        let chart = chart.display().to_string();
        let version = module.version;
        let (version, app) = (
            format!("--version={version}"),
            format!("--app-version={version}"),
        );
        client.helm(&["package", &chart, &version, &app])?;
        Ok(format!("{}-{}.tgz", module.name, module.version))
    }
}

/// A Go module with a chart.
pub(super) struct Module {
    pub(super) name: &'static str,
    pub(super) path: &'static str,
    pub(super) version: &'static str,
    /// The folder of the chart.
    pub(super) chart: &'static str,
}

/// Downloads a module; returns its folder.
fn download(module: &Module) -> Outcome<PathBuf> {
    let name = format!("{}@{}", module.path, module.version);
    let mut go = Command::new("go");
    let text = output(
        go.args(["mod", "download", "-json", &name])
            .current_dir(std::env::temp_dir())
            .env("GOFLAGS", ""),
    )?;
    let value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let folder = value["Dir"]
        .as_str()
        .ok_or_else(|| format!("go mod download {name} printed no folder"))?;
    Ok(folder.into())
}

fn build(name: &str) -> Outcome<PathBuf> {
    let (folder, package, version) = match name {
        "cert-manager" => (
            root().join("xtask/kubernetes/cert-manager"),
            ".",
            super::cert_manager::MODULE.version,
        ),
        _ => (
            download(&super::trust_manager::MODULE)?,
            "./cmd/trust-manager",
            super::trust_manager::MODULE.version,
        ),
    };
    let programs = target().join("charts");
    fs::create_dir_all(&programs).map_err(|error| format!("{}: {error}", programs.display()))?;
    let program = programs.join(format!("{name}-{version}"));
    if program.exists() {
        return Ok(program);
    }
    println!("building {name}");
    go_build(&folder, package, &program)?;
    Ok(program)
}

fn go_build(folder: &Path, package: &str, program: &Path) -> Outcome {
    let mut go = Command::new("go");
    go.current_dir(folder)
        .args([
            "build",
            "-mod=readonly",
            "-trimpath",
            "-ldflags=-s -w",
            "-o",
        ])
        .args([program.as_os_str(), package.as_ref()])
        .env("GOFLAGS", "")
        .env("CGO_ENABLED", "0");
    run_command(&mut go)
}
