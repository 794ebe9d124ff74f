//! Prepares the command of a task.

use std::{
    collections::BTreeMap, ffi::OsString, fs, io, path::Path, process::Command, time::Duration,
};

use longshore_diagnosis::names;
use longshore_resolver::{ClusterSpec, address::split, render};

use super::{BootstrapError, Environment, Places, environment, messages::tell};
use crate::{caller::Caller, pod::PodConfig, sweep};

/// Prepares the command of a task: waits for its peers, and sets its variables and its folder.
pub(super) fn prepare(
    places: &Places,
    command: &[OsString],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Command, BootstrapError> {
    prepare_with(places, command, variable, Peers::Wait)
}

/// Whether a command waits until the names of its peers resolve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peers {
    Wait,
    Ignore,
}

/// As [`prepare`].
pub(super) fn prepare_with(
    places: &Places,
    command: &[OsString],
    variable: impl Fn(&str) -> Option<String>,
    peers: Peers,
) -> Result<Command, BootstrapError> {
    let (program, arguments) = command.split_first().ok_or(BootstrapError::NoCommand)?;
    let config = places.read_config()?;
    let role = variable("LONGSHORE_ROLE").filter(|role| !role.is_empty());
    let role = role.ok_or_else(|| BootstrapError::Variable {
        name: "LONGSHORE_ROLE",
        problem: "is not set".to_owned(),
    })?;
    let config = config.of_job(&role, &variable("LONGSHORE_JOB").unwrap_or_default());
    let index = variable("JOB_COMPLETION_INDEX")
        .or_else(|| variable("LONGSHORE_INDEX"))
        .filter(|index| !index.is_empty())
        .unwrap_or_else(|| "0".to_owned());
    let index: u32 = index.parse().map_err(|_| BootstrapError::Variable {
        name: "JOB_COMPLETION_INDEX",
        problem: format!("is {index:?}, which is not a number"),
    })?;
    let config = config.with_task(&role, index);
    if peers == Peers::Wait && config.tasks() > 1 {
        wait_for_peers(
            &config.cluster_spec(),
            Duration::from_secs(config.peer_timeout),
        )?;
    }
    let caller = match variable(names::CALLER_VARIABLE) {
        Some(text) => {
            serde_json::from_str(&text).map_err(|source| BootstrapError::Caller { source })?
        }
        None => Caller::default(),
    };
    let Environment {
        mut variables,
        kept,
        mut removed,
    } = environment(&config, &role, index, &caller, variable)?;
    removed.push(names::CALLER_VARIABLE.to_owned());
    removed.retain(|name| !variables.iter().any(|(set, _)| set == name));
    if !kept.is_empty() {
        tell(&format!(
            "{} is set by the user and is not changed",
            kept.join(", ")
        ));
    }
    variables.extend(hostfile(places, &config)?);
    let mut prepared = Command::new(program);
    match &config.sweep {
        Some(sweep) => {
            let values: BTreeMap<&str, &str> =
                sweep.combination(index).into_iter().flatten().collect();
            let fill = |word: &OsString| match word.to_str() {
                Some(word) => sweep::fill(word, |name| values.get(name).copied()).into(),
                None => word.clone(),
            };
            prepared = Command::new(fill(program));
            prepared.args(arguments.iter().map(fill));
        }
        None => {
            prepared.args(arguments);
        }
    }
    for name in removed {
        prepared.env_remove(name);
    }
    prepared.envs(variables);
    if config.bundle.is_some() {
        let work = places.work();
        make_links(&caller, &work)?;
        if config.sweep.is_some() {
            prepared.env(sweep::METRICS_VARIABLE, work.join(sweep::METRICS_FILE));
        }
        prepared.current_dir(&work).env("PWD", &work);
    }
    Ok(prepared)
}

/// Creates the caller's links in the task's folder, except where the name exists.
fn make_links(caller: &Caller, work: &Path) -> Result<(), BootstrapError> {
    for (name, target) in &caller.links {
        let path = work.join(name);
        match std::os::unix::fs::symlink(target, &path) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                return Err(BootstrapError::Write { path, source });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Writes the hostfile and returns the variable with its path.
fn hostfile(places: &Places, config: &PodConfig) -> Result<[(String, String); 1], BootstrapError> {
    let path = places.home.join(names::HOSTFILE);
    fs::write(&path, render::hostfile(&config.job())).map_err(|source| BootstrapError::Write {
        path: path.clone(),
        source,
    })?;
    let path = path.to_string_lossy().into_owned();
    Ok([("LONGSHORE_HOSTFILE".to_owned(), path)])
}

fn wait_for_peers(spec: &ClusterSpec, limit: Duration) -> Result<(), BootstrapError> {
    let mut hosts: Vec<String> = Vec::new();
    for role in spec.jobs() {
        for (_, address) in spec.tasks(role) {
            hosts.push(split(address).0.to_owned());
        }
    }
    longshore_resolver::names::wait(&hosts, limit)?;
    Ok(())
}
