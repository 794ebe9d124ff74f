//! Command line flags as written.

use std::path::{Path, PathBuf};

use super::{ConfigError, Input, PodSettings, Template, Toleration, Volume, values::invalid};

/// Command line flags as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--name`.
    pub name: Option<String>,
    /// `--namespace`.
    pub namespace: Option<String>,
    /// `--image`.
    pub image: Option<String>,
    /// `--launcher-image`.
    pub launcher_image: Option<String>,
    /// Variables of `--env-file`, in order; `--env` overrides them.
    pub env_file: Vec<(String, String)>,
    /// `--env KEY=VALUE`, each; later ones win. [`pass_through`](super::pass_through) adds
    /// missing values.
    pub env: Vec<String>,
    /// `--role NAME=COUNT`, each; later ones win.
    pub roles: Vec<String>,
    /// `--cpu`, `--memory`, `--gpu`: for every role.
    pub cpu: Option<String>,
    /// See `cpu`.
    pub memory: Option<String>,
    /// See `cpu`.
    pub gpu: Option<String>,
    /// `--store URL`.
    pub store: Option<String>,
    /// `--retries N`.
    pub retries: Option<u32>,
    /// `--timeout`: how long the run may take, e.g. `90s`, `2h`.
    pub timeout: Option<String>,
    /// `--start-timeout`: how long a task may wait for its start.
    pub start_timeout: Option<String>,
    /// `--ttl`: how long the objects stay after the end.
    pub ttl: Option<String>,
    /// `--port`: the first task's port.
    pub port: Option<u16>,
    /// `--ignore PATTERN`, each.
    pub ignore: Vec<String>,
    /// `--no-code`: send no bundle.
    pub no_code: bool,
    /// `--allow-secret PATTERN`, each.
    pub allow_secrets: Vec<String>,
    /// `--label KEY=VALUE`, each.
    pub labels: Vec<String>,
    /// `--service-account`.
    pub service_account: Option<String>,
    /// `--queue`.
    pub queue: Option<String>,
    /// `--cron`: the schedule of the run.
    pub cron: Option<String>,
    /// `--time-zone`: the time zone of `cron`.
    pub time_zone: Option<String>,
    /// `--restricted`: pods meet the Pod Security Standard `restricted`.
    pub restricted: bool,
    /// `--jobset`: one JobSet instead of one Job per role.
    pub jobset: bool,
    /// `--stdin`, or both `--stdin` and `--tty`.
    pub input: Input,
    /// The current folder, if the cluster's pods share this machine's files: relative
    /// folders of `host` volumes are resolved against it.
    pub here: Option<PathBuf>,
    /// Pod settings of every role.
    pub pods: PodFlags,
    /// The command after `--`; empty when none is given.
    pub command: Vec<String>,
}

/// Flags about pods. They apply to the whole run; a role's own settings override them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodFlags {
    /// `--volume KIND:NAME:PATH[:ro]`, each.
    pub volumes: Vec<String>,
    /// `--node-selector KEY=VALUE`, each.
    pub node_selector: Vec<String>,
    /// `--toleration KEY[=VALUE][:EFFECT]`, each.
    pub tolerations: Vec<String>,
    /// `--priority-class`.
    pub priority_class: Option<String>,
    /// `--shared-memory`.
    pub shared_memory: Option<String>,
    /// `--template FILE`.
    pub template: Option<PathBuf>,
}

impl PodFlags {
    /// The file's settings overridden by the flags. `here` is the current folder, if relative
    /// folders of volumes are on this machine.
    pub(super) fn over(
        &self,
        file: &PodSettings,
        here: Option<&Path>,
    ) -> Result<PodSettings, ConfigError> {
        let mut all = file.clone();
        for flag in &self.volumes {
            let mut volume = volume(flag)?;
            volume.found_from(here);
            all.volumes.push(volume);
        }
        for flag in &self.node_selector {
            let pair = flag.split_once('=');
            let rule = "write KEY=VALUE";
            let (key, value) = pair.ok_or_else(|| invalid("--node-selector", flag, rule))?;
            all.node_selector.insert(key.to_owned(), value.to_owned());
        }
        all.tolerations
            .extend(self.tolerations.iter().map(|flag| toleration(flag)));
        all.priority_class = self.priority_class.clone().or(all.priority_class);
        all.shared_memory = self.shared_memory.clone().or(all.shared_memory);
        if let Some(path) = &self.template {
            // Paths on the command line are relative to the current folder.
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            all.template = Some(Template::File(path));
        }
        Ok(all)
    }
}

/// `claim:datasets:/data:ro`, `empty:10Gi:/scratch`, `empty::/scratch`.
fn volume(flag: &str) -> Result<Volume, ConfigError> {
    let rule = "write KIND:NAME:PATH or KIND:NAME:PATH:ro, with one of claim, secret, config-map, host, empty";
    let parts: Vec<&str> = flag.split(':').collect();
    let (kind, name, path, read_only) = match *parts.as_slice() {
        [kind, name, path] => (kind, name, path, false),
        [kind, name, path, "ro"] => (kind, name, path, true),
        _ => return Err(invalid("--volume", flag, rule)),
    };
    let mut volume = Volume {
        path: path.into(),
        read_only,
        ..Volume::default()
    };
    let named = Some(name.to_owned());
    match kind {
        "empty" => volume.empty = named,
        _ if name.is_empty() => return Err(invalid("--volume", flag, rule)),
        "claim" => volume.claim = named,
        "secret" => volume.secret = named,
        "config-map" => volume.config_map = named,
        "host" => volume.host = Some(name.into()),
        _ => return Err(invalid("--volume", flag, rule)),
    }
    Ok(volume)
}

/// Parses kubectl's notation of taints: `nvidia.com/gpu=present:NoSchedule`.
fn toleration(flag: &str) -> Toleration {
    let (pair, effect) = match flag.rsplit_once(':') {
        Some((pair, effect)) => (pair, Some(effect.to_owned())),
        None => (flag, None),
    };
    let (key, value) = match pair.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (pair, None),
    };
    Toleration {
        key: Some(key.to_owned()),
        value,
        effect,
        ..Toleration::default()
    }
}
