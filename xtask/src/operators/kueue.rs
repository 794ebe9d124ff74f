//! Kueue: its suites need the definitions of the kinds that it queues, from other modules.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::download;
use crate::{
    kubernetes,
    run::{Outcome, output},
};

/// Folders of definitions: the name that the suites expect, the module, and its folder.
const DEFINITIONS: &[(&str, &str, &str)] = &[
    (
        "appwrapper-crds",
        "github.com/project-codeflare/appwrapper",
        "config/crd/bases",
    ),
    (
        "cluster-autoscaler",
        "k8s.io/autoscaler/cluster-autoscaler/apis",
        "config/crd",
    ),
    (
        "jobset-operator",
        "sigs.k8s.io/jobset",
        "config/components/crd/bases",
    ),
    (
        "kf-trainer-crds",
        "github.com/kubeflow/trainer/v2",
        "manifests/base/crds",
    ),
    (
        "kf-trainer-runtimes",
        "github.com/kubeflow/trainer/v2",
        "manifests/base/runtimes",
    ),
    (
        "leaderworkerset-operator",
        "sigs.k8s.io/lws",
        "config/crd/bases",
    ),
    (
        "mpi-operator",
        "github.com/kubeflow/mpi-operator",
        "manifests/base",
    ),
    (
        "ray-operator-crds",
        "github.com/ray-project/kuberay/ray-operator",
        "config/crd/bases",
    ),
    (
        "spark-operator-crds",
        "github.com/kubeflow/spark-operator/v2",
        "config/crd/bases",
    ),
    (
        "training-operator-crds",
        "github.com/kubeflow/training-operator",
        "manifests/base/crds",
    ),
];

/// Kueue omits this file, because mpi-operator defines the same kind.
const DUPLICATE: &str = "kubeflow.org_mpijobs.yaml";

/// Builds Kueue's definitions and collects definitions of other projects, as `make
/// compile-crd-manifests dep-crds` does.
pub(super) fn prepare(copy: &Path) -> Outcome<PathBuf> {
    let definitions = copy.join("config/components/crd");
    let text = output(
        Command::new(kubernetes::programs().join("kubectl"))
            .arg("kustomize")
            .arg(&definitions),
    )?;
    let built = definitions.join("_output");
    create(&built)?;
    write(&built.join("crds-with-webhooks.yaml"), &text)?;
    for (name, module, from) in DEFINITIONS {
        let to = copy.join("dep-crds").join(name);
        create(&to)?;
        let from = download::folder(copy, module)?.join(from);
        for entry in fs::read_dir(&from).map_err(|error| format!("{}: {error}", from.display()))? {
            let path = entry.map_err(|error| error.to_string())?.path();
            let name = path.file_name().unwrap_or_default();
            let left_out = *module == "github.com/kubeflow/training-operator" && name == DUPLICATE;
            if path.is_file() && !left_out {
                fs::copy(&path, to.join(name))
                    .map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
    }
    Ok(copy.to_owned())
}

fn create(folder: &Path) -> Outcome {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn write(path: &Path, text: &str) -> Outcome {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
