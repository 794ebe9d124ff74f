//! The embedded cluster, for tests that do not run under cargo.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use crate::run::{Outcome, cargo, output, run_command, target};

/// An embedded cluster; dropping this stops it.
pub(crate) struct Embedded {
    program: PathBuf,
    folder: tempfile::TempDir,
}

/// Builds the program; returns its path.
pub(crate) fn build() -> Outcome<PathBuf> {
    run_command(cargo().args(["build", "--release", "--package", "longshore-cli"]))?;
    Ok(target().join("release/longshore"))
}

impl Embedded {
    /// Starts the cluster with the program of [`build`], or with another, and additional
    /// arguments for `longshore up`.
    pub(crate) fn start(program: &Path, args: &[String]) -> Outcome<Self> {
        Self::start_with(program, args, None)
    }

    /// Like [`Embedded::start`], with another `PATH`, which containers get.
    pub(crate) fn start_with(
        program: &Path,
        args: &[String],
        path: Option<&OsStr>,
    ) -> Outcome<Self> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let cluster = Self {
            program: program.to_owned(),
            folder,
        };
        let mut up = cluster.longshore("up");
        up.arg("--kubeconfig")
            .arg(cluster.kubeconfig())
            .args(args)
            .envs(path.map(|path| ("PATH", path)));
        output(&mut up)?;
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
