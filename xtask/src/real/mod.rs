//! Real kube-apiservers, run beside etcd to judge the conformance tests: one of today,
//! which `cargo xtask real build` builds, and an old one from Debian's source package.

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

use crate::{
    kubernetes,
    packages::find,
    run::{Outcome, target},
};

/// Names a folder with a kube-apiserver to use instead of the old one built here.
pub(crate) const GIVEN: &str = "LONGSHORE_REAL_APISERVER";

/// Which kube-apiserver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// The one whose API the embedded server implements.
    Today,
    /// 1.20.
    Old,
}

impl Release {
    /// The folder of the programs.
    pub(crate) fn programs(self) -> PathBuf {
        match self {
            Self::Today => kubernetes::programs(),
            Self::Old => env::var_os(GIVEN).map_or_else(|| cache().join("bin"), PathBuf::from),
        }
    }

    /// Where a program is.
    fn program(self, name: &str) -> Outcome<PathBuf> {
        let path = self.programs().join(name);
        if path.is_file() {
            return Ok(path);
        }
        // The old one runs on Debian's etcd.
        if let Some(path) = find(name).filter(|_| self == Self::Old && name == "etcd") {
            return Ok(path);
        }
        Err(match (self, name) {
            (Self::Today, _) => {
                format!("there is no {name} yet: build it with `cargo xtask real build`")
            }
            (Self::Old, "etcd") => "etcd is missing (Debian: apt-get install etcd-server)".into(),
            (Self::Old, _) if env::var_os(GIVEN).is_some() => {
                format!("{GIVEN} names a folder without a {name}")
            }
            (Self::Old, _) => {
                format!("there is no {name} yet: build it with `cargo xtask real-apiserver`")
            }
        })
    }
}

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

fn shown(path: &Path) -> impl std::fmt::Display + '_ {
    path.display()
}
