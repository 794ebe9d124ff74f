//! `longshore.toml` as written: every key is optional, and unknown keys are errors.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde::{Deserialize, de::DeserializeOwned};
use toml::de::{DeTable, DeValue};

use super::{
    ConfigError, FILE, Located, RunOptions, TaskOptions, Text,
    keys::{self, fields},
    source::{Source, read_text},
};

/// The keys of `longshore.toml`.
///
/// ```toml
/// name = "mnist"                # default: the name of the folder
/// namespace = "team-a"          # default: the namespace of the context
/// image = "python:3-slim"
/// launcher_image = "…"          # an image with the program longshore, for images without it
/// image_pull_policy = "IfNotPresent"
/// image_pull_secrets = ["registry"]
/// service_account = "trainer"
/// command = ["python", "train.py"]
/// store = "s3://bucket/prefix"  # or file:///…, gs://…, az://…; default: a Secret, if the bundle fits
/// port = 8470
/// forward = [6006, "ps:6007"]   # ports of tasks to forward while the run is followed
/// restricted = false            # true: pods meet the Pod Security Standard `restricted`
/// retries = 0                   # how often a failed task is restarted
/// restart = "task"              # or "run": a failed task restarts all tasks
/// no_retry_exit_codes = [2]     # a task with such an exit code is not restarted
/// task_timeout = "1h"           # of each attempt of a task
/// timeout_warning = "2m"        # a signal is sent this long before task_timeout
/// timeout_signal = "USR1"       # which one
/// checkpoint_dir = "/results"   # on a volume; LONGSHORE_CHECKPOINT_DIR is a folder in it
/// timeout = "2h"
/// start_timeout = "10m"
/// peer_timeout = "5m"
/// idle_timeout = "30m"          # end tasks whose GPUs are idle for this time
/// idle_gpu_percent = 5          # up to this utilisation, a GPU is idle
/// ttl = "7d"
/// ignore = ["data/", "*.ckpt"]
/// code = true
/// allow_secrets = ["tests/key.pem"]  # include files that look like secrets
/// cron = "0 3 * * *"            # run on a schedule, as a CronJob
/// time_zone = "Europe/Berlin"   # of `cron`; default: the time zone of the cluster
/// concurrency_policy = "Forbid" # or Allow, Replace: if the previous run is still active
/// sweep_file = "runs.csv"       # combinations of a sweep, instead of [sweep]
/// samples = 20                  # random combinations of [sweep]
/// sweep_seed = 0                # of `samples`
/// parallel = 16                 # combinations of a sweep that run at the same time
/// max_failed = 3                # stop a sweep when more combinations have failed
/// metrics = ["loss"]            # metrics to read from log lines
/// jobset = false                # true: one JobSet instead of one Job per role
/// queue = "team-a"              # Kueue LocalQueue
/// outputs = ["checkpoints/**"]  # files to keep when a task ends, for `longshore outputs`
/// output_size_limit = "10Gi"    # of each task
/// output_file_limit = 10000     # of each task
/// outputs_claim = "results"     # PersistentVolumeClaim for them, instead of the store
/// outputs_every = "10m"         # keep the outputs of running tasks, too
/// note = "smaller batches"      # about the run; `longshore note` changes it
/// webhook = "secret:team-slack/url"  # called from the cluster when the run ends or is stuck
/// webhook_on = ["failed", "stuck"]   # and succeeded, cancelled
/// webhook_format = "slack"      # auto, json, slack, discord, teams
/// webhook_stuck_after = "2m"
/// webhook_account = "notifier"  # an existing service account
/// notify = ["notify-send", "run ended"]  # on this machine, when the followed run ends or waits
/// data_cache = "host:/var/cache/longshore"  # or claim:NAME: keeps data that pods fetch
/// data_cache_limit = "100Gi"
/// priority_class = "low"
/// shared_memory = "8Gi"         # size of /dev/shm
/// host_network = false          # true: pods use the network of their node
/// termination_grace = "2m"      # between SIGTERM and SIGKILL
/// node_selector = { pool = "gpu" }
/// tolerations = [{ key = "nvidia.com/gpu", operator = "Exists" }]
/// env_from = [{ secret = "tokens", prefix = "TOKEN_" }]
/// template = "pod.yaml"         # merged over each pod's template
/// cluster = "prod"              # a context of [contexts] or of the kubeconfig; or several: "a,b"
/// kubeconfig = "~/.kube/config"
///
/// [contexts.prod]               # for `--context prod`
/// context = "prod-eu"           # of the kubeconfig; default: prod
/// kubeconfig = "~/.kube/prod"
/// namespace = "team-a"          # instead of `namespace` and `store` above
/// store = "s3://bucket/prefix"
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
/// [data]
/// cifar = "./data/cifar"        # a folder of the client, or s3://, gs://, az://
/// models = { source = "s3://bucket/models", path = "/models" }
///
/// [resources]
/// cpu = "2"
/// memory = "4Gi"
///
/// [sweep]
/// lr = [0.1, 0.01]
/// seed = "1..5"
///
/// [labels]
/// team = "a"
///
/// [annotations]
/// "example.com/owner" = "…"
///
/// [tags]
/// dataset = "v2"
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
/// The keys of [`TaskOptions`] are also valid in a role: maps are merged, lists are extended,
/// and other values of the role replace the run's.
///
/// Several structs read the same table, each with its own keys, because serde's `flatten` would
/// lose the positions of the values.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The context to use. Read by the program.
    pub cluster: Option<String>,
    /// The kubeconfig file to use. Read by the program.
    pub kubeconfig: Option<String>,
    /// Clusters by name, for `--context`. Read by the program.
    pub contexts: BTreeMap<String, ContextSettings>,
    /// Options of the whole run.
    #[serde(skip)]
    pub run: RunOptions,
    /// Options of all tasks.
    #[serde(skip)]
    pub task: TaskOptions,
    /// The roles.
    #[serde(skip)]
    pub roles: BTreeMap<Text, RoleSettings>,
    /// The file, for errors.
    #[serde(skip)]
    pub source: Option<Source>,
}

