//! Resolves raw settings and flags to a checked [`RunSpec`].

use std::{collections::BTreeMap, time::Duration};

use longshore_model::name;

use super::{
    ConfigError, DEFAULT_IMAGE, DEFAULT_PORT, Flags, Input, PUBLISHED_LAUNCHER_IMAGE, PodSpec,
    RoleSettings, RoleSpec, RunSpec, Settings, Workload, position,
    settings::{Command, Scalar, Variable, VariableSource},
    source::Source,
    values::{check_quantity, duration, invalid},
    workload,
};
use crate::store::{FORMS, Store, StoreError};

/// The name of the only role if the configuration defines none.
const ONLY_ROLE: &str = "main";
/// The maximum length of a role name. With the run's name and an index, it fits a host name.
const ROLE_LENGTH: usize = 16;
/// The maximum number of tasks of a role. Their indices fit a host name.
const MOST_TASKS: u32 = 10_000;
/// The pull policies that Kubernetes knows.
const PULL_POLICIES: [&str; 3] = ["Always", "Never", "IfNotPresent"];

/// Merges the file and the flags. Flags override the file, and a role's own keys override
/// the run's. A command on the command line replaces the command of every role, except of
/// service roles with their own command.
///
/// `folder` is the name of the packed folder, the default for the run's name.
///
/// # Errors
/// Names the key or flag, its value, and the rule that it violates.
pub fn resolve(settings: &Settings, flags: &Flags, folder: &str) -> Result<RunSpec, ConfigError> {
    resolved(settings, flags, folder).map_err(|error| placed(settings, error))
}

/// Adds the position of the value in the file, if it is there.
fn placed(settings: &Settings, error: ConfigError) -> ConfigError {
    match (error, &settings.source) {
        (
            ConfigError::Value {
                what, value, rule, ..
            },
            Some(Source { path, text }),
        ) => {
            let found = position::find(text, &what, &value);
            let place = found.map(|(line, column)| format!("{}:{line}:{column}", path.display()));
            ConfigError::Value {
                what,
                value,
                rule,
                place,
            }
        }
        (error, _) => error,
    }
}

