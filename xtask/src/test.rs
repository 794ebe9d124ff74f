//! `cargo xtask test`: everything that must hold.

use std::env;

use crate::{
    leftovers,
    run::{Outcome, cargo, finish},
    tidy, tools,
};

/// Which tests to run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only this package (`longshore-engine`); all of them without.
    #[arg(short, long)]
    package: Option<String>,
    /// Passed on to cargo test: a filter, or `--` and the harness's own options.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Checks the map, builds, runs every test, looks for processes left behind.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    leftovers::watch(|| test(arguments))
}

fn test(arguments: &Arguments) -> Outcome {
    tidy::run()?;
    // Where they cannot be had, the rest is tested all the same; but what lands
    // has been judged.
    let judges = tools::fetch();
    if env::var_os("CI").is_some() {
        judges.all()?;
    }
    let kubectls = env::join_paths(judges.kubectls.iter().flatten());
    let kubectls = kubectls.map_err(|error| error.to_string())?;
    let scope = match &arguments.package {
        Some(package) => vec!["--package", package],
        None => vec!["--workspace"],
    };
    finish(cargo().args(["build", "--release", "--workspace", "--bins"]))?;
    finish(
        cargo()
            .args(["test", "--release", "--no-fail-fast"])
            .args(scope)
            .args(&arguments.rest)
            .env("LONGSHORE_TEST_KUBECTLS", kubectls)
            .env(
                "LONGSHORE_TEST_PYTHON",
                judges.python.as_deref().unwrap_or("".as_ref()),
            ),
    )?;
    if let Err(problem) = judges.all() {
        eprintln!("warning: not everybody has judged this: {problem}");
    }
    Ok(())
}
