//! Prepares the command of a task.

use std::{
    collections::BTreeMap, ffi::OsString, fs, io, path::Path, process::Command, time::Duration,
};

use longshore_diagnosis::names::{self, Task};
use longshore_resolver::render;

use super::{
    BootstrapError, Environment, Places, attempt, data::hold_data, environment, messages::tell,
    peers, task::this_task,
};
use crate::{caller::Caller, pod::PodConfig, sweep};

/// The command of a task, ready to start.
pub(super) struct Prepared {
    pub(super) command: Command,
    pub(super) config: PodConfig,
    pub(super) task: Task,
    /// The number of replacements of the task's pod.
    pub(super) replaced: u32,
}

impl Prepared {
    /// The time that the task may take to end after a signal.
    pub(super) fn grace(&self) -> Duration {
        let own = self
            .config
            .roles
            .iter()
            .find(|own| own.name == self.task.role);
        Duration::from_secs(own.map_or(0, |own| own.grace))
    }
}

/// Prepares the command of a task: waits for its peers, and sets its variables and its folder.
pub(super) fn prepare(
    places: &Places,
    command: &[OsString],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Prepared, BootstrapError> {
    prepare_with(places, command, variable, Peers::Wait)
}

/// Decides if a command waits until the names of its peers resolve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peers {
    Wait,
    Ignore,
}

/// Like [`prepare`], but with an explicit handling of the peers.
pub(super) fn prepare_with(
    places: &Places,
    command: &[OsString],
    variable: impl Fn(&str) -> Option<String>,
    wanted: Peers,
) -> Result<Prepared, BootstrapError> {
    let (program, arguments) = command.split_first().ok_or(BootstrapError::NoCommand)?;
    let config = places.read_config()?;
    let Task { role, index } = this_task(&variable)?;
    let config = config.of_job(&role, &variable("LONGSHORE_JOB").unwrap_or_default());
    let config = config.with_task(&role, index);
    hold_data(&config, &role);
    let replaced = attempt::replaced(&variable);
    if wanted == Peers::Wait && config.tasks() > 1 {
        let limit = Duration::from_secs(config.peer_timeout);
        // If tasks restart together, no task has ended.
        match attempt::is_retried(&variable) && config.restarts.together.is_none() {
            true => peers::wait_again(&config.job(), (&role, index), limit, tell),
            false => peers::wait(&config.job(), limit)?,
        }
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
    removed.extend(attempt::VARIABLES.map(str::to_owned));
    variables.push(attempt::variable(replaced.saturating_add(1)));
    variables.extend(checkpoints(&config, index)?);
    removed.retain(|name| !variables.iter().any(|(set, _)| set == name));
    // The task itself has already reported this in its log.
    if !kept.is_empty() && wanted == Peers::Wait {
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
    let work = places.work();
    if config.bundle.is_some() {
        let own = config.roles.iter().find(|own| own.name == role);
        for (path, target) in own.into_iter().flat_map(|own| &own.links) {
            link(&work.join(path), Path::new(target))?;
        }
        make_links(&caller, &work)?;
        prepared.current_dir(&work).env("PWD", &work);
    } else {
        // The metrics file needs the folder.
        fs::create_dir_all(&work).map_err(|source| BootstrapError::Write {
            path: work.clone(),
            source,
        })?;
    }
    prepared.env(names::METRICS_VARIABLE, work.join(names::METRICS_FILE));
    Ok(Prepared {
        command: prepared,
        config,
        task: Task { role, index },
        replaced,
    })
}

/// Creates the run's folder for checkpoints, and returns the variable with its path. Each
/// combination of a sweep has its own folder.
fn checkpoints(config: &PodConfig, index: u32) -> Result<Option<(String, String)>, BootstrapError> {
    let Some(all) = &config.restarts.checkpoint_dir else {
        return Ok(None);
    };
    let mut path = Path::new(all).join(&config.run);
    if let Some(sweep) = &config.sweep {
        // A combination that is run again by `longshore retry` keeps its folder.
        let retry = sweep.retry.as_ref();
        let first = retry.and_then(|retry| Some((&retry.of, retry.indices.get(index as usize)?)));
        let (run, index) = first.unwrap_or((&config.run, &index));
        path = Path::new(all).join(run).join(index.to_string());
    }
    fs::create_dir_all(&path).map_err(|source| BootstrapError::Write {
        path: path.clone(),
        source,
    })?;
    let text = path.to_string_lossy().into_owned();
    Ok(Some(("LONGSHORE_CHECKPOINT_DIR".to_owned(), text)))
}

/// Creates a link in the task's folder to data or a volume.
fn link(path: &Path, target: &Path) -> Result<(), BootstrapError> {
    let failed = |source| BootstrapError::Write {
        path: path.to_owned(),
        source,
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    // The code may contain an empty folder at this path. Any other entry stays, and causes an
    // error.
    let _ = fs::remove_dir(path);
    match std::os::unix::fs::symlink(target, path) {
        // The command starts again in the same folder.
        Err(_) if fs::read_link(path).is_ok_and(|found| found == target) => Ok(()),
        result => result.map_err(failed),
    }
}

/// Creates the recorded links of the invoking shell in the task's folder, except where the name
/// exists.
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
