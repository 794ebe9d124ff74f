//! Errors of launching a pipeline.

use std::path::PathBuf;

use longshore_model::name::NameError;

use longshore_launcher::{
    bundle::BundleError,
    config::ConfigError,
    plan::PlanError,
    preflight::{self, Finding},
    store::{SECRET_LIMIT, StoreError},
    submit::SubmitError,
};

/// ZenML's own class.
const KUBERNETES: &str = "zenml.backends.orchestrator.kubernetes.orchestrator_kubernetes_backend.OrchestratorKubernetesBackend";
/// An error of launching a pipeline.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZenmlError {
    /// The config is not JSON.
    #[error("the pipeline's config is not JSON: {0}; pass the result of `pipeline.to_config()`")]
    Json(#[source] serde_json::Error),
    /// The config file is not YAML.
    #[error("the pipeline's config is not YAML: {0}; give a file that ZenML 0.3 wrote")]
    Yaml(String),
    /// A required key is missing.
    #[error(
        "the pipeline's config has no {path:?}; pass the result of ZenML's `pipeline.to_config()`, or a file that ZenML 0.3 wrote"
    )]
    Missing {
        /// The path of the key.
        path: String,
    },
    /// ZenML 0.3 has no such key.
    #[error("the pipeline's config has the unknown key {path:?}; {remedy}")]
    UnknownKey {
        /// The path of the key.
        path: String,
        /// The key that may have been meant, or all known keys.
        remedy: String,
    },
    /// The config is for another version of ZenML.
    #[error(
        "the pipeline's config has version {version}, but ZenML 0.3 writes \"1\"; for current versions of ZenML, the Python package has an orchestrator"
    )]
    Version {
        /// The version in the config.
        version: String,
    },
    /// The config's backend does not run pipelines on Kubernetes.
    #[error(
        "the backend {class:?} of the pipeline's config does not run pipelines on Kubernetes; set \"backend.source\" to {KUBERNETES:?}, or remove \"backend\""
    )]
    Backend {
        /// The class of the backend.
        class: String,
    },
    /// A key has a value of the wrong type.
    #[error("{path:?} of the pipeline's config must be {expected}, but is {found}")]
    Kind {
        /// The path of the key.
        path: String,
        /// The rule that it violates.
        expected: &'static str,
        /// The actual type.
        found: &'static str,
    },
    /// The pull policy is invalid.
    #[error(
        "image_pull_policy cannot be {value:?}: choose one of {}",
        super::ImagePullPolicy::NAMES.join(", ")
    )]
    ImagePullPolicy {
        /// The given value.
        value: String,
    },
    /// A label or annotation has an invalid key.
    #[error("{parameter}: {source}")]
    Key {
        /// The parameter.
        parameter: &'static str,
        /// The violated rule.
        source: NameError,
    },
    /// A setting of the launcher is invalid.
    #[error(transparent)]
    Settings(#[from] ConfigError),
    /// A pipeline is one task of one Job.
    #[error("a pipeline runs as one Job: remove `{key}` from the settings")]
    OneJob {
        /// The setting.
        key: &'static str,
    },
    /// The config does not fit a Secret.
    #[error(
        "the pipeline's config has {size} bytes, more than the {SECRET_LIMIT} that fit a Secret; keep data in the artifact store, and refer to it in the config"
    )]
    TooLarge {
        /// The size of the config in bytes.
        size: u64,
    },
    /// The code was not uploaded by `run`.
    #[error(
        "\"backend.args.tar_path\" of the pipeline's config is {tar_path:?}, which `run` did not upload; call `run`, or remove it if the image contains the code"
    )]
    TarPath {
        /// The path.
        tar_path: String,
    },
    /// The kubeconfig is invalid.
    #[error(
        "The path you provided does not contain a valid Kubernetes config. {}: {source}; give another as kubernetes_config_path",
        path.display()
    )]
    Kubeconfig {
        /// The path with the expanded home folder.
        path: PathBuf,
        /// The error of the client.
        source: longshore_client::Error,
    },
    /// The repository cannot be packed.
    #[error(transparent)]
    Pack(#[from] BundleError),
    /// The artifact store cannot hold the code.
    #[error("the artifact store cannot hold the code: {0}")]
    Store(#[from] StoreError),
    /// The plan cannot be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The cluster does not answer.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
    /// The run cannot start. Nothing was uploaded.
    #[error("the run cannot start: {}", preflight::listed(.0))]
    Refused(Vec<Finding>),
    /// The pipeline is running or has already run.
    #[error(
        "the run {name:?} already exists in namespace {namespace:?}; `longshore rm {name}` removes it, or give the pipeline another name"
    )]
    Exists {
        /// The name of the Job.
        name: String,
        /// The namespace of the Job.
        namespace: String,
    },
    /// The cluster returned an error. None of the run's objects is left in the cluster.
    #[error(transparent)]
    Submit(SubmitError),
}

impl ZenmlError {
    pub(super) fn missing(path: &str) -> Self {
        Self::Missing {
            path: path.to_owned(),
        }
    }
}
