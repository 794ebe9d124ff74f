//! Real kube-apiservers with etcd, on which the conformance tests run: the current version, which
//! `cargo xtask real build` builds, and an old one from Debian's source package.

mod build;
mod cluster;
mod http;
mod sources;

use std::{
    env,
    path::{Path, PathBuf},
};

pub(crate) use build::run as build;
pub(crate) use cluster::{Cluster, Process, free_ports};
pub(crate) use http::request;

use crate::{
    kubernetes,
    packages::find,
    run::{Outcome, target},
};

/// The variable with the folder of an old kube-apiserver, instead of the one built here.
pub(crate) const APISERVER_FOLDER_ENV: &str = "LONGSHORE_REAL_APISERVER";

/// The version of kube-apiserver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// The version whose API the embedded server implements.
    Current,
    /// Kubernetes 1.20.
    Old,
}

impl Release {
    /// The folder of the programs.
    pub(crate) fn programs(self) -> PathBuf {
        match self {
            Self::Current => kubernetes::programs(),
            Self::Old => {
                env::var_os(APISERVER_FOLDER_ENV).map_or_else(|| cache().join("bin"), PathBuf::from)
            }
        }
    }

    /// The path of a program.
    fn program(self, name: &str) -> Outcome<PathBuf> {
        let path = self.programs().join(name);
        if path.is_file() {
            return Ok(path);
        }
        // The old version uses Debian's etcd.
        if let Some(path) = find(name).filter(|_| self == Self::Old && name == "etcd") {
            return Ok(path);
        }
        Err(match (self, name) {
            (Self::Current, _) => {
                format!("{name} is missing: build it with `cargo xtask real build`")
            }
            (Self::Old, "etcd") => "etcd is missing (Debian: apt-get install etcd-server)".into(),
            (Self::Old, _) if env::var_os(APISERVER_FOLDER_ENV).is_some() => {
                format!("{APISERVER_FOLDER_ENV} is set to a folder without {name}")
            }
            (Self::Old, _) => {
                format!("{name} is missing: build it with `cargo xtask real-apiserver`")
            }
        })
    }
}

/// The folder of the old version: in the user's cache, which `cargo clean` does not delete.
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

fn shown(path: &Path) -> impl std::fmt::Display + '_ {
    path.display()
}
