//! The embedded cluster, for judges that are no tests of cargo's.

use std::{path::PathBuf, process::Command};

use crate::run::{Outcome, cargo, finish, output, target};

/// An embedded cluster that ends with this.
pub(crate) struct Embedded {
    program: PathBuf,
    folder: tempfile::TempDir,
}

/// Builds the program.
pub(crate) fn build() -> Outcome {
    finish(cargo().args(["build", "--release", "--package", "longshore-cli"]))
}

impl Embedded {
    /// Starts the cluster with more words for `longshore up`; [`build`] comes first.
    pub(crate) fn start(words: &[String]) -> Outcome<Self> {
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
                .args(words),
        )?;
        Ok(cluster)
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    fn longshore(&self, verb: &str) -> Command {
        let mut longshore = Command::new(&self.program);
        longshore
            .arg(verb)
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
