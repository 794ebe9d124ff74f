//! The tests of kopf, a Python framework for operators: its examples run as operators.

use std::{ffi::OsString, fs, path::Path, process::Command, time::Instant};

use super::{Results, Row};
use crate::{
    embedded::Embedded,
    kubernetes::RunningCluster,
    run::{Outcome, output, run_command},
    tools::{self, Kopf},
};

/// The name of these tests on the page.
pub(super) const SUITE: &str = "kopf: tests/e2e, examples";

/// The version, for the page.
pub(super) const VERSION: (&str, &str) = ("kopf", "1.45.2");

/// Runs the tests on the embedded cluster of this program and on Kubernetes.
pub(super) fn run(program: &Path) -> Outcome<Row> {
    let kopf = tools::kopf()?;
    let kubectls = tools::fetch().kubectls?;
    let kubectl = std::env::split_paths(&kubectls)
        .last()
        .ok_or("no kubectl was downloaded")?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    run_command(
        Command::new("tar")
            .args(["--extract", "--strip-components=1", "--directory"])
            .arg(folder.path())
            .arg("--file")
            .arg(&kopf.sources),
    )?;
    // The tests run `kubectl` from the `PATH`.
    let programs = folder.path().join("programs");
    fs::create_dir(&programs)
        .and_then(|()| std::os::unix::fs::symlink(&kubectl, programs.join("kubectl")))
        .map_err(|error| format!("{}: {error}", programs.display()))?;

    let embedded = Embedded::start(program, &[])?;
    let start = |program: &str| Command::new(program);
    let longshore = test(&kopf, folder.path(), &embedded.kubeconfig(), start)?;
    drop(embedded);
    let real = RunningCluster::find_or_start()?;
    // An operator serves webhooks at `localhost`, where the API server must reach them.
    let start = |program: &str| real.enter(program);
    let kubernetes = test(&kopf, folder.path(), &real.kubeconfig(), start)?;
    Ok(Row {
        suite: SUITE.to_owned(),
        longshore,
        kubernetes,
    })
}

/// An option of pytest. When an operator of kopf stops, it does not close the connections of its
/// watches. Python warns of each at a random time, and kopf's configuration makes warnings errors.
const IGNORED_WARNINGS: [&str; 2] = ["-W", "ignore:unclosed:ResourceWarning"];

/// `start` returns the command of a program.
fn test(
    kopf: &Kopf,
    sources: &Path,
    kubeconfig: &Path,
    start: impl Fn(&str) -> Command,
) -> Outcome<Results> {
    let mut path = OsString::from(sources.join("programs"));
    for folder in [kopf.environment.join("bin").into_os_string()]
        .into_iter()
        .chain(std::env::var_os("PATH"))
    {
        path.push(":");
        path.push(folder);
    }
    let command = |program: &str| {
        let mut command = start(program);
        command
            .current_dir(sources)
            .env("KUBECONFIG", kubeconfig)
            .env("PATH", &path);
        command
    };
    let kubectl = sources.join("programs/kubectl").display().to_string();
    output(command(&kubectl).args(["apply", "-f", "examples/crd.yaml"]))?;
    // The file contains objects of the kinds that it defines.
    let peering = ["apply", "-f", "peering.yaml"];
    let _ = output(command(&kubectl).args(peering));
    let established = [
        "wait",
        "--for=condition=Established",
        "customresourcedefinition",
        "--all",
    ];
    output(command(&kubectl).args(established))?;
    output(command(&kubectl).args(peering))?;

    let python = kopf.environment.join("bin/python3").display().to_string();
    let begin = Instant::now();
    let done = command(&python)
        .args(["-m", "pytest", "tests/e2e", "examples", "--only-e2e"])
        // The same as in kopf's own CI: the tests wait for an operator's actions.
        .args(["--timeout=60", "-rA", "--quiet", "--no-header", "--color=no"])
        .args(["-p", "no:cacheprovider"])
        .args(IGNORED_WARNINGS)
        .output()
        .map_err(|error| format!("cannot run pytest: {error}"))?;
    let seconds = begin.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&done.stdout);
    let results = read(&text, seconds);
    if results.passed == 0 && results.failed.is_empty() {
        let problem = String::from_utf8_lossy(&done.stderr);
        return Err(format!("pytest ran no test of kopf:\n{text}{problem}"));
    }
    Ok(results)
}

/// Reads the summary that pytest prints with `-rA`.
fn read(text: &str, seconds: f64) -> Results {
    let mut results = Results {
        seconds,
        ..Results::default()
    };
    let (_, summary) = text
        .rsplit_once("short test summary info")
        .unwrap_or_default();
    for line in summary.lines() {
        match line.split_once(' ') {
            Some(("PASSED", _)) => results.passed = results.passed.saturating_add(1),
            Some(("FAILED" | "ERROR", rest)) => {
                let (name, message) = rest.split_once(" - ").unwrap_or((rest, ""));
                results.failed.push((name.to_owned(), message.to_owned()));
            }
            _ => {}
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_pytest_is_read() {
        let text = "\
FAILED in the log of a test
=========================== short test summary info ============================
PASSED tests/e2e/test_examples.py::test[01-minimal]
FAILED tests/e2e/test_examples.py::test[02-children] - AssertionError: a - b
ERROR tests/e2e/test_examples.py::test[03-exceptions]
2 failed, 1 passed in 3.00s
";
        let failed = |name: &str, message: &str| (name.to_owned(), message.to_owned());
        let expected = Results {
            passed: 1,
            failed: vec![
                failed(
                    "tests/e2e/test_examples.py::test[02-children]",
                    "AssertionError: a - b",
                ),
                failed("tests/e2e/test_examples.py::test[03-exceptions]", ""),
            ],
            seconds: 3.0,
        };
        assert_eq!(read(text, 3.0), expected);
    }
}
