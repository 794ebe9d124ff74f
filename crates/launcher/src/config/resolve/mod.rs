//! Resolves raw settings and flags to a checked [`RunSpec`].

use std::{collections::BTreeMap, time::Duration};

use longshore_model::name;

use super::{
    ConfigError, DEFAULT_PORT, Flags, Input, Located, PUBLISHED_LAUNCHER_IMAGE, RunOptions,
    RunSpec, Settings, Text, Workload, forward,
    layers::Layers,
    role, sweep,
    values::{check_image, duration_at, invalid_at},
    workload,
};
use crate::store::{FORMS, Store, StoreError};

/// The pull policies that Kubernetes knows.
const PULL_POLICIES: [&str; 3] = ["Always", "Never", "IfNotPresent"];
const DEFAULT_START_TIMEOUT: Duration = Duration::from_secs(600);
const DEFAULT_PEER_TIMEOUT: Duration = Duration::from_secs(300);

/// Merges the file and the flags. Flags override the file, and a role's own keys override
/// the run's. A command on the command line replaces the command of every role, except of
/// service roles with their own command.
///
/// `folder` is the name of the packed folder, the default for the run's name.
///
/// # Errors
/// Names the key or flag, its value, and the rule that it violates.
pub fn resolve(settings: &Settings, flags: &Flags, folder: &str) -> Result<RunSpec, ConfigError> {
    let source = settings.source.as_ref();
    resolve_options(settings, flags, folder).map_err(|error| error.in_file(source))
}

fn resolve_options(
    settings: &Settings,
    flags: &Flags,
    folder: &str,
) -> Result<RunSpec, ConfigError> {
    let options = Layers([&settings.run, &flags.run]);
    let namespace = options.value(|run| &run.namespace);
    check_label("namespace", namespace)?;
    let pull_policy = options.value(|run| &run.image_pull_policy);
    if let Some(policy) = pull_policy.filter(|policy| !PULL_POLICIES.contains(&policy.as_str())) {
        let rule = format!("use one of {}", PULL_POLICIES.join(", "));
        return Err(invalid_at("image_pull_policy", policy, rule));
    }
    let store = options.value(|run| &run.store);
    let parsed = store.map(parse_store).transpose()?;
    let labels = labels(options)?;
    let annotations = annotations(options)?;
    let launcher_image = options.value(|run| &run.launcher_image);
    check_image("launcher_image", launcher_image)?;
    // Pods on this machine find the program there.
    let published = PUBLISHED_LAUNCHER_IMAGE.filter(|_| flags.here.is_none());
    let service_account = options.value(|run| &run.service_account);
    check_names("service_account", service_account)?;
    let pull_secrets: Vec<&Text> = options.entries(|run| &run.image_pull_secrets).collect();
    check_names("image_pull_secrets", pull_secrets.iter().copied())?;
    let mut roles = role::resolve(settings, flags)?;
    let workload = workload::resolve(settings, flags, &roles, parsed.as_ref())?;
    let sweep = sweep::resolve(settings, flags)?;
    sweep::apply(sweep.as_ref(), &mut roles, &workload)?;
    let forward = forward::resolve(options.entries(|run| &run.forward), &roles)?;
    let queue = options.value(|run| &run.queue);
    check_label("queue", queue)?;
    let port = options.value(|run| &run.port).copied();
    let port = port.unwrap_or_else(|| DEFAULT_PORT.into());
    let time = |what, option: fn(&RunOptions) -> &Option<Text>| {
        let text = options.value(option);
        text.map(|text| duration_at(what, text)).transpose()
    };
    let name = options.value(|run| &run.name).cloned();
    let spec = RunSpec {
        name: name.unwrap_or_else(|| folder.to_owned()),
        namespace: plain(namespace),
        port: *port,
        store: plain(store),
        launcher_image: plain(launcher_image).or(published.map(str::to_owned)),
        image_pull_policy: plain(pull_policy),
        image_pull_secrets: pull_secrets.iter().map(|name| name.to_string()).collect(),
        service_account: plain(service_account),
        queue: plain(queue),
        retries: options.value(|run| &run.retries).copied().unwrap_or(0),
        timeout: time("timeout", |run| &run.timeout)?,
        start_timeout: time("start_timeout", |run| &run.start_timeout)?
            .unwrap_or(DEFAULT_START_TIMEOUT),
        peer_timeout: time("peer_timeout", |run| &run.peer_timeout)?
            .unwrap_or(DEFAULT_PEER_TIMEOUT),
        ttl: time("ttl", |run| &run.ttl)?,
        ignore: options.entries(|run| &run.ignore).cloned().collect(),
        allow_secrets: options.entries(|run| &run.allow_secrets).cloned().collect(),
        labels,
        annotations,
        restricted: options.any(|run| run.restricted),
        code: !options.any(|run| run.code == Some(false)),
        workload,
        sweep,
        roles,
        input: flags.input,
        caller: None,
        forward,
        dev: None,
    };
    check_input(&spec)?;
    if spec.has_outputs() && !spec.code {
        return Err(ConfigError::OutputsWithoutCode);
    }
    check_port(port, if spec.has_peers() { spec.tasks() } else { 1 })?;
    Ok(spec)
}

