//! The options of a run for failed tasks, their time limits, and their checkpoints.

use std::{
    collections::BTreeSet,
    path::{Component, Path},
    time::Duration,
};

use super::{
    ConfigError, Flags, Located, RoleSpec, RunOptions, Settings, SweepSpec, Text, Workload,
    layers::Layers,
    values::{duration_at, invalid_at},
};
use crate::restarts::{RunKey, TaskLimit, WarningSignal};

/// The time that a task may take to end after a signal, unless `termination_grace` is set.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// The settings for failed tasks, their time limits, and their checkpoints.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Restarts {
    /// The key with which tasks recognize each other, if a failed task restarts all tasks.
    pub whole_run: Option<RunKey>,
    /// The exit codes after which a task is not restarted, sorted.
    pub no_retry_exit_codes: Vec<u8>,
    /// The time limit of each attempt of a task.
    pub task_limit: Option<TaskLimit>,
    /// The folder of all checkpoints, on a volume.
    pub checkpoint_dir: Option<String>,
}

/// Merges and checks the options. `retries` is the resolved number of retries.
pub(super) fn resolve(
    settings: &Settings,
    flags: &Flags,
    retries: u32,
    roles: &[RoleSpec],
    sweep: Option<&SweepSpec>,
    workload: &Workload,
) -> Result<Restarts, ConfigError> {
    let options = Layers([&settings.run, &flags.run]);
    let restart = options.value(|run| &run.restart);
    let whole_run = restarts_all(restart, retries, sweep)?;
    let codes = || options.entries(|run| &run.no_retry_exit_codes);
    if let (true, Workload::JobSet, Some(code)) = (whole_run, workload, codes().next()) {
        let rule =
            "a JobSet that restarts all tasks does so after any exit code: remove it, or `jobset`";
        return Err(invalid_at("no_retry_exit_codes", code, rule));
    }
    if let (true, Some(timeout)) = (whole_run, options.value(|run| &run.idle_timeout)) {
        let rule = "a task that it ends would restart all tasks (`restart = \"run\"`): remove one of \
                    them";
        return Err(invalid_at("idle_timeout", timeout, rule));
    }
    let checkpoint_dir = options.value(|run| &run.checkpoint_dir);
    if let Some(folder) = checkpoint_dir {
        check_folder(folder, roles)?;
    }
    let folder = checkpoint_dir.map(|folder| folder.trim_end_matches('/').to_owned());
    Ok(Restarts {
        whole_run: whole_run.then(RunKey::random),
        no_retry_exit_codes: exit_codes(codes(), retries)?,
        task_limit: task_limit(options)?,
        checkpoint_dir: folder,
    })
}

impl Restarts {
    /// The time that a task of a role may take to end after a signal.
    #[must_use]
    pub fn grace(role: &RoleSpec) -> Duration {
        role.pods.termination_grace.unwrap_or(DEFAULT_GRACE)
    }
}

/// Returns true if a failed task restarts all tasks.
fn restarts_all(
    restart: Option<&Text>,
    retries: u32,
    sweep: Option<&SweepSpec>,
) -> Result<bool, ConfigError> {
    let Some(restart) = restart else {
        return Ok(false);
    };
    let rule = match (restart.as_str(), sweep) {
        ("task", _) => return Ok(false),
        ("run", Some(_)) => {
            "the tasks of a sweep are independent, and each is restarted alone: remove it"
                .to_owned()
        }
        ("run", None) if retries == 0 => {
            "set how often the run restarts: `retries = 3` (--retries 3)".to_owned()
        }
        ("run", None) => return Ok(true),
        _ => "use `run` to restart all tasks when one fails, or `task` to restart only that one"
            .to_owned(),
    };
    Err(invalid_at("restart", restart, rule))
}

