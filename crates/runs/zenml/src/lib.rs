//! ZenML's `OrchestratorKubernetesBackend` (ZenML 0.3), by its names, labels and defaults,
//! implemented on this launcher.
//!
//! [`OrchestratorKubernetesBackend::run`] packs a repository, sends it to the pipeline's artifact
//! store and launches a Job, which fetches and checks the code, and runs the pipeline with ZenML's
//! local backend. Like any other run, it can be followed with
//! [`Follow`](longshore_launcher::Follow), listed, explained and cancelled.
//!
//! The run's Secret contains the config; arguments never do. The given config is not changed.

mod backend;
mod error;
mod keys;
mod labels;
mod launch;
mod pipeline;
mod shape;
#[cfg(test)]
mod tests;
mod values;
mod yaml;

use std::{collections::BTreeMap, fmt, path::PathBuf, str::FromStr};

use longshore_client::k8s_openapi::api::batch::v1::Job;

pub use backend::BackendArgs;
pub use error::ZenmlError;
pub use labels::FULL_LABELS;
pub use launch::Launched;
pub use pipeline::PipelineConfig;

use longshore_launcher::{
    Caller,
    config::{DEFAULT_IMAGE, RunSpec, Settings},
    plan::Plan,
    store::{BundleInfo, Delivery, SignedUrl, Store},
};

/// The default prefix of Job names.
pub const DEFAULT_JOB_PREFIX: &str = "zenml-";
/// The default namespace.
pub const DEFAULT_NAMESPACE: &str = "default";
/// The default kubeconfig.
pub const DEFAULT_KUBERNETES_CONFIG: &str = "~/.kube/config";

/// The policy for pulling an image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ImagePullPolicy {
    /// Each time.
    Always,
    /// Never; the node must have it.
    Never,
    /// If the node does not have it.
    #[default]
    IfNotPresent,
}

impl ImagePullPolicy {
    /// All names, as in Kubernetes.
    pub const NAMES: [&str; 3] = ["Always", "Never", "IfNotPresent"];

    /// The name, as in Kubernetes.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::Never => "Never",
            Self::IfNotPresent => "IfNotPresent",
        }
    }
}

impl fmt::Display for ImagePullPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ImagePullPolicy {
    type Err = ZenmlError;

    /// Rejects invalid policies, with the list of valid ones.
    ///
    /// ```
    /// use longshore_zenml::ImagePullPolicy;
    /// assert_eq!("Never".parse::<ImagePullPolicy>().unwrap(), ImagePullPolicy::Never);
    /// let problem = "never".parse::<ImagePullPolicy>().unwrap_err().to_string();
    /// assert!(problem.ends_with("choose one of Always, Never, IfNotPresent"));
    /// ```
    fn from_str(text: &str) -> Result<Self, ZenmlError> {
        let all = [Self::Always, Self::Never, Self::IfNotPresent];
        let found = all.into_iter().find(|policy| policy.as_str() == text);
        found.ok_or_else(|| ZenmlError::ImagePullPolicy {
            value: text.to_owned(),
        })
    }
}

/// Runs ZenML pipelines as Jobs.
///
/// ```
/// use longshore_zenml::{OrchestratorKubernetesBackend, PipelineConfig};
/// use serde_json::json;
///
/// let backend = OrchestratorKubernetesBackend {
///     image: "registry.example/team/zenml:1".into(),
///     ..OrchestratorKubernetesBackend::default()
/// };
/// let config = PipelineConfig::from_value(json!({
///     "pipeline": {"args": {"name": "training_Digits_8c0b0e94-1111-4222-8333-0123456789ab"}},
/// }))?;
/// let job = backend.create_job_object(&config)?;
/// let name = job.metadata.name.as_deref();
/// assert_eq!(name, Some("zenml-training-digits-8c0b0e94-1111-4222-8333-0123456789ab"));
/// let labels = job.metadata.labels.unwrap_or_default();
/// assert_eq!(labels["pipeline-id"], "8c0b0e94-1111-4222-8333-0123456789ab");
/// # Ok::<(), longshore_zenml::ZenmlError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct OrchestratorKubernetesBackend {
    /// The image: with Python, ZenML 0.3, what the pipeline needs, and the program `longshore`,
    /// unless the settings set a `launcher_image`.
    pub image: String,
    /// The prefix of the Job's name, before the pipeline's name.
    pub job_prefix: String,
    /// Labels of the Job and its pods. ZenML's own labels override them.
    pub extra_labels: BTreeMap<String, String>,
    /// Annotations of the Job.
    pub extra_annotations: BTreeMap<String, String>,
    /// The namespace. Defaults to the namespace of the settings, or [`DEFAULT_NAMESPACE`].
    pub namespace: Option<String>,
    /// The policy for pulling the image.
    pub image_pull_policy: ImagePullPolicy,
    /// The kubeconfig; `~` is the home folder.
    pub kubernetes_config_path: PathBuf,
    /// Further settings of the run, as in longshore.toml: resources, variables, volumes, a
    /// service account, a launcher image, a pod template. The fields above override them.
    /// `retries` defaults to 1. A `store` replaces the artifact store for code.
    pub settings: Settings,
    /// The environment of the calling shell, for a cluster that runs pods on this machine.
    pub caller: Option<Caller>,
}

impl Default for OrchestratorKubernetesBackend {
    fn default() -> Self {
        Self {
            image: DEFAULT_IMAGE.to_owned(),
            job_prefix: DEFAULT_JOB_PREFIX.to_owned(),
            extra_labels: BTreeMap::new(),
            extra_annotations: BTreeMap::new(),
            namespace: None,
            image_pull_policy: ImagePullPolicy::default(),
            kubernetes_config_path: DEFAULT_KUBERNETES_CONFIG.into(),
            settings: Settings::default(),
            caller: None,
        }
    }
}

impl OrchestratorKubernetesBackend {
    /// The Job that [`launch_job`](Self::launch_job) creates for this config. Sends no requests.
    ///
    /// # Errors
    /// The same as [`plan`](Self::plan); [`ZenmlError::TarPath`].
    pub fn create_job_object(&self, config: &PipelineConfig) -> Result<Job, ZenmlError> {
        let sent = config.sent()?;
        let bundle = sent.map(|(store, sha256)| described(&store, sha256));
        let plan = self.plan(config, bundle.as_ref())?;
        let job = plan.roles.into_iter().next().map(|role| role.job);
        Ok(job.unwrap_or_default())
    }

    /// The specification of a pipeline's run, without labels. Sends no requests.
    ///
    /// # Errors
    /// The same as [`plan`](Self::plan).
    pub fn spec(&self, config: &PipelineConfig) -> Result<RunSpec, ZenmlError> {
        shape::spec(self, config, &labels::Labels::default())
    }

    /// All objects of a pipeline's run: the Job, and the Secret with the config.
    /// Without a bundle, the image must contain the code. Sends no requests.
    ///
    /// # Errors
    /// The error contains the parameter, or the key of the config, and the violated rule.
    pub fn plan(
        &self,
        config: &PipelineConfig,
        bundle: Option<&BundleInfo>,
    ) -> Result<Plan, ZenmlError> {
        shape::plan(self, config, bundle)
    }
}

/// A placeholder for a bundle in a store.
fn described(store: &Store, sha256: String) -> BundleInfo {
    let delivery = match store {
        Store::Folder(root) => Delivery::Folder { root: root.clone() },
        Store::Remote(remote) => Delivery::Url(SignedUrl::new(remote.place(&sha256))),
    };
    BundleInfo {
        sha256,
        size: 0,
        delivery,
    }
}
