//! The orchestrator backend that a config names, and its arguments. Pure.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::{Map, Value};

use super::{
    OrchestratorKubernetesBackend, PipelineConfig, ZenmlError,
    keys::{below, given, unknown_key},
    values::wrong,
};
use longshore_launcher::config::Settings;

/// The class that runs pipelines in the current process, and is ZenML's default.
const LOCAL: &str = "OrchestratorBaseBackend";
const ARGS: &str = "backend.args";
/// The arguments of ZenML's class; `settings` of this package's class; the location of the code,
/// which a launch adds.
const KNOWN: [&str; 9] = [
    "image",
    "job_prefix",
    "extra_labels",
    "extra_annotations",
    "namespace",
    "image_pull_policy",
    "kubernetes_config_path",
    "settings",
    "tar_path",
];

/// The arguments of a config's orchestrator backend. Missing arguments are `None` or empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackendArgs {
    /// The image.
    pub image: Option<String>,
    /// The prefix of the Job's name.
    pub job_prefix: Option<String>,
    /// Labels of the Job and its pods.
    pub extra_labels: BTreeMap<String, String>,
    /// Annotations of the Job.
    pub extra_annotations: BTreeMap<String, String>,
    /// The namespace.
    pub namespace: Option<String>,
    /// The policy for pulling the image.
    pub image_pull_policy: Option<String>,
    /// The kubeconfig.
    pub kubernetes_config_path: Option<PathBuf>,
    /// The path of a longshore.toml.
    pub settings: Option<PathBuf>,
}

impl BackendArgs {
    /// Reads the arguments in a config. The result is empty if the config has no backend, or the
    /// one that runs pipelines in the current process.
    ///
    /// # Errors
    /// [`ZenmlError::Backend`] if the class does not run pipelines on Kubernetes;
    /// [`ZenmlError::UnknownKey`] and [`ZenmlError::Kind`] name the argument.
    pub fn of(config: &PipelineConfig) -> Result<Self, ZenmlError> {
        let backend = config.value().get("backend");
        let Some(Value::Object(backend)) = backend.filter(|backend| !backend.is_null()) else {
            return Ok(Self::default());
        };
        let source = given(backend, "source").map_or("", |source| source.as_str().unwrap_or(""));
        let class = source.split('@').next().unwrap_or_default();
        match class.rsplit('.').next().unwrap_or_default() {
            "" | LOCAL => Ok(Self::default()),
            "OrchestratorKubernetesBackend" => match given(backend, "args") {
                None => Ok(Self::default()),
                Some(Value::Object(args)) => Self::read(args),
                Some(other) => Err(wrong(ARGS, "a mapping", other)),
            },
            _ => Err(ZenmlError::Backend {
                class: class.to_owned(),
            }),
        }
    }

    fn read(args: &Map<String, Value>) -> Result<Self, ZenmlError> {
        if let Some(key) = args.keys().find(|key| !KNOWN.contains(&key.as_str())) {
            return Err(unknown_key(ARGS, key, KNOWN.into_iter()));
        }
        let text = |key| match given(args, key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(wrong(&below(ARGS, key), "a text", other)),
        };
        Ok(Self {
            image: text("image")?,
            job_prefix: text("job_prefix")?,
            extra_labels: texts(args, "extra_labels")?,
            extra_annotations: texts(args, "extra_annotations")?,
            namespace: text("namespace")?,
            image_pull_policy: text("image_pull_policy")?,
            kubernetes_config_path: text("kubernetes_config_path")?.map(PathBuf::from),
            settings: text("settings")?.map(PathBuf::from),
        })
    }

    /// Creates the backend with these arguments. The image and the namespace of the settings are
    /// used if the arguments have none.
    ///
    /// # Errors
    /// [`ZenmlError::ImagePullPolicy`].
    pub fn backend(self, settings: Settings) -> Result<OrchestratorKubernetesBackend, ZenmlError> {
        let default = OrchestratorKubernetesBackend::default();
        let of_settings = settings.task.image.as_ref();
        let of_settings = of_settings.map(|image| image.as_str().to_owned());
        let policy = self.image_pull_policy.or_else(|| {
            let policy = settings.run.image_pull_policy.as_ref();
            policy.map(|policy| policy.as_str().to_owned())
        });
        Ok(OrchestratorKubernetesBackend {
            image: self.image.or(of_settings).unwrap_or(default.image),
            job_prefix: self.job_prefix.unwrap_or(default.job_prefix),
            extra_labels: self.extra_labels,
            extra_annotations: self.extra_annotations,
            namespace: self.namespace,
            image_pull_policy: match policy {
                Some(policy) => policy.parse()?,
                None => default.image_pull_policy,
            },
            kubernetes_config_path: self
                .kubernetes_config_path
                .unwrap_or(default.kubernetes_config_path),
            settings,
            caller: None,
        })
    }
}

/// A mapping of texts. Numbers become texts as written.
fn texts(
    args: &Map<String, Value>,
    key: &'static str,
) -> Result<BTreeMap<String, String>, ZenmlError> {
    let path = below(ARGS, key);
    let map = match given(args, key) {
        None => return Ok(BTreeMap::new()),
        Some(Value::Object(map)) => map,
        Some(other) => return Err(wrong(&path, "a mapping", other)),
    };
    let entries = map.iter().map(|(key, value)| match value {
        Value::String(text) => Ok((key.clone(), text.clone())),
        Value::Number(number) => Ok((key.clone(), number.to_string())),
        other => Err(wrong(&below(&path, key), "a text", other)),
    });
    entries.collect()
}