/// The keys of `[contexts.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ContextSettings {
    /// The context of the kubeconfig. Defaults to NAME, or, with `kubeconfig`, to its current
    /// context.
    pub context: Option<String>,
    /// The kubeconfig, like the key at the top level.
    pub kubeconfig: Option<String>,
    /// The namespace of runs in this context, instead of the key at the top level.
    pub namespace: Option<Text>,
    /// The store of runs in this context, instead of the key at the top level.
    pub store: Option<Text>,
}

/// The keys of `[roles.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RoleSettings {
    /// The number of tasks.
    pub count: Option<Located<u32>>,
    /// True for a service role.
    pub service: Option<bool>,
    /// Options of the role's tasks, which override the options of all tasks.
    #[serde(skip)]
    pub task: TaskOptions,
}

/// A struct that reads a part of the tables of roles.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Roles<T> {
    roles: BTreeMap<Text, T>,
}

impl Settings {
    /// The valid keys of a `longshore.toml`, sorted.
    #[must_use]
    pub fn keys() -> Vec<&'static str> {
        keys_of_run()
    }

    /// The settings for runs in a context, whose namespace and store replace the file's.
    #[must_use]
    pub fn in_context(&self, name: &str) -> Self {
        let mut settings = self.clone();
        if let Some(context) = self.contexts.get(name) {
            let run = &mut settings.run;
            run.namespace = context.namespace.clone().or(run.namespace.take());
            run.store = context.store.clone().or(run.store.take());
        }
        settings
    }

    /// Parses the text of a `longshore.toml`. Errors contain `path`.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`] and [`ConfigError::UnknownKey`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let source = Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let file = DeTable::parse(text).map_err(|error| syntax(error, &source))?;
        check_keys(file.get_ref(), &source)?;
        let mut settings: Self = read(&source)?;
        settings.run = read(&source)?;
        settings.task = read(&source)?;
        settings.roles = read::<Roles<RoleSettings>>(&source)?.roles;
        let mut tasks = read::<Roles<TaskOptions>>(&source)?.roles;
        for (name, role) in &mut settings.roles {
            role.task = tasks.remove(name).unwrap_or_default();
        }
        settings.source = Some(source);
        Ok(settings)
    }

    /// Reads `longshore.toml` in a folder. Without the file, all settings have defaults.
    ///
    /// # Errors
    /// The same as [`Settings::parse`], and [`ConfigError::Read`].
    pub fn load(folder: &Path) -> Result<Self, ConfigError> {
        Self::load_file(&folder.join(FILE), false)
    }

    /// The keys of the file whose values differ in another version of it, sorted.
    #[must_use]
    pub fn changed_keys(&self, other: &Self) -> Vec<String> {
        let table = |settings: &Self| {
            let text = settings.source.as_ref().map(|source| source.text.as_str());
            toml::from_str::<toml::Table>(text.unwrap_or_default()).unwrap_or_default()
        };
        let (ours, theirs) = (table(self), table(other));
        let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        let changed = keys
            .into_iter()
            .filter(|key| ours.get(*key) != theirs.get(*key));
        changed.cloned().collect()
    }

    /// Reads a file. If `required` is true, a missing file is an error.
    ///
    /// # Errors
    /// The same as [`Settings::load`].
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

/// The keys of the file, sorted.
fn keys_of_run() -> Vec<&'static str> {
    sorted([
        fields::<Settings>(),
        fields::<Roles<RoleSettings>>(),
        fields::<RunOptions>(),
        fields::<TaskOptions>(),
    ])
}

