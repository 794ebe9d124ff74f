//! `cargo xtask operators`: runs the envtest suites of other projects, unchanged, on the
//! embedded API server and on the kube-apiserver and etcd of Kubernetes, and kopf's tests on
//! the embedded cluster and on Kubernetes. Requires Go, and root for the cluster.

mod download;
mod kept;
mod kopf;
mod kubebuilder;
mod kueue;
mod modules;
mod report;
mod table;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use modules::MODULES;
use serde::{Deserialize, Serialize};

use crate::{
    embedded, kubernetes, packages,
    run::{Outcome, output, root, target},
};

/// The suites to run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run only the suites of packages whose path contains this text.
    filter: Option<String>,
    /// Run only the suites that have no results yet in the folder xtask/operators.
    #[arg(long = "continue")]
    continues: bool,
    /// The program `longshore` to test; default: a release build, which is made first.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// The results of a suite with one pair of programs.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Results {
    passed: usize,
    /// Names of the tests, each with the first line of its message.
    failed: Vec<(String, String)>,
    seconds: f64,
}

/// The results of a suite on both API servers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    suite: String,
    longshore: Results,
    kubernetes: Results,
}

/// Runs the suites, keeps their results, and writes docs/operators.md from all results. The error names the tests that fail only on the embedded API server.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    packages::require_go()?;
    kubernetes::build()?;
    let program = match &arguments.program {
        Some(path) => path.clone(),
        None => embedded::build()?,
    };
    let ours = assets(&program)?;
    let theirs = kubernetes::programs();
    let selected = |suite: &str| {
        let filter = arguments.filter.as_ref();
        let is_done = arguments.continues && kept::read(suite).is_some();
        filter.is_none_or(|text| suite.contains(text)) && !is_done
    };
    let mut rows = Vec::new();
    let mut finish = |row: Row| -> Outcome {
        println!("{}", table::line(&row));
        kept::write(&row)?;
        rows.push(row);
        Ok(())
    };
    for module in MODULES {
        let packages = module.packages.iter();
        let packages: Vec<_> = packages
            .filter(|package| selected(&module.suite(package)))
            .collect();
        if packages.is_empty() {
            continue;
        }
        let folder = module.folder()?;
        for package in packages {
            finish(Row {
                longshore: run_suite(&folder, package, &ours)?,
                kubernetes: run_suite(&folder, package, &theirs)?,
                suite: module.suite(package),
            })?;
        }
    }
    if selected(kopf::SUITE) {
        finish(kopf::run(&program)?)?;
    }
    let suites = MODULES
        .iter()
        .flat_map(|module| module.packages.iter().map(|package| module.suite(package)))
        .chain([kopf::SUITE.to_owned()]);
    let (mut all, mut missing) = (Vec::new(), Vec::new());
    for suite in suites {
        match kept::read(&suite) {
            Some(row) => all.push(row),
            None => missing.push(suite),
        }
    }
    write_page(&all, &missing)?;
    let failed: Vec<String> = rows.iter().flat_map(only_here).collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "these tests pass with the programs of Kubernetes:\n  {}",
            failed.join("\n  ")
        )),
    }
}

fn write_page(rows: &[Row], missing: &[String]) -> Outcome {
    let path = root().join("docs/operators.md");
    let versions: Vec<_> = MODULES
        .iter()
        .map(|module| (module.path, module.version))
        .chain([kopf::VERSION])
        .collect();
    fs::write(&path, table::render(&versions, rows, missing))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}

/// The tests that fail only on the embedded API server.
fn only_here(row: &Row) -> Vec<String> {
    let theirs = &row.kubernetes.failed;
    let ours = row.longshore.failed.iter();
    let ours = ours.filter(|(name, _)| !theirs.iter().any(|(other, _)| other == name));
    ours.map(|(name, message)| format!("{}: {name}: {message}", row.suite))
        .collect()
}

/// The folder with our programs.
fn assets(program: &Path) -> Outcome<PathBuf> {
    let mut longshore = Command::new(program);
    let folder = longshore
        .args(["envtest", "--assets-dir"])
        .arg(target().join("operators"));
    Ok(PathBuf::from(output(folder)?.trim()))
}

/// Runs a suite in the module's own folder, so that its own versions of dependencies apply.
fn run_suite(module: &Path, package: &str, assets: &Path) -> Outcome<Results> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("report.json");
    let mut go = Command::new("go");
    let done = go
        .current_dir(module)
        .args(["test", "-mod=readonly", "-count=1", "-timeout=30m"])
        .arg(format!("./{package}"))
        .arg(format!("-ginkgo.json-report={}", file.display()))
        .env("KUBEBUILDER_ASSETS", assets)
        .env("GOFLAGS", "")
        .output()
        .map_err(|error| format!("cannot run go: {error}"))?;
    // Failed tests are in the report, too.
    let results = report::read(&file).unwrap_or_else(|problem| {
        eprintln!(
            "{package}: {problem}\n{}{}",
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        );
        Results {
            failed: vec![("the suite".to_owned(), problem)],
            ..Results::default()
        }
    });
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tests_that_pass_elsewhere_are_failures_here() {
        let failed = |names: &[&str]| Results {
            failed: names
                .iter()
                .map(|&name| (name.to_owned(), "no".to_owned()))
                .collect(),
            ..Results::default()
        };
        let row = Row {
            suite: "s".to_owned(),
            longshore: failed(&["a", "b"]),
            kubernetes: failed(&["b", "c"]),
        };
        assert_eq!(only_here(&row), ["s: a: no"]);
    }
}
