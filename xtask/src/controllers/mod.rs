//! `cargo xtask controllers`: runs the tests of the control plane on all combinations of API server
//! and controllers, each from the embedded cluster or from Kubernetes. Writes docs/controllers.md.

mod files;
mod servers;
mod table;

use std::{fs, path::Path};

use servers::ControlPlane;

use crate::{
    conformance::Results,
    embedded, kubernetes, orphans,
    run::{Outcome, cargo, read_lines, root},
};

/// The variable with the kubeconfig of the control plane under test.
const CONTROL_PLANE_ENV: &str = "LONGSHORE_TEST_CONTROL_PLANE";

/// The tests to run, and the combinations to run them on.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only this API server.
    #[arg(long, value_enum)]
    api_server: Option<Origin>,
    /// Only these controllers.
    #[arg(long, value_enum)]
    controllers: Option<Origin>,
    /// The number of tests that run at a time.
    #[arg(long, default_value = "8")]
    threads: usize,
    /// Test this build of the program `longshore` instead of building it.
    #[arg(long)]
    program: Option<std::path::PathBuf>,
    /// Run only the tests whose names contain this text, and write no table.
    filter: Option<String>,
}

/// The project that a program belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Origin {
    Longshore,
    Kubernetes,
}

impl Origin {
    const ALL: [Self; 2] = [Self::Longshore, Self::Kubernetes];
}

/// An API server and the controllers that run on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Combination {
    api_server: Origin,
    controllers: Origin,
}

impl std::fmt::Display for Combination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let api_server = match self.api_server {
            Origin::Longshore => "embedded API server",
            Origin::Kubernetes => "kube-apiserver",
        };
        let controllers = match self.controllers {
            Origin::Longshore => "embedded controllers",
            Origin::Kubernetes => "kube-controller-manager, kube-scheduler",
        };
        write!(f, "{api_server}, {controllers}")
    }
}

/// Runs the tests; fails if one fails. A complete run writes the table.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    orphans::watch(|| run_combinations(arguments))
}

fn run_combinations(arguments: &Arguments) -> Outcome {
    kubernetes::build()?;
    let program = match &arguments.program {
        Some(program) => std::path::absolute(program).map_err(|error| error.to_string())?,
        None => embedded::build()?,
    };
    let mut columns = Vec::new();
    for api_server in Origin::ALL {
        for controllers in Origin::ALL {
            let selected = |choice: Option<Origin>, one| choice.is_none_or(|only| only == one);
            if selected(arguments.api_server, api_server)
                && selected(arguments.controllers, controllers)
            {
                let combination = Combination {
                    api_server,
                    controllers,
                };
                columns.push((combination, test(arguments, &program, combination)?));
            }
        }
    }
    for (combination, results) in &columns {
        println!("{combination}: {}", results.summary());
        for test in results.failures() {
            println!("  failed: {test}");
        }
    }
    if columns.len() == 4 && arguments.filter.is_none() {
        let path = root().join("docs/controllers.md");
        fs::write(&path, table::render(&columns))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", path.display());
    }
    match columns.iter().all(|(_, results)| results.failed() == 0) {
        true => Ok(()),
        false => Err("some tests failed, see above".into()),
    }
}

/// Starts a combination and runs the tests on it.
fn test(arguments: &Arguments, program: &Path, combination: Combination) -> Outcome<Results> {
    let control_plane = ControlPlane::start(program, combination)?;
    println!("\n{combination}");
    let mut command = cargo();
    command
        .args(["test", "--no-fail-fast"])
        .args([
            "--package",
            "longshore-conformance",
            "--test",
            "controllers",
        ])
        .args(&arguments.filter)
        .args(["--", "--include-ignored"])
        .args(["--test-threads", &arguments.threads.to_string()])
        .env(CONTROL_PLANE_ENV, control_plane.kubeconfig());
    let mut results = Results::default();
    // Failed tests are in the table, so the status of cargo is ignored.
    let outcome = read_lines(&mut command, |line| results.read_line(line));
    if results.is_empty() {
        let problem = outcome.err().unwrap_or_default();
        return Err(format!("no test ran: {problem}"));
    }
    if results.failed() > 0 {
        control_plane.keep_logs();
    }
    Ok(results)
}
