//! `cargo xtask test --go`: tests with client-go, controller-runtime, helm and kustomize on a
//! cluster, in the Go module `crates/interop/conformance/go`. Requires Go.

use std::{env, path::Path, process::Command};

use crate::{
    embedded::{self, Embedded},
    kubernetes::{self, RunningCluster},
    packages,
    run::{Outcome, root, run_command},
};

/// Runs the tests on the embedded cluster.
pub(crate) fn test_embedded(args: &[String]) -> Outcome {
    prepare()?;
    let cluster = Embedded::start(&embedded::build()?, &[])?;
    test(&cluster.kubeconfig(), args)
}

/// Runs the tests on the cluster of `cargo xtask real up`.
pub(crate) fn test_real(args: &[String]) -> Outcome {
    prepare()?;
    test(&RunningCluster::find_or_start()?.kubeconfig(), args)
}

/// Checks that Go is installed, and builds the programs that the tests run.
fn prepare() -> Outcome {
    packages::require_go()?;
    kubernetes::build_tools()
}

fn test(kubeconfig: &Path, args: &[String]) -> Outcome {
    // The pinned helm and kustomize come before the system's.
    let mut path = vec![kubernetes::programs()];
    path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let path = env::join_paths(path).map_err(|error| error.to_string())?;
    let mut go = Command::new("go");
    go.current_dir(root().join("crates/interop/conformance/go"))
        .args(["test", "-mod=readonly", "-count=1", "-v"])
        .args(args)
        .arg("./...")
        .env("KUBECONFIG", kubeconfig)
        .env("PATH", path)
        .env("GOFLAGS", "");
    run_command(&mut go)
}
