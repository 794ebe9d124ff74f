//! Resolves raw settings and flags to a checked [`RunSpec`].

use std::{collections::BTreeMap, time::Duration};

use longshore_model::name;

use super::{
    ConfigError, DEFAULT_PORT, Flags, Input, Located, PUBLISHED_LAUNCHER_IMAGE, RunOptions,
    RunSpec, Settings, Text, Workload, data, forward,
    layers::Layers,
    metrics, notify, restarts, role, sweep,
    values::{check_image, duration_at, invalid_at},
    webhook, workload,
};
use crate::{
    pod::IdleLimit,
    store::{FORMS, Store, StoreError},
    tag::{check_note, check_tag},
};

/// The pull policies of Kubernetes.
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
/// The error contains the key or flag, its value, and the violated rule.
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
    // Pods on this machine find the program without an image.
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
    let retries = options.value(|run| &run.retries).copied().unwrap_or(0);
    let restarts = restarts::resolve(settings, flags, retries, &roles, sweep.as_ref(), &workload)?;
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
        retries,
        restarts,
        timeout: time("timeout", |run| &run.timeout)?,
        start_timeout: time("start_timeout", |run| &run.start_timeout)?
            .unwrap_or(DEFAULT_START_TIMEOUT),
        peer_timeout: time("peer_timeout", |run| &run.peer_timeout)?
            .unwrap_or(DEFAULT_PEER_TIMEOUT),
        ttl: time("ttl", |run| &run.ttl)?,
        ignore: options.entries(|run| &run.ignore).cloned().collect(),
        allow_secrets: options.entries(|run| &run.allow_secrets).cloned().collect(),
        labels,
        tags: tags(options)?,
        note: note(options)?,
        metrics: metrics::resolve(options)?,
        notify: options
            .value(|run| &run.notify)
            .map(notify::words)
            .transpose()?
            .unwrap_or_default(),
        webhook: webhook::resolve(options)?,
        annotations,
        restricted: options.any(|run| run.restricted),
        idle: idle(options)?,
        code: !options.any(|run| run.code == Some(false)),
        workload,
        sweep,
        roles,
        input: flags.input,
        caller: None,
        excluded: Vec::new(),
        data_cache: data::cache(options)?,
        data: Vec::new(),
        forward,
        dev: None,
    };
    check_input(&spec)?;
    if spec.has_outputs() && !spec.code {
        return Err(ConfigError::OutputsWithoutCode);
    }
    let tasks = if spec.has_peers() { spec.tasks() } else { 1 };
    check_port(port, tasks, spec.restarts.whole_run.is_some())?;
    Ok(spec)
}

/// The value of an option without its position.
fn plain(option: Option<&Text>) -> Option<String> {
    option.map(|text| text.to_string())
}

fn parse_store(url: &Text) -> Result<Store, ConfigError> {
    Store::parse(url).map_err(|error| match error {
        // The URL of the error contains no secrets.
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

fn tags<const N: usize>(
    options: Layers<'_, RunOptions, N>,
) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut tags = BTreeMap::new();
    for (key, value) in options.entries(|run| &run.tags) {
        check_tag(key, value).map_err(|rule| invalid_at("tag", key, rule))?;
        tags.insert(key.to_string(), value.to_string());
    }
    Ok(tags)
}

fn note<const N: usize>(options: Layers<'_, RunOptions, N>) -> Result<Option<String>, ConfigError> {
    let Some(note) = options.value(|run| &run.note) else {
        return Ok(None);
    };
    let begin: String = note.chars().take(20).collect();
    check_note(note).map_err(|rule| invalid_at("note", &note.replaced(begin), rule))?;
    Ok(Some(note.to_string()))
}

/// The default of `idle_gpu_percent`.
const DEFAULT_IDLE_PERCENT: u32 = 5;

fn idle<const N: usize>(
    options: Layers<'_, RunOptions, N>,
) -> Result<Option<IdleLimit>, ConfigError> {
    let percent = options.value(|run| &run.idle_gpu_percent);
    if let Some(percent) = percent.filter(|percent| ***percent >= 100) {
        return Err(invalid_at("idle_gpu_percent", percent, "use 0 to 99"));
    }
    let Some(timeout) = options.value(|run| &run.idle_timeout) else {
        return match percent {
            Some(percent) => {
                let rule = "it also needs idle_timeout";
                Err(invalid_at("idle_gpu_percent", percent, rule))
            }
            None => Ok(None),
        };
    };
    Ok(Some(IdleLimit {
        seconds: duration_at("idle_timeout", timeout)?.as_secs(),
        percent: percent.map_or(DEFAULT_IDLE_PERCENT, |percent| **percent),
    }))
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

/// Checks that each task has a port, and that one more port exists for restarts of all tasks.
fn check_port(port: Located<u16>, tasks: u32, restarts: bool) -> Result<(), ConfigError> {
    let more = if restarts {
        tasks
    } else {
        tasks.saturating_sub(1)
    };
    let last = u32::from(*port).saturating_add(more);
    if *port == 0 || last > u32::from(u16::MAX) {
        let rule = format!(
            "each of the {tasks} tasks needs a port, counted up from this one, and the last port is 65535"
        );
        return Err(invalid_at("port", &port, rule));
    }
    Ok(())
}

/// Checks that only one task reads standard input, because it can be read only once.
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