fn exit_codes<'a>(
    codes: impl Iterator<Item = &'a Located<u8>>,
    retries: u32,
) -> Result<Vec<u8>, ConfigError> {
    let mut found = BTreeSet::new();
    for code in codes {
        if **code == 0 {
            let rule = "a task with exit code 0 has succeeded: use 1 to 255";
            return Err(invalid_at("no_retry_exit_codes", code, rule));
        }
        if retries == 0 {
            let rule =
                "no task is restarted without `retries` (--retries): set it, too, or remove this";
            return Err(invalid_at("no_retry_exit_codes", code, rule));
        }
        found.insert(**code);
    }
    Ok(found.into_iter().collect())
}

fn task_limit<const N: usize>(
    options: Layers<'_, RunOptions, N>,
) -> Result<Option<TaskLimit>, ConfigError> {
    let warning = options.value(|run| &run.timeout_warning);
    let signal = options.value(|run| &run.timeout_signal);
    let Some(limit) = options.value(|run| &run.task_timeout) else {
        for (what, value) in [("timeout_warning", warning), ("timeout_signal", signal)] {
            if let Some(value) = value {
                let rule = "it applies to the time limit of a task: set `task_timeout` (--task-timeout), too, or remove it";
                return Err(invalid_at(what, value, rule));
            }
        }
        return Ok(None);
    };
    let seconds = duration_at("task_timeout", limit)?.as_secs();
    let parsed = signal.map(|signal| {
        WarningSignal::parse(signal).ok_or_else(|| {
            let names = WarningSignal::ALL.map(|(name, _)| name).join(", ");
            invalid_at("timeout_signal", signal, format!("use one of {names}"))
        })
    });
    let parsed = parsed.transpose()?;
    let Some(warning) = warning else {
        if let Some(signal) = signal {
            let rule = "set how long before the limit it is sent, too: `timeout_warning` (--timeout-warning)";
            return Err(invalid_at("timeout_signal", signal, rule));
        }
        return Ok(Some(TaskLimit {
            seconds,
            warning: None,
            signal: WarningSignal::default(),
        }));
    };
    let before = duration_at("timeout_warning", warning)?.as_secs();
    if before >= seconds {
        let rule = format!("use a time below `task_timeout`, which is {seconds} s");
        return Err(invalid_at("timeout_warning", warning, rule));
    }
    Ok(Some(TaskLimit {
        seconds,
        warning: Some(before),
        signal: parsed.unwrap_or_default(),
    }))
}

