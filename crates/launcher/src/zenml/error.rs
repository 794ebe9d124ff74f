//! Why a pipeline is not launched.

use std::path::PathBuf;

use longshore_model::name::NameError;

use crate::{
    bundle::BundleError,
    config::ConfigError,
    plan::PlanError,
    preflight::Finding,
    store::{SECRET_LIMIT, StoreError},
    submit::SubmitError,
};

/// Why a pipeline is not launched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZenmlError {
    /// The config is no JSON.
    #[error("the pipeline's config is no JSON: {0}; give what `pipeline.to_config()` gives")]
    Json(#[source] serde_json::Error),
    /// A key that is needed is not there.
    #[error(
        "the pipeline's config has no {path:?}; give what ZenML's `pipeline.to_config()` gives"
    )]
    Missing {
        /// The key, with those it is under.
        path: &'static str,
    },
    /// A key has a value of another kind.
    #[error("{path:?} of the pipeline's config must be {expected}, but is {found}")]
    Kind {
        /// The key, with those it is under.
        path: &'static str,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A pull policy that Kubernetes does not know.
    #[error(
        "image_pull_policy cannot be {value:?}: choose one of {}",
        super::ImagePullPolicy::NAMES.join(", ")
    )]
    ImagePullPolicy {
        /// What was given.
        value: String,
    },
    /// A label or an annotation whose key Kubernetes does not take.
    #[error("{parameter}: {source}")]
    Key {
        /// The parameter it stands in.
        parameter: &'static str,
        /// What is wrong with it.
        source: NameError,
    },
    /// A setting of the launcher has no meaning.
    #[error(transparent)]
    Settings(#[from] ConfigError),
    /// A pipeline is one task of one Job.
    #[error("a pipeline runs as one Job: leave `{key}` out of the settings")]
    OneJob {
        /// The setting.
        key: &'static str,
    },
    /// The config does not fit a Secret.
    #[error(
        "the pipeline's config has {size} bytes, more than the {SECRET_LIMIT} that fit a Secret; keep data in the artifact store, and its place in the config"
    )]
    TooLarge {
        /// Its size.
        size: u64,
    },
    /// The code was sent by somebody else.
    #[error(
        "\"backend.args.tar_path\" of the pipeline's config is {tar_path:?}, which `run` has not sent; call `run`, or leave it out if the image has the code"
    )]
    TarPath {
        /// The path.
        tar_path: String,
    },
    /// The kubeconfig leads nowhere.
    #[error(
        "The path you provided does not contain a valid Kubernetes config. {}: {source}; give another as kubernetes_config_path",
        path.display()
    )]
    Kubeconfig {
        /// The path, with the home folder in it.
        path: PathBuf,
        /// What is wrong.
        source: longshore_client::Error,
    },
    /// The repository cannot be packed.
    #[error(transparent)]
    Pack(#[from] BundleError),
    /// The artifact store does not take the code.
    #[error("the artifact store cannot hold the code: {0}")]
    Store(#[from] StoreError),
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The cluster does not answer.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
    /// Something keeps the run from starting. Nothing was sent.
    #[error("the run cannot start: {}", listed(.0))]
    Refused(Vec<Finding>),
    /// The pipeline runs, or ran, already.
    #[error(
        "the run {name:?} is in namespace {namespace:?} already; `longshore rm {name}` removes it, or give the pipeline another name"
    )]
    Exists {
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
    },
    /// The cluster refused. Nothing of the run is left in it.
    #[error(transparent)]
    Submit(SubmitError),
}

fn listed(findings: &[Finding]) -> String {
    let each: Vec<String> = findings.iter().map(ToString::to_string).collect();
    each.join("; ")
}
