//! `cargo xtask test --go`: client-go, controller-runtime, helm and kustomize judge a cluster,
//! by the Go module in `crates/conformance/go`. Needs Go, which not every machine has.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    kubernetes::{self, Lease},
    run::{Outcome, cargo, finish, output, root, target},
};

/// An embedded cluster that ends with this.
struct Embedded {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Embedded {
    fn start() -> Outcome<Self> {
        let mut build = cargo();
        finish(build.args(["build", "--release", "--package", "longshore-cli"]))?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let cluster = Self {
            program: target().join("release/longshore"),
            folder,
        };
        output(
            cluster
                .longshore("up")
                .arg("--kubeconfig")
                .arg(cluster.kubeconfig()),
        )?;
        Ok(cluster)
    }

    fn kubeconfig(&self) -> PathBuf {
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

/// Runs the tests on the embedded cluster.
pub(crate) fn test_embedded(words: &[String]) -> Outcome {
    prepare()?;
    let cluster = Embedded::start()?;
    test(&cluster.kubeconfig(), words)
}

/// Runs the tests on the cluster of `cargo xtask real up`.
pub(crate) fn test_real(words: &[String]) -> Outcome {
    prepare()?;
    test(&Lease::take()?.kubeconfig(), words)
}

/// Checks that Go is there, and builds the programs that the tests run.
fn prepare() -> Outcome {
    output(Command::new("go").arg("version"))
        .map_err(|_| "go is missing, 1.26 or newer (Debian: golang-go)")?;
    kubernetes::build_tools()
}

fn test(kubeconfig: &Path, words: &[String]) -> Outcome {
    // First, so that the pinned helm and kustomize are found before the machine's own.
    let mut path = vec![kubernetes::programs()];
    path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let path = env::join_paths(path).map_err(|error| error.to_string())?;
    let mut go = Command::new("go");
    go.current_dir(root().join("crates/conformance/go"))
        .args(["test", "-mod=readonly", "-count=1", "-v"])
        .args(words)
        .arg("./...")
        .env("KUBECONFIG", kubeconfig)
        .env("PATH", path)
        .env("GOFLAGS", "");
    finish(&mut go)
}