/// Checks that the folder of checkpoints outlives the pods of all roles.
fn check_folder(folder: &Text, roles: &[RoleSpec]) -> Result<(), ConfigError> {
    let path = Path::new(folder.as_str());
    let is_plain = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !path.is_absolute() || !is_plain {
        let rule =
            "use an absolute path without `..`, on a volume of the run, as in /results/checkpoints";
        return Err(invalid_at("checkpoint_dir", folder, rule));
    }
    for role in roles {
        let mounts = role.pods.volumes.iter();
        let mut above = mounts.filter(|(_, mount)| path.starts_with(&mount.mount_path));
        let lasts = above
            .any(|(volume, mount)| volume.empty_dir.is_none() && mount.read_only != Some(true));
        if !lasts && role.pods.template.is_none() {
            let rule = format!(
                "role {} has no writable volume there that outlives its pods: add one, as in --volume claim:results:/results or host:results:/results",
                role.name
            );
            return Err(invalid_at("checkpoint_dir", folder, rule));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::super::{RunSpec, resolve};
    use super::*;

    fn spec(text: &str) -> Result<RunSpec, String> {
        let text = format!("command = ['true']\n{text}");
        let settings = Settings::parse(&text, Path::new("longshore.toml"));
        let settings = settings.map_err(|error| error.to_string())?;
        resolve(&settings, &Flags::default(), "x").map_err(|error| error.to_string())
    }

    fn restarts(text: &str) -> Restarts {
        spec(text).unwrap().restarts
    }

    #[test]
    fn the_options_are_resolved() {
        let found = restarts(
            "retries = 2\nno_retry_exit_codes = [64, 2, 64]\ntask_timeout = '1h'\ntimeout_warning = '90s'\ntimeout_signal = 'sigusr2'",
        );
        assert_eq!(found.no_retry_exit_codes, [2, 64]);
        let limit = TaskLimit {
            seconds: 3600,
            warning: Some(90),
            signal: WarningSignal::Usr2,
        };
        assert_eq!(found.task_limit, Some(limit));
        assert_eq!(found.whole_run, None);
        assert!(restarts("retries = 1\nrestart = 'run'").whole_run.is_some());
        assert_eq!(restarts("restart = 'task'"), Restarts::default());
        let limit = restarts("task_timeout = '10'").task_limit.unwrap();
        assert_eq!((limit.seconds, limit.warning), (10, None));
    }

    #[test]
    fn each_run_has_its_own_key_which_is_not_shown() {
        let key = || restarts("retries = 1\nrestart = 'run'").whole_run.unwrap();
        let (one, other) = (key(), key());
        assert_ne!(one, other);
        assert_eq!(one.bytes().len(), 64);
        assert_eq!(format!("{one:?}"), "RunKey");
    }

    #[test]
    fn the_folder_of_checkpoints_needs_a_volume_that_lasts() {
        let volume = |volume: &str| {
            let text = format!("checkpoint_dir = '/results/a/'\n[[volumes]]\n{volume}");
            spec(&text)
        };
        let found = volume("claim = 'data'\npath = '/results'").unwrap();
        assert_eq!(found.restarts.checkpoint_dir.unwrap(), "/results/a");
        for (text, rule) in [
            (
                volume("claim = 'data'\npath = '/results'\nread_only = true"),
                "no writable volume",
            ),
            (
                volume("empty = '1Gi'\npath = '/results'"),
                "no writable volume",
            ),
            (
                volume("claim = 'data'\npath = '/resu'"),
                "no writable volume",
            ),
            (
                spec("checkpoint_dir = '/a'"),
                "role main has no writable volume",
            ),
            (spec("checkpoint_dir = 'a'"), "use an absolute path"),
            (spec("checkpoint_dir = '/a/../b'"), "without `..`"),
        ] {
            let text = text.unwrap_err();
            assert!(text.contains(rule), "{text}");
        }
    }

    #[test]
    fn what_cannot_work_is_refused_with_a_remedy() {
        for (text, rule) in [
            ("restart = 'all'", "use `run` to restart all tasks"),
            ("restart = 'run'", "set how often the run restarts"),
            (
                "retries = 1\nrestart = 'run'\n[sweep]\nn = [1]",
                "the tasks of a sweep are independent",
            ),
            (
                "retries = 1\nrestart = 'run'\njobset = true\nno_retry_exit_codes = [2]",
                "a JobSet that restarts all tasks",
            ),
            ("no_retry_exit_codes = [2]", "without `retries`"),
            ("retries = 1\nno_retry_exit_codes = [0]", "use 1 to 255"),
            ("retries = 1\nno_retry_exit_codes = [256]", "line 3"),
            ("timeout_warning = '5s'", "set `task_timeout`"),
            ("timeout_signal = 'USR1'", "set `task_timeout`"),
            (
                "task_timeout = '9s'\ntimeout_signal = 'USR1'",
                "how long before the limit",
            ),
            (
                "task_timeout = '9s'\ntimeout_warning = '1s'\ntimeout_signal = 'KILL'",
                "use one of HUP, INT",
            ),
            (
                "task_timeout = '9s'\ntimeout_warning = '9s'",
                "use a time below",
            ),
            ("task_timeout = '0'", "above 0"),
        ] {
            let problem = spec(text).unwrap_err();
            assert!(problem.contains(rule), "{text}: {problem}");
        }
    }
}
