//! The Go modules whose suites run.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{download, kubebuilder, kueue};
use crate::run::{Outcome, run_command, target};

/// The suites of a Go module.
pub(super) struct Module {
    pub(super) path: &'static str,
    pub(super) version: &'static str,
    /// Adds to a copy of the module what its suites need, as its Makefile does, and returns the
    /// folder that the packages are relative to.
    prepare: Option<fn(&Path) -> Outcome<PathBuf>>,
    /// Packages with a Ginkgo suite that uses envtest.
    pub(super) packages: &'static [&'static str],
}

pub(super) const MODULES: &[Module] = &[
    Module {
        path: "sigs.k8s.io/controller-runtime",
        version: "v0.25.2",
        prepare: None,
        packages: &[
            "pkg/envtest",
            "pkg/client",
            "pkg/cache",
            "pkg/controller",
            "pkg/internal/controller",
            "pkg/internal/recorder",
            "pkg/manager",
            "pkg/cluster",
            "pkg/builder",
            "pkg/source",
            "pkg/webhook",
        ],
    },
    Module {
        path: "sigs.k8s.io/jobset",
        version: "v0.11.1",
        prepare: None,
        packages: &["test/integration/controller", "test/integration/webhook"],
    },
    Module {
        path: "sigs.k8s.io/lws",
        version: "v0.8.0",
        prepare: None,
        packages: &["test/integration/controllers", "test/integration/webhooks"],
    },
    Module {
        path: "sigs.k8s.io/kueue",
        version: "v0.17.0",
        prepare: Some(kueue::prepare),
        packages: &[
            "test/integration/singlecluster/webhook/core",
            "test/integration/singlecluster/webhook/jobs",
            "test/integration/singlecluster/controller/core",
            "test/integration/singlecluster/controller/dra",
            "test/integration/singlecluster/controller/jobs/job",
            "test/integration/singlecluster/controller/jobs/jobset",
            "test/integration/singlecluster/controller/jobs/pod",
            "test/integration/singlecluster/scheduler",
            "test/integration/singlecluster/scheduler/fairsharing",
            "test/integration/singlecluster/tas",
        ],
    },
    Module {
        path: "sigs.k8s.io/kubebuilder/v4",
        version: "v4.16.0",
        prepare: Some(kubebuilder::prepare),
        packages: &["internal/controller", "internal/webhook/v1"],
    },
];

impl Module {
    /// The name of a package's suite.
    pub(super) fn suite(&self, package: &str) -> String {
        format!("{}/{package}", self.path)
    }

    /// Downloads the module through Go's client and prepares it. Returns the folder that the
    /// packages are relative to.
    pub(super) fn folder(&self) -> Outcome<PathBuf> {
        let module = download::folder(
            &std::env::temp_dir(),
            &format!("{}@{}", self.path, self.version),
        )?;
        let Some(prepare) = self.prepare else {
            return Ok(module);
        };
        let name = self.path.replace('/', "-");
        let copy = target().join(format!("operators/{name}-{}", self.version));
        let prepared = copy.join(".prepared");
        if let Ok(folder) = fs::read_to_string(&prepared) {
            return Ok(folder.into());
        }
        if copy.exists() {
            fs::remove_dir_all(&copy).map_err(|error| format!("{}: {error}", copy.display()))?;
        }
        // The modes are not copied, because files of modules are read-only.
        run_command(
            Command::new("cp")
                .args(["--recursive", "--no-preserve=mode"])
                .args([&module, &copy]),
        )?;
        let folder = prepare(&copy)?;
        fs::write(&prepared, folder.display().to_string())
            .map_err(|error| format!("{}: {error}", prepared.display()))?;
        Ok(folder)
    }
}