fn resolved(settings: &Settings, flags: &Flags, folder: &str) -> Result<RunSpec, ConfigError> {
    let name = flags.name.as_ref().or(settings.name.as_ref()).cloned();
    let name = name.unwrap_or_else(|| folder.to_owned());
    let namespace = flags
        .namespace
        .as_ref()
        .or(settings.namespace.as_ref())
        .cloned();
    if let Some(namespace) = &namespace {
        name::dns_label("namespace", namespace)
            .map_err(|error| invalid("namespace", namespace, error.rule()))?;
    }
    let policy = settings.image_pull_policy.clone();
    if let Some(policy) = policy
        .as_ref()
        .filter(|policy| !PULL_POLICIES.contains(&policy.as_str()))
    {
        return Err(invalid(
            "image_pull_policy",
            policy,
            format!("use one of {}", PULL_POLICIES.join(", ")),
        ));
    }
    let store = flags.store.as_ref().or(settings.store.as_ref()).cloned();
    let parsed = store.as_deref().map(Store::parse).transpose();
    let parsed = parsed.map_err(|error| match error {
        // The URL without possible secrets.
        StoreError::Url { url, problem } => {
            invalid("store", url, format!("it {problem}; use {FORMS}"))
        }
        other => invalid("store", "", other.to_string()),
    })?;
    let mut labels = settings.labels.clone();
    for flag in &flags.labels {
        let pair = flag.split_once('=');
        let (key, value) = pair.ok_or_else(|| invalid("--label", flag, "write KEY=VALUE"))?;
        labels.insert(key.to_owned(), value.to_owned());
    }
    for (key, value) in &labels {
        name::label_key(key).map_err(|error| invalid("label key", key, error.rule()))?;
        name::label_value(value)
            .map_err(|error| invalid(format!("label {key}"), value, error.rule()))?;
    }
    for key in settings.annotations.keys() {
        name::label_key(key).map_err(|error| invalid("annotation key", key, error.rule()))?;
    }
    let time = |what: &str, flag: &Option<String>, file: &Option<String>| {
        flag.as_ref()
            .or(file.as_ref())
            .map(|text| duration(what, text))
            .transpose()
    };
    let launcher_image = flags
        .launcher_image
        .as_ref()
        .or(settings.launcher_image.as_ref());
    check_image("launcher_image", launcher_image)?;
    // Pods on this machine find the program there.
    let published = PUBLISHED_LAUNCHER_IMAGE.filter(|_| flags.here.is_none());
    let account = flags.service_account.as_ref();
    let account = account.or(settings.service_account.as_ref());
    let accounts = account.map(|name| ("service_account", name));
    let pull = settings.image_pull_secrets.iter();
    for (what, name) in accounts
        .into_iter()
        .chain(pull.map(|name| ("image_pull_secrets", name)))
    {
        name::dns_subdomain("name", name).map_err(|error| invalid(what, name, error.rule()))?;
    }
    let roles = roles(settings, flags)?;
    let workload = workload::resolve(settings, flags, &roles, parsed.as_ref())?;
    let port = flags.port.or(settings.port).unwrap_or(DEFAULT_PORT);
    let spec = RunSpec {
        name,
        namespace,
        port,
        store,
        launcher_image: launcher_image.cloned().or(published.map(str::to_owned)),
        image_pull_policy: policy,
        image_pull_secrets: settings.image_pull_secrets.clone(),
        service_account: account.cloned(),
        queue: queue(flags.queue.as_ref().or(settings.queue.as_ref()))?,
        retries: flags.retries.or(settings.retries).unwrap_or(0),
        timeout: time("timeout", &flags.timeout, &settings.timeout)?,
        start_timeout: time(
            "start_timeout",
            &flags.start_timeout,
            &settings.start_timeout,
        )?
        .unwrap_or(Duration::from_secs(600)),
        peer_timeout: time("peer_timeout", &None, &settings.peer_timeout)?
            .unwrap_or(Duration::from_secs(300)),
        ttl: time("ttl", &flags.ttl, &settings.ttl)?,
        ignore: settings
            .ignore
            .iter()
            .chain(&flags.ignore)
            .cloned()
            .collect(),
        allow_secrets: settings
            .allow_secrets
            .iter()
            .chain(&flags.allow_secrets)
            .cloned()
            .collect(),
        labels,
        annotations: settings.annotations.clone(),
        restricted: flags.restricted || settings.restricted == Some(true),
        code: !flags.no_code && settings.code.unwrap_or(true),
        workload,
        roles,
        input: flags.input,
        caller: None,
    };
    check_input(&spec)?;
    let last = u32::from(port) + spec.tasks().saturating_sub(1);
    if port == 0 || last > u32::from(u16::MAX) {
        let rule = format!(
            "each of the {} tasks needs a port, counted up from this one, and the last port is 65535",
            spec.tasks()
        );
        return Err(invalid("port", port.to_string(), rule));
    }
    Ok(spec)
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

/// Checks the name of a queue, which becomes a label value.
fn queue(name: Option<&String>) -> Result<Option<String>, ConfigError> {
    if let Some(name) = name {
        name::dns_label("queue", name).map_err(|error| invalid("queue", name, error.rule()))?;
    }
    Ok(name.cloned())
}

fn roles(settings: &Settings, flags: &Flags) -> Result<Vec<RoleSpec>, ConfigError> {
    let mut counts: BTreeMap<&str, Option<u32>> = settings
        .roles
        .iter()
        .map(|(name, role)| (name.as_str(), role.count))
        .collect();
    for flag in &flags.roles {
        let rule = "write NAME=COUNT, for example worker=4";
        let (role, count) = flag
            .split_once('=')
            .ok_or_else(|| invalid("--role", flag, rule))?;
        let count = count.parse().map_err(|_| invalid("--role", flag, rule))?;
        if !settings.roles.is_empty() && !settings.roles.contains_key(role) {
            let known: Vec<&str> = settings.roles.keys().map(String::as_str).collect();
            return Err(ConfigError::UnknownRole {
                role: role.to_owned(),
                flag: flag.clone(),
                known: known.join(", "),
            });
        }
        counts.insert(role, Some(count));
    }
    if counts.is_empty() {
        counts.insert(ONLY_ROLE, Some(1));
    }
    let plain = RoleSettings::default();
    let mut roles = Vec::new();
    let names = counts.clone().into_keys();
    for (name, count) in counts {
        let own = settings.roles.get(name).unwrap_or(&plain);
        roles.extend(role(name, count.unwrap_or(1), own, settings, flags)?);
    }
    if roles.is_empty() {
        let names: Vec<&str> = names.collect();
        let what = format!("count of role {}", names.join(", "));
        return Err(invalid(what, "0", "at least one role must have a task"));
    }
    if roles.iter().all(|role| role.service) {
        let names: Vec<_> = roles.iter().map(|role| role.name.clone()).collect();
        let rule = "service roles end after the other roles: add a role that is not a service";
        return Err(invalid("service", names.join(", "), rule));
    }
    // The leader comes first, so that it has rank 0.
    roles.sort_by_key(|role| !matches!(role.name.as_str(), "chief" | "master"));
    Ok(roles)
}

fn role(
    name: &str,
    count: u32,
    own: &RoleSettings,
    settings: &Settings,
    flags: &Flags,
) -> Result<Option<RoleSpec>, ConfigError> {
    name::dns_label("role", name).map_err(|error| invalid("role", name, error.rule()))?;
    if name.len() > ROLE_LENGTH {
        return Err(invalid(
            "role",
            name,
            format!("use at most {ROLE_LENGTH} letters"),
        ));
    }
    if count > MOST_TASKS {
        let rule = format!("use at most {MOST_TASKS} tasks");
        return Err(invalid(
            format!("count of role {name}"),
            count.to_string(),
            rule,
        ));
    }
    if count == 0 {
        return Ok(None);
    }
    let service = own.service.unwrap_or(name == "ps");
    let given = Some(&flags.command)
        .filter(|command| !command.is_empty())
        .cloned();
    let own_command = own.command.as_ref().map(Command::words);
    let general = settings.command.as_ref().map(Command::words);
    let command = if service {
        own_command.or(given)
    } else {
        given.or(own_command)
    };
    let command = command.or(general).filter(|words| !words.is_empty());
    let is_named = !(settings.roles.is_empty() && flags.roles.is_empty());
    let command = command.ok_or_else(|| ConfigError::NoCommand {
        role: is_named.then(|| name.to_owned()),
    })?;
    check_command(&command)?;

    let (mut env, mut from) = variables(&settings.env, &own.env);
    for (key, value) in &flags.env_file {
        from.remove(key.as_str());
        env.insert(key.clone(), value.clone());
    }
    for flag in &flags.env {
        let (key, value) = flag
            .split_once('=')
            .ok_or_else(|| invalid("--env", flag, "write NAME=VALUE"))?;
        from.remove(key);
        env.insert(key.to_owned(), value.to_owned());
    }
    let names = env.keys().map(String::as_str).chain(from.keys().copied());
    if let Some(key) = names.into_iter().find(|key| !is_variable(key)) {
        let rule = "use letters, digits, '_', '-' and '.', not beginning with a digit";
        return Err(invalid("variable name", key, rule));
    }
    if let Some((key, _)) = env.iter().find(|(_, value)| value.contains('\0')) {
        let rule = "its value contains a NUL character, which no variable can hold";
        return Err(invalid("variable", key, rule));
    }

    let texts = |map: &BTreeMap<String, Scalar>| -> Vec<(String, String)> {
        map.iter()
            .map(|(key, value)| (key.clone(), value.to_string()))
            .collect()
    };
    let mut resources: BTreeMap<String, String> = texts(&settings.resources).into_iter().collect();
    resources.extend(texts(&own.resources));
    for (key, value) in [
        ("cpu", &flags.cpu),
        ("memory", &flags.memory),
        ("gpu", &flags.gpu),
    ] {
        if let Some(value) = value {
            check_quantity(&format!("--{key}"), value)?;
            resources.insert(key.to_owned(), value.clone());
        }
    }
    for (key, value) in &resources {
        if !matches!(key.as_str(), "cpu" | "memory" | "gpu" | "ephemeral-storage")
            && !key.contains('/')
        {
            let rule =
                "use cpu, memory, gpu, ephemeral-storage, or a full name such as amd.com/gpu";
            return Err(invalid("resource", key, rule));
        }
        check_quantity(&format!("resource {key}"), value)?;
    }
    let source = settings.source.as_ref();
    let folder = source.and_then(|source| source.path.parent());
    // Relative volume folders in the file are relative to the file.
    let below = flags
        .here
        .as_ref()
        .map(|here| folder.map_or(here.clone(), |folder| here.join(folder)));
    let (mut file, mut pods) = (settings.pods.clone(), own.pods.clone());
    for volume in file.volumes.iter_mut().chain(&mut pods.volumes) {
        volume.found_from(below.as_deref());
    }
    let run = flags.pods.over(&file, flags.here.as_deref())?;
    let image = flags
        .image
        .as_ref()
        .or(own.image.as_ref())
        .or(settings.image.as_ref());
    check_image("image", image)?;
    Ok(Some(RoleSpec {
        name: name.to_owned(),
        count,
        image: image.map_or(DEFAULT_IMAGE, String::as_str).to_owned(),
        command,
        env,
        resources,
        pods: PodSpec::resolve(&run, &pods, &from, folder)?,
        service,
    }))
}

/// Checks that a process can be started with the command.
fn check_command(command: &[String]) -> Result<(), ConfigError> {
    if command.first().is_some_and(String::is_empty) {
        return Err(invalid(
            "command",
            "",
            "its first word is the program to run",
        ));
    }
    match command.iter().find(|word| word.contains('\0')) {
        Some(word) => {
            let rule = "it contains a NUL character, which no argument can hold";
            Err(invalid("command", word.replace('\0', "\u{fffd}"), rule))
        }
        None => Ok(()),
    }
}

/// Rejects image names that no registry accepts. Registries may have stricter rules.
fn check_image(what: &str, image: Option<&String>) -> Result<(), ConfigError> {
    match image {
        Some(image) if image.is_empty() || image.contains(char::is_whitespace) => {
            let rule = "use the name of an image, such as python:3-slim, without spaces";
            Err(invalid(what, image, rule))
        }
        _ => Ok(()),
    }
}

type Sources<'a> = BTreeMap<&'a str, &'a VariableSource>;

/// The variables of a role: those with values, and those with sources.
fn variables<'a>(
    run: &'a BTreeMap<String, Variable>,
    own: &'a BTreeMap<String, Variable>,
) -> (BTreeMap<String, String>, Sources<'a>) {
    let all: BTreeMap<&String, &Variable> = run.iter().chain(own).collect();
    let (mut env, mut from) = (BTreeMap::new(), Sources::new());
    for (name, variable) in all {
        match variable {
            Variable::Plain(value) => drop(env.insert(name.clone(), value.to_string())),
            Variable::From(source) => drop(from.insert(name.as_str(), source)),
        }
    }
    (env, from)
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
