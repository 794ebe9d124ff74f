//! A real kube-apiserver: built once from Debian's source package, and run
//! beside etcd to judge the conformance tests.

mod build;
mod cluster;
mod http;
mod sources;

use std::{
    env,
    path::{Path, PathBuf},
};

pub(crate) use build::run as build;
pub(crate) use cluster::Cluster;

use crate::run::{Outcome, target};

/// Names a folder with a kube-apiserver to use instead of one built here.
pub(crate) const GIVEN: &str = "LONGSHORE_REAL_APISERVER";

/// Where it is built and kept: the user's cache, which outlives `cargo clean`.
fn cache() -> PathBuf {
    let folder = |name| env::var_os(name).filter(|value| !value.is_empty());
    let cache = folder("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(folder("HOME")?).join(".cache")));
    cache.map_or_else(
        || target().join("real-apiserver"),
        |cache| cache.join("longshore/real-apiserver"),
    )
}

/// The folder of the binaries.
pub(crate) fn binaries() -> PathBuf {
    env::var_os(GIVEN).map_or_else(|| cache().join("bin"), PathBuf::from)
}

/// The kube-apiserver.
fn apiserver() -> Outcome<PathBuf> {
    let path = binaries().join("kube-apiserver");
    if path.is_file() {
        return Ok(path);
    }
    Err(match env::var_os(GIVEN) {
        Some(_) => format!("{GIVEN} names a folder without a kube-apiserver"),
        None => "there is no kube-apiserver yet: build it with `cargo xtask real-apiserver`".into(),
    })
}

/// Where a program is in `PATH`.
fn find(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

fn shown(path: &Path) -> impl std::fmt::Display + '_ {
    path.display()
}