/// The value of an option without its position.
fn plain(option: Option<&Text>) -> Option<String> {
    option.map(|text| text.to_string())
}

fn parse_store(url: &Text) -> Result<Store, ConfigError> {
    Store::parse(url).map_err(|error| match error {
        // The URL without possible secrets.
        StoreError::Url {
            url: shown,
            problem,
        } => {
            let rule = format!("it {problem}; use {FORMS}");
            invalid_at("store", &url.replaced(shown), rule)
        }
        other => invalid_at("store", &url.replaced(""), other.to_string()),
    })
}

fn labels<const N: usize>(
    options: Layers<'_, RunOptions, N>,
) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut labels = BTreeMap::new();
    for (key, value) in options.entries(|run| &run.labels) {
        labels.insert(key, value);
    }
    for (key, value) in &labels {
        name::label_key(key).map_err(|error| invalid_at("label key", key, error.rule()))?;
        name::label_value(value)
            .map_err(|error| invalid_at(format!("label {key}"), value, error.rule()))?;
    }
    let labels = labels.into_iter();
    Ok(labels
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect())
}

fn annotations<const N: usize>(
    options: Layers<'_, RunOptions, N>,
) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut annotations = BTreeMap::new();
    for (key, value) in options.entries(|run| &run.annotations) {
        name::label_key(key).map_err(|error| invalid_at("annotation key", key, error.rule()))?;
        annotations.insert(key.to_string(), value.clone());
    }
    Ok(annotations)
}

/// Checks the name of a namespace or a queue.
fn check_label(what: &'static str, text: Option<&Text>) -> Result<(), ConfigError> {
    let Some(text) = text else { return Ok(()) };
    name::dns_label(what, text).map_err(|error| invalid_at(what, text, error.rule()))
}

/// Checks the names of objects.
fn check_names<'a>(
    what: &str,
    names: impl IntoIterator<Item = &'a Text>,
) -> Result<(), ConfigError> {
    for text in names {
        let check = name::dns_subdomain("name", text);
        check.map_err(|error| invalid_at(what, text, error.rule()))?;
    }
    Ok(())
}

/// Each task needs a port.
fn check_port(port: Located<u16>, tasks: u32) -> Result<(), ConfigError> {
    let last = u32::from(*port).saturating_add(tasks.saturating_sub(1));
    if *port == 0 || last > u32::from(u16::MAX) {
        let rule = format!(
            "each of the {tasks} tasks needs a port, counted up from this one, and the last port is 65535"
        );
        return Err(invalid_at("port", &port, rule));
    }
    Ok(())
}

/// Standard input has one reader and can be read only once.
fn check_input(spec: &RunSpec) -> Result<(), ConfigError> {
    let flag = match spec.input {
        Input::None => return Ok(()),
        Input::Piped => "-i",
        Input::Terminal => "-it",
    };
    let problem = match (spec.tasks(), &spec.workload) {
        (_, Workload::Scheduled(_)) => ", and a scheduled run has no client: remove it".to_owned(),
        (1, _) if spec.retries > 0 => {
            ", which a retry could not read again: remove `retries`".to_owned()
        }
        (1, _) => return Ok(()),
        (tasks, _) => format!(", and this run has {tasks}: leave it out, or run one task"),
    };
    Err(ConfigError::Input { flag, problem })
}

#[cfg(test)]
mod tests;