/// The keys of a table `[roles.NAME]`, sorted.
fn keys_of_role() -> Vec<&'static str> {
    sorted([fields::<RoleSettings>(), fields::<TaskOptions>()])
}

fn sorted<const N: usize>(structs: [&[&'static str]; N]) -> Vec<&'static str> {
    let mut keys = structs.concat();
    keys.sort_unstable();
    keys
}

fn check_keys(file: &DeTable<'_>, source: &Source) -> Result<(), ConfigError> {
    keys::check(file, &keys_of_run(), None, source)?;
    check_tables(file, "roles", &keys_of_role(), source)?;
    check_tables(file, "contexts", fields::<ContextSettings>(), source)
}

/// Checks the keys of the tables below a table: `[roles.NAME]`.
fn check_tables(
    file: &DeTable<'_>,
    table: &str,
    valid: &[&str],
    source: &Source,
) -> Result<(), ConfigError> {
    let tables = file.iter().find(|(key, _)| key.get_ref() == table);
    let Some(DeValue::Table(tables)) = tables.map(|(_, tables)| tables.get_ref()) else {
        return Ok(());
    };
    for (name, options) in tables.iter() {
        if let DeValue::Table(options) = options.get_ref() {
            let name = format!("{table}.{}", name.get_ref());
            keys::check(options, valid, Some(&name), source)?;
        }
    }
    Ok(())
}

/// Reads the keys of one struct.
fn read<T: DeserializeOwned>(source: &Source) -> Result<T, ConfigError> {
    toml::from_str(&source.text).map_err(|error| syntax(error, source))
}

fn syntax(mut error: toml::de::Error, source: &Source) -> ConfigError {
    error.set_input(Some(&source.text));
    ConfigError::Syntax {
        path: source.path.clone(),
        message: for_people(error.to_string().trim_end()),
    }
}

/// Replaces Rust's integer types in a message by ranges.
fn for_people(message: &str) -> String {
    message
        .replace("expected u8", "expected a number from 0 to 255")
        .replace("expected u16", "expected a number from 0 to 65535")
        .replace("expected u32", "expected a number from 0 to 4294967295")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::{
        super::{Command, Scalar, Variable},
        *,
    };

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

    /// The example in the documentation of [`Settings`].
    fn documented() -> String {
        let lines = include_str!("settings.rs").lines();
        let mut lines = lines.skip_while(|line| *line != "/// ```toml").skip(1);
        let lines = lines
            .by_ref()
            .map_while(|line| line.strip_prefix("///"))
            .take_while(|line| *line != " ```");
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_documentation_has_exactly_the_keys_of_the_structs() {
        let text = documented();
        parse(&text).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let mut keys: Vec<&str> = table.keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, keys_of_run());
        let role = &table["roles"]["worker"];
        for key in keys_of_role() {
            let is_of_all_tasks = keys.contains(&key);
            assert!(is_of_all_tasks || role.get(key).is_some(), "{key}");
        }
    }

    #[test]
    fn values_of_tasks_keep_their_types() {
        let settings = parse("command = 'echo $A'\n[env]\nA = 1\nB = true\nC = 'x'").unwrap();
        let command = settings.task.command.unwrap();
        assert_eq!(command, Command::Line("echo $A".into()));
        let env: Vec<(&str, &Variable)> = settings
            .task
            .env
            .iter()
            .map(|(name, variable)| (name.as_str(), variable))
            .collect();
        assert_eq!(
            env,
            [
                ("A", &Variable::Plain(Scalar::Integer(1))),
                ("B", &Variable::Plain(Scalar::Truth(true))),
                ("C", &Variable::Plain(Scalar::Text("x".into()))),
            ]
        );
    }

    #[test]
    fn a_wrong_type_is_reported_with_its_line() {
        let error = parse("name = 'a'\nport = 'high'").unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        for (text, line, expected) in [
            (
                "name = 'a'\ncommand = 3",
                2,
                "a list of strings, or one string",
            ),
            ("command = ['a', 3]", 1, "expected a string"),
            (
                "[env]\nA = []",
                2,
                "a string, a number, true, false, or a source",
            ),
            ("[env]\nA = { secrt = 'a' }", 2, "unknown field `secrt`"),
            (
                "template = 3",
                1,
                "a file name, or a pod template as a table",
            ),
            (
                "[roles.a]\nresources = { cpu = [] }",
                2,
                "a string, a number, true or false",
            ),
            ("[labels]\nteam = 3", 2, "expected a string"),
            ("roles = 3", 1, "expected a map"),
            ("[roles]\na = 3", 2, "expected struct RoleSettings"),
            (
                "[roles.a]\ncount = -1",
                2,
                "expected a number from 0 to 4294967295",
            ),
            ("[[volumes]]\npth = '/a'", 2, "unknown field `pth`"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("line {line}, ")), "{text}: {error}");
            assert!(error.contains(expected), "{text}: {error}");
        }
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
