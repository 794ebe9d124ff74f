//! The cluster's programs, built from Go modules.

use std::{fs, path::Path, process::Command};

use super::{Places, make_folder, sources};
use crate::{
    packages,
    run::{Outcome, finish},
};

/// The version of Kubernetes, as `xtask/kubernetes/kubernetes/go.mod` pins it.
pub(crate) const VERSION: &str = "v1.37.2";

/// What is needed beside Go: a program or a file, and Debian's package that it comes in.
#[rustfmt::skip]
const NEEDED: &[(&str, &str)] = &[
    ("cc", "gcc"), ("pkg-config", "pkg-config"), ("openssl", "openssl"), ("ip", "iproute2"),
    ("nsenter", "util-linux"), ("nft", "nftables"), ("iptables", "iptables"),
    // Without it runc does not filter system calls.
    ("/usr/include/seccomp.h", "libseccomp-dev"),
];

/// A folder of `xtask/kubernetes`, whose `go.mod` names its programs as tools.
struct Module {
    folder: &'static str,
    /// One of its programs, as built; the last to be.
    program: &'static str,
    /// A better name for it.
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

/// helm and kustomize, which the tests in Go run on a cluster.
const TOOLS: Module = Module {
    folder: "tools",
    program: "kustomize",
    name: None,
    cgo: false,
    tags: "",
};

/// What many clusters have in addition.
#[rustfmt::skip]
const ADDONS: [Module; 2] = [
    Module { folder: "jobset", program: "jobset", name: None, cgo: false, tags: "" },
    Module { folder: "kueue", program: "kueue", name: None, cgo: false, tags: "" },
];

/// Kubernetes' own tests, what runs several at a time, and the program in their images.
const TESTS: Module = Module {
    folder: "e2e",
    program: "agnhost",
    name: None,
    cgo: false,
    tags: "",
};

/// Builds what is not there yet.
pub(super) fn build(places: &Places) -> Outcome {
    packages::require_go()?;
    packages::install(NEEDED)?;
    MODULES
        .iter()
        .try_for_each(|module| build_module(module, places))
}

/// Builds helm and kustomize, unless they are there. Needs only Go.
pub(super) fn build_tools(places: &Places) -> Outcome {
    build_module(&TOOLS, places)
}

/// Builds JobSet and Kueue, and kustomize for their manifests, unless they are there.
pub(super) fn build_addons(places: &Places) -> Outcome {
    let mut modules = ADDONS.iter().chain([&TOOLS]);
    modules.try_for_each(|module| build_module(module, places))
}

/// Builds Kubernetes' own tests as `e2e.test`, and agnhost, unless they are there.
pub(super) fn build_tests(places: &Places) -> Outcome {
    build_module(&TESTS, places)?;
    let program = places.program("e2e.test");
    if program.exists() {
        return Ok(());
    }
    let mut go = go(&TESTS, "test");
    finish(go.arg("-c").arg("-o").arg(program).arg("."))
}

fn build_module(module: &Module, places: &Places) -> Outcome {
    make_folder(&places.programs)?;
    let done = places.program(&format!(".{}", module.folder));
    if done.exists() {
        return Ok(());
    }
    println!("building {}", module.folder);
    install(module, &places.programs)?;
    if let Some(name) = module.name {
        let from = places.program(module.program);
        fs::rename(&from, places.program(name))
            .map_err(|error| format!("cannot rename {}: {error}", from.display()))?;
    }
    super::write(&done, "")
}

fn install(module: &Module, programs: &Path) -> Outcome {
    finish(go(module, "install").arg("tool").env("GOBIN", programs))
}

/// A command of Go that builds in a module.
fn go(module: &Module, verb: &str) -> Command {
    let package = "k8s.io/component-base/version";
    let (major, minor) = ("1", VERSION.split('.').nth(1).unwrap_or_default());
    // What a release's own build sets.
    let version = format!(
        "-s -w -X {package}.gitVersion={VERSION} -X {package}.gitMajor={major} \
         -X {package}.gitMinor={minor} -X {package}.gitTreeState=clean"
    );
    let mut go = Command::new("go");
    go.current_dir(sources().join(module.folder))
        .args([verb, "-mod=readonly", "-trimpath", "-tags", module.tags])
        .args(["-ldflags", &version])
        .env("GOFLAGS", "")
        .env("CGO_ENABLED", if module.cgo { "1" } else { "0" });
    go
}
