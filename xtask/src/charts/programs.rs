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

/// The placeholder for the folder of the programs in the options of a chart.
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
        for module in [CERT_MANAGER, TRUST_MANAGER] {
            let name = module.name;
            let used = format!("{FOLDER}/{name}");
            if chart.images().any(|(_, value)| value.contains(&used)) {
                let built = build(&module)?;
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
    name: &'static str,
    path: &'static str,
    version: &'static str,
    /// The folder of the chart.
    chart: &'static str,
    /// The folder of the repository with the program, instead of the module.
    ours: Option<&'static str>,
    /// The package of the program.
    program: &'static str,
}

pub(super) const CERT_MANAGER: Module = Module {
    name: "cert-manager",
    path: "github.com/cert-manager/cert-manager",
    version: "v1.21.2",
    chart: "deploy/charts/cert-manager",
    ours: Some("xtask/kubernetes/cert-manager"),
    program: ".",
};

pub(super) const TRUST_MANAGER: Module = Module {
    name: "trust-manager",
    path: "github.com/cert-manager/trust-manager",
    version: "v0.25.0",
    chart: "deploy/charts/trust-manager",
    ours: None,
    program: "./cmd/trust-manager",
};

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

fn build(module: &Module) -> Outcome<PathBuf> {
    let programs = target().join("charts");
    fs::create_dir_all(&programs).map_err(|error| format!("{}: {error}", programs.display()))?;
    let program = programs.join(format!("{}-{}", module.name, module.version));
    if program.exists() {
        return Ok(program);
    }
    println!("building {}", module.name);
    let folder = match module.ours {
        Some(folder) => root().join(folder),
        None => download(module)?,
    };
    go_build(&folder, module.program, &program)?;
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
