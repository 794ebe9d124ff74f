//! `longshore.toml` as written: every key is optional, and unknown keys are errors.

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;

use super::{
    ConfigError, FILE, keys,
    pods::PodSettings,
    source::{Source, read_text},
};

/// The keys of `longshore.toml`.
///
/// ```toml
/// name = "mnist"                # default: the name of the folder
/// namespace = "team-a"          # default: that of the context
/// image = "python:3-slim"
/// launcher_image = "…"          # an image with the program longshore, for images without it
/// image_pull_policy = "IfNotPresent"
/// image_pull_secrets = ["registry"]
/// service_account = "trainer"
/// command = ["python", "train.py"]
/// store = "s3://bucket/prefix"  # or file:///…, gs://…, az://…; default: a Secret, if the bundle fits
/// port = 8470
/// restricted = false            # true: pods meet the Pod Security Standard `restricted`
/// retries = 0
/// timeout = "2h"
/// start_timeout = "10m"
/// peer_timeout = "5m"
/// ttl = "7d"
/// ignore = ["data/", "*.ckpt"]
/// code = true
/// allow_secrets = ["tests/key.pem"]  # include files that look like secrets
/// cron = "0 3 * * *"            # run on a schedule, as a CronJob
/// time_zone = "Europe/Berlin"   # of `cron`; default: that of the cluster
/// concurrency_policy = "Forbid" # or Allow, Replace: if the previous run is still active
/// jobset = false                # true: one JobSet instead of one Job per role
/// queue = "team-a"              # Kueue LocalQueue
/// priority_class = "low"
/// shared_memory = "8Gi"         # size of /dev/shm
/// termination_grace = "2m"      # between SIGTERM and SIGKILL
/// node_selector = { pool = "gpu" }
/// tolerations = [{ key = "nvidia.com/gpu", operator = "Exists" }]
/// env_from = [{ secret = "tokens", prefix = "TOKEN_" }]
/// template = "pod.yaml"         # merged over each pod's template
/// cluster = "prod"              # a kubeconfig context
/// kubeconfig = "~/.kube/config"
///
/// [env]
/// EPOCHS = "3"
/// TOKEN = { secret = "hub", key = "token" }
/// NODE = { field = "spec.nodeName" }
///
/// [[volumes]]
/// claim = "datasets"            # or secret, config_map, host, empty = "10Gi"
/// path = "/data"
/// read_only = true
///
/// [affinity.nodeAffinity]       # as in a pod's spec
///
/// [resources]
/// cpu = "2"
/// memory = "4Gi"
///
/// [labels]
/// team = "a"
///
/// [annotations]
/// note = "…"
///
/// [roles.worker]
/// count = 2
/// command = ["python", "train.py"]
/// image = "…"
/// service = false               # true: stopped when the other roles have ended; default for "ps"
/// env = { ROLE = "worker" }
/// resources = { gpu = "1" }
/// ```
///
/// The keys from `priority_class` to `[affinity]` are also valid in a role: maps are merged,
/// lists are extended, and other values of the role replace those of the run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The run's name.
    pub name: Option<String>,
    /// The namespace.
    pub namespace: Option<String>,
    /// The image of every role.
    pub image: Option<String>,
    /// The image that contains the program.
    pub launcher_image: Option<String>,
    /// The pull policy.
    pub image_pull_policy: Option<String>,
    /// Secrets with registry credentials.
    pub image_pull_secrets: Vec<String>,
    /// The service account.
    pub service_account: Option<String>,
    /// The command of every role.
    pub command: Option<Command>,
    /// The store for bundles.
    pub store: Option<String>,
    /// The first task's port.
    pub port: Option<u16>,
    /// The number of times to restart failed tasks.
    pub retries: Option<u32>,
    /// The maximum duration of the run.
    pub timeout: Option<String>,
    /// The maximum time until a task starts.
    pub start_timeout: Option<String>,
    /// How long a task waits until its peers' names resolve.
    pub peer_timeout: Option<String>,
    /// How long to keep the objects after the run ends.
    pub ttl: Option<String>,
    /// Patterns of files to exclude.
    pub ignore: Vec<String>,
    /// Whether to upload code.
    pub code: Option<bool>,
    /// The kubeconfig context to use; read by the program.
    pub cluster: Option<String>,
    /// The kubeconfig file to use; read by the program.
    pub kubeconfig: Option<String>,
    /// Environment of every role.
    pub env: BTreeMap<String, Variable>,
    /// Resources of every role.
    pub resources: BTreeMap<String, Scalar>,
    /// Labels of every object.
    pub labels: BTreeMap<String, String>,
    /// Annotations of every object.
    pub annotations: BTreeMap<String, String>,
    /// Patterns of files to include although they look like secrets.
    pub allow_secrets: Vec<String>,
    /// The Kueue LocalQueue that admits the run.
    pub queue: Option<String>,
    /// The schedule of the run, in cron syntax.
    pub cron: Option<String>,
    /// The time zone of `cron`.
    pub time_zone: Option<String>,
    /// What happens when a run is due while the previous one is still active.
    pub concurrency_policy: Option<String>,
    /// Whether pods meet the Pod Security Standard `restricted`.
    pub restricted: Option<bool>,
    /// Whether to create one JobSet for all roles.
    pub jobset: Option<bool>,
    /// Further pod settings of every role.
    #[serde(flatten)]
    pub pods: PodSettings,
    /// The roles.
    pub roles: BTreeMap<String, RoleSettings>,
    /// The file, for errors.
    #[serde(skip)]
    pub source: Option<Source>,
}

