//! `cargo xtask test --go`: tests of client-go, controller-runtime, helm and kustomize on a
//! cluster, in the Go module in `crates/conformance/go`. Needs Go.

use std::{env, path::Path, process::Command};

use crate::{
    embedded::{self, Embedded},
    kubernetes::{self, Lease},
    packages,
    run::{Outcome, finish, root},
};

/// Runs the tests on the embedded cluster.
pub(crate) fn test_embedded(words: &[String]) -> Outcome {
    prepare()?;
    embedded::build()?;
    let cluster = Embedded::start(&[])?;
    test(&cluster.kubeconfig(), words)
}

/// Runs the tests on the cluster of `cargo xtask real up`.
pub(crate) fn test_real(words: &[String]) -> Outcome {
    prepare()?;
    test(&Lease::take()?.kubeconfig(), words)
}

/// Checks that Go is there, and builds the programs that the tests run.
fn prepare() -> Outcome {
    packages::require_go()?;
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
