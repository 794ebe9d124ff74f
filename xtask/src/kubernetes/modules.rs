//! Builds the programs of the cluster from Go modules.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{Paths, create_folder, sources};
use crate::{
    packages,
    run::{Outcome, output, run_command},
};

/// The version of Kubernetes, as `xtask/kubernetes/kubernetes/go.mod` pins it.
pub(crate) const VERSION: &str = "v1.37.2";

/// Requirements in addition to Go: each is a program or a file, and its Debian package.
#[rustfmt::skip]
const REQUIRED: &[(&str, &str)] = &[
    ("cc", "gcc"), ("pkg-config", "pkg-config"), ("openssl", "openssl"), ("ip", "iproute2"),
    ("nsenter", "util-linux"), ("nft", "nftables"), ("iptables", "iptables"),
    // Without this header, runc is built without seccomp filters.
    ("/usr/include/seccomp.h", "libseccomp-dev"),
];

/// A folder of `xtask/kubernetes`, whose `go.mod` lists its programs as tools.
struct Module {
    folder: &'static str,
    /// The file name of its last program after the build.
    program: &'static str,
    /// The new name of this program, if it is renamed.
    name: Option<&'static str>,
    cgo: bool,
    tags: &'static str,
}

#[rustfmt::skip]
const MODULES: &[Module] = &[
    Module { folder: "etcd", program: "server", name: Some("etcd"), cgo: false, tags: "" },
    Module { folder: "containers", program: "runc", name: None, cgo: true, tags: "seccomp" },
    Module { folder: "registry", program: "registry", name: None, cgo: false, tags: "" },
    Module { folder: "coredns", program: "coredns", name: None, cgo: false, tags: "" },
    Module { folder: "kubernetes", program: "kubelet", name: None, cgo: false, tags: "" },
];

/// helm and kustomize, which the Go tests run on a cluster.
const TOOLS: Module = Module {
    folder: "tools",
    program: "kustomize",
    name: None,
    cgo: false,
    tags: "",
};

/// Add-ons that many clusters have.
#[rustfmt::skip]
const ADDONS: [Module; 2] = [
    Module { folder: "jobset", program: "jobset", name: None, cgo: false, tags: "" },
    Module { folder: "kueue", program: "kueue", name: None, cgo: false, tags: "" },
];

/// The Kubernetes conformance tests, ginkgo, and agnhost, the program of their images.
const TESTS: Module = Module {
    folder: "e2e",
    program: "agnhost",
    name: None,
    cgo: false,
    tags: "",
};

/// Builds the programs that do not exist.
pub(super) fn build(paths: &Paths) -> Outcome {
    packages::require_go()?;
    packages::install(REQUIRED)?;
    MODULES
        .iter()
        .try_for_each(|module| build_module(module, paths))
}

/// Builds helm and kustomize if they do not exist. Requires only Go.
pub(super) fn build_tools(paths: &Paths) -> Outcome {
    build_module(&TOOLS, paths)
}

/// Builds JobSet, Kueue, and kustomize for their manifests, if they do not exist.
pub(super) fn build_addons(paths: &Paths) -> Outcome {
    let mut modules = ADDONS.iter().chain([&TOOLS]);
    modules.try_for_each(|module| build_module(module, paths))
}

/// Builds the Kubernetes conformance tests as `e2e.test`, and agnhost, if they do not exist.
pub(super) fn build_tests(paths: &Paths) -> Outcome {
    build_module(&TESTS, paths)?;
    let program = paths.program("e2e.test");
    if program.exists() {
        return Ok(());
    }
    let mut go = go(&TESTS, "test");
    run_command(go.arg("-c").arg("-o").arg(program).arg("."))
}

/// The folder of Go's cache with the source code of the Kubernetes conformance tests.
pub(super) fn folder_of_tests() -> Outcome<PathBuf> {
    let mut list = Command::new("go");
    list.current_dir(sources().join(TESTS.folder))
        .args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}"])
        .arg("k8s.io/kubernetes")
        .env("GOFLAGS", "");
    Ok(PathBuf::from(output(&mut list)?.trim()))
}

fn build_module(module: &Module, paths: &Paths) -> Outcome {
    create_folder(&paths.programs)?;
    let done = paths.program(&format!(".{}", module.folder));
    if done.exists() {
        return Ok(());
    }
    println!("building {}", module.folder);
    install(module, &paths.programs)?;
    if let Some(name) = module.name {
        let from = paths.program(module.program);
        fs::rename(&from, paths.program(name))
            .map_err(|error| format!("cannot rename {}: {error}", from.display()))?;
    }
    super::write(&done, "")
}

fn install(module: &Module, programs: &Path) -> Outcome {
    run_command(go(module, "install").arg("tool").env("GOBIN", programs))
}

/// A `go` command that builds in the folder of a module.
fn go(module: &Module, subcommand: &str) -> Command {
    let package = "k8s.io/component-base/version";
    let (major, minor) = ("1", VERSION.split('.').nth(1).unwrap_or_default());
    // The build of a Kubernetes release sets the same variables.
    let version = format!(
        "-s -w -X {package}.gitVersion={VERSION} -X {package}.gitMajor={major} \
         -X {package}.gitMinor={minor} -X {package}.gitTreeState=clean"
    );
    let mut go = Command::new("go");
    go.current_dir(sources().join(module.folder))
        .args([
            subcommand,
            "-mod=readonly",
            "-trimpath",
            "-tags",
            module.tags,
        ])
        .args(["-ldflags", &version])
        .env("GOFLAGS", "")
        .env("CGO_ENABLED", if module.cgo { "1" } else { "0" });
    go
}