/// The keys of `[roles.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RoleSettings {
    /// The number of tasks.
    pub count: Option<u32>,
    /// The command.
    pub command: Option<Command>,
    /// The image.
    pub image: Option<String>,
    /// Whether it is a service role.
    pub service: Option<bool>,
    /// Environment, which overrides the run's.
    pub env: BTreeMap<String, Variable>,
    /// Resources, which override the run's.
    pub resources: BTreeMap<String, Scalar>,
    /// Further pod settings, which override the run's.
    #[serde(flatten)]
    pub pods: PodSettings,
}

/// A command: a list of strings, or one string that a shell reads.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a list of strings, or one string")]
pub enum Command {
    /// Program and arguments.
    Words(Vec<String>),
    /// A command line for `sh -c`.
    Line(String),
}

impl Command {
    /// The program and its arguments.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::Words(words) => words.clone(),
            Self::Line(line) if line.trim().is_empty() => Vec::new(),
            Self::Line(line) => vec!["sh".into(), "-c".into(), line.clone()],
        }
    }
}

/// The value of a variable, or its source.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "a string, a number, true, false, or a source, as in { secret = \"name\", key = \"key\" }"
)]
pub enum Variable {
    /// The value.
    Plain(Scalar),
    /// A key of a Secret or a ConfigMap, or a field of the pod.
    From(VariableSource),
}

/// The source of a variable: a Secret, a ConfigMap, or a field of the pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VariableSource {
    /// The name of a Secret.
    pub secret: Option<String>,
    /// The name of a ConfigMap.
    pub config_map: Option<String>,
    /// The key in it; defaults to the name of the variable.
    pub key: Option<String>,
    /// A field of the pod, as in `spec.nodeName`.
    pub field: Option<String>,
}

/// A string, number or boolean: users write all of them for variables and quantities.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a string, a number, true or false")]
pub enum Scalar {
    /// A string.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Number(f64),
    /// A boolean.
    Truth(bool),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(number) => number.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Truth(truth) => truth.fmt(f),
        }
    }
}

impl Settings {
    /// Parses the text of a `longshore.toml`; errors contain `path`.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`] and [`ConfigError::UnknownKey`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let syntax = |error: toml::de::Error| ConfigError::Syntax {
            path: path.to_owned(),
            message: for_people(error.to_string().trim_end()),
        };
        let source = Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let table: toml::Table = toml::from_str(text).map_err(syntax)?;
        keys::check(&table, keys::KEYS, &[], &source)?;
        if let Some(toml::Value::Table(roles)) = table.get("roles") {
            for (role, value) in roles {
                if let toml::Value::Table(settings) = value {
                    keys::check(settings, keys::ROLE_KEYS, &["roles", role], &source)?;
                }
            }
        }
        let mut settings: Self = toml::from_str(text).map_err(syntax)?;
        settings.source = Some(source);
        Ok(settings)
    }

    /// Reads `longshore.toml` in a folder. Without the file, all settings have defaults.
    ///
    /// # Errors
    /// As [`Settings::parse`], and [`ConfigError::Read`].
    pub fn load(folder: &Path) -> Result<Self, ConfigError> {
        Self::load_file(&folder.join(FILE), false)
    }

    /// Reads a file. `required`: whether a missing file is an error.
    ///
    /// # Errors
    /// As [`Settings::load`].
    pub fn load_file(path: &Path, required: bool) -> Result<Self, ConfigError> {
        match read_text(path) {
            Ok(text) => Self::parse(&text, path),
            Err(error) if !required && error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Self::default())
            }
            Err(source) => Err(ConfigError::Read {
                path: path.to_owned(),
                source,
            }),
        }
    }
}

/// Replaces Rust's integer types by ranges.
fn for_people(message: &str) -> String {
    message
        .replace("expected u16", "expected a number from 0 to 65535")
        .replace("expected u32", "expected a number from 0 to 4294967295")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Settings, ConfigError> {
        Settings::parse(text, Path::new("longshore.toml"))
    }

    #[test]
    fn unknown_keys_get_the_closest_valid_key() {
        let error = parse("comand = ['true']").unwrap_err().to_string();
        assert!(
            error.starts_with("longshore.toml:1:1: unknown key `comand`, did you mean `command`?"),
            "{error}"
        );
        let error = parse("[roles.worker]\nreplicas = 2")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(
                "longshore.toml:2:1: unknown key `roles.worker.replicas`; valid keys in [roles.worker]: affinity, command, count"
            ),
            "{error}"
        );
        let error = parse("[roles.worker]\ncounts = 2").unwrap_err().to_string();
        assert!(error.contains("did you mean `count`?"), "{error}");
        let error = parse("image-pull-policy = 'Never'")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("did you mean `image_pull_policy`?"),
            "{error}"
        );
    }

    #[test]
    fn every_documented_key_is_parsed() {
        for key in keys::KEYS {
            assert!(!matches!(
                parse(&format!("{key} = {{}}")),
                Err(ConfigError::UnknownKey { .. })
            ));
        }
        let settings = parse("command = 'echo $A'\n[env]\nA = 1\nB = true\nC = 'x'").unwrap();
        assert_eq!(settings.command.unwrap().words(), ["sh", "-c", "echo $A"]);
        let env: Vec<String> = settings
            .env
            .values()
            .map(|value| match value {
                Variable::Plain(value) => value.to_string(),
                Variable::From(from) => panic!("{from:?}"),
            })
            .collect();
        assert_eq!(env, ["1", "true", "x"]);
    }

    #[test]
    fn a_wrong_type_is_reported_with_its_line() {
        let error = parse("name = 'a'\nport = 'high'").unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,200}") {
            let _ = parse(&text);
        }

        #[test]
        fn no_key_panics(key in "[a-z_.]{1,20}", value in "[0-9a-z\"\\[\\]{}=]{0,10}") {
            let _ = parse(&format!("{key} = {value}\n[roles.{key}]\n{key} = {value}"));
        }
    }
}
