//! The embedded cluster, for tests that do not run under cargo.

use std::{path::PathBuf, process::Command};

use crate::run::{Outcome, cargo, output, run_command, target};

/// An embedded cluster; dropping this stops it.
pub(crate) struct Embedded {
    program: PathBuf,
    folder: tempfile::TempDir,
}

/// Builds the program.
pub(crate) fn build() -> Outcome {
    run_command(cargo().args(["build", "--release", "--package", "longshore-cli"]))
}

impl Embedded {
    /// Starts the cluster with additional arguments for `longshore up`. Call [`build`] first.
    pub(crate) fn start(args: &[String]) -> Outcome<Self> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let cluster = Self {
            program: target().join("release/longshore"),
            folder,
        };
        output(
            cluster
                .longshore("up")
                .arg("--kubeconfig")
                .arg(cluster.kubeconfig())
                .args(args),
        )?;
        Ok(cluster)
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    fn longshore(&self, subcommand: &str) -> Command {
        let mut longshore = Command::new(&self.program);
        longshore
            .arg(subcommand)
            .env("LONGSHORE_DATA_DIR", self.folder.path().join("data"));
        longshore
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if let Err(problem) = output(self.longshore("down").arg("--force")) {
            eprintln!("warning: {problem}");
        }
    }
}
