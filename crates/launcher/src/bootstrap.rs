//! Runs in the pod before the command: fetches the code, resolves the peers, sets the
//! frameworks' variables, and executes the command. Uses only mounted files and DNS, never
//! the API.

mod source;
pub mod supervise;
mod terminal;

pub(crate) use source::copy as copy_bundle;

use std::{
    ffi::OsString,
    fs,
    io::{self, Seek as _},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use flate2::read::MultiGzDecoder;
use longshore_archive::{Unpack, UnpackError, unpack};
use longshore_resolver::{
    ClusterSpec, SpecError,
    address::split,
    names::NamesError,
    render::{self, RenderError},
};

use crate::{
    caller::Caller,
    names,
    pod::{self, PodConfig},
    ready_note,
    store::{DownloadError, RetryPolicy, download},
};

/// The termination message file of a container.
const LAST_WORDS: &str = "/dev/termination-log";

/// Why a task cannot run its command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// The run's configuration file is missing or invalid.
    #[error("cannot read the run's configuration {}: {problem}; this command only runs in the pods of a run", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A required variable is missing or invalid.
    #[error("the variable {name} {problem}; this command only runs in the pods of a run")]
    Variable {
        /// Its name.
        name: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The bundle was removed before the task read it.
    #[error(
        "the bundle {} no longer exists; submit the run again to upload its code again",
        path.display()
    )]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// The bundle cannot be read.
    #[error("cannot read the bundle {}: {source}; check that the store is mounted on this node", path.display())]
    Bundle {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The bundle is a pipe, a device or a folder: its content may change while it is
    /// read.
    #[error(
        "the bundle {} is not a regular file; delete it from the store and submit the run again",
        path.display()
    )]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// The recorded environment of the caller cannot be read.
    #[error("cannot read the variable {}: {source}", names::CALLER_VARIABLE)]
    Caller {
        /// The cause.
        source: serde_json::Error,
    },
    /// The bundle cannot be fetched.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// The bundle differs from the one that was uploaded.
    #[error(
        "the bundle {place} is damaged: its sha256 is {found}, not {expected}; delete it from the store and submit the run again"
    )]
    Damaged {
        /// The file, or the location in the store.
        place: String,
        /// The sha256 of the bundle found.
        found: String,
        /// The sha256 of the uploaded bundle.
        expected: String,
    },
    /// The bundle cannot be unpacked.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// A folder cannot be created, or a file cannot be copied.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The run does not have this task.
    #[error("this pod is not a task of the run: {0}")]
    Task(#[from] SpecError),
    /// The run's tasks do not form a valid cluster spec.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// Peers whose names did not resolve in time.
    #[error(transparent)]
    Peers(#[from] NamesError),
    /// No command was given.
    #[error("no command to run: give one after `--`")]
    NoCommand,
    /// The command does not exist.
    #[error("command not found: {0}")]
    NotFound(String),
    /// The command cannot be run.
    #[error("cannot run {command}: {source}")]
    CannotRun {
        /// The command.
        command: String,
        /// The cause.
        source: io::Error,
    },
}

impl BootstrapError {
    /// The exit code: 127 if the command does not exist and 126 if it cannot be executed, as
    /// in shells; 125 for earlier failures.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound(_) => 127,
            Self::CannotRun { .. } => 126,
            _ => 125,
        }
    }
}

/// The folders in a pod. Tests use other ones.
#[derive(Debug, Clone)]
pub struct Places {
    /// The run's volume.
    pub home: PathBuf,
    /// The run's Secret.
    pub config: PathBuf,
    /// The bundle's Secret, or the store.
    pub bundle: PathBuf,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            home: names::HOME.into(),
            config: names::CONFIG.into(),
            bundle: names::BUNDLE_DIR.into(),
        }
    }
}

impl Places {
    fn work(&self) -> PathBuf {
        self.home.join(names::WORK_FOLDER)
    }

    fn read_config(&self) -> Result<PodConfig, BootstrapError> {
        let path = self.config.join(pod::FILE);
        let error = |problem: String| BootstrapError::Config {
            path: path.clone(),
            problem,
        };
        let text = fs::read(&path).map_err(|source| error(source.to_string()))?;
        serde_json::from_slice(&text).map_err(|source| error(source.to_string()))
    }
}

/// Fetches the code: reads the bundle, verifies its sha256, and unpacks it.
///
/// # Errors
/// See [`BootstrapError`]. The error is also written to the termination message.
pub fn fetch() -> Result<(), BootstrapError> {
    last_words(fetch_into(&Places::default()))
}

/// Like [`fetch`], with explicit folders.
///
/// # Errors
/// See [`BootstrapError`].
pub fn fetch_into(places: &Places) -> Result<(), BootstrapError> {
    let config = places.read_config()?;
    let work = places.work();
    let write = |source| BootstrapError::Write {
        path: work.clone(),
        source,
    };
    let wanted = config.bundle.as_ref();
    if wanted.is_some_and(|bundle| is_ready(places, &bundle.sha256)) {
        return Ok(());
    }
    // A restarted container starts from scratch.
    match fs::remove_dir_all(&work) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(write(error)),
        _ => {}
    }
    fs::create_dir_all(&work).map_err(write)?;
    let Some(bundle) = config.bundle else {
        return Ok(());
    };
    // In the pod's own volume, which only the pod writes to. The file is removed on every
    // path, so that the command can use its space.
    let fetched = tempfile::Builder::new()
        .prefix("bundle-")
        .tempfile_in(&places.home);
    let mut fetched = fetched.map_err(|source| BootstrapError::Write {
        path: places.home.clone(),
        source,
    })?;
    let (place, found) = match &bundle.download {
        Some(from) => {
            let found = download(&from.url, from.size, fetched.path(), RetryPolicy::default());
            (from.url.place(), found?)
        }
        None => {
            let path = places.bundle.join(&bundle.file);
            let found = source::copy(&path, fetched.as_file_mut())?;
            (path.display().to_string(), found)
        }
    };
    if found != bundle.sha256 {
        return Err(BootstrapError::Damaged {
            place,
            found,
            expected: bundle.sha256,
        });
    }
    // Unpack the copy that was hashed, not the store's file, which may have changed.
    let file = fetched.as_file_mut();
    file.rewind().map_err(|source| BootstrapError::Bundle {
        path: places.home.clone(),
        source,
    })?;
    let file = io::BufReader::with_capacity(1 << 16, file);
    unpack(MultiGzDecoder::new(file), &work, &Unpack::default(), |_| ())?;
    Ok(())
}

/// Whether the node has placed an unpacked copy of the code. The note is removed first, so
/// that a container that restarts at any point fetches the code again.
fn is_ready(places: &Places, sha256: &str) -> bool {
    let path = places.home.join(names::READY);
    let found = fs::read_to_string(&path).ok();
    let is_noted = found.is_some() && found == ready_note::note(sha256);
    let is_removed = fs::remove_file(&path).is_ok();
    is_noted && is_removed && fs::symlink_metadata(places.work()).is_ok_and(|work| work.is_dir())
}

/// Copies this program into a folder, for containers whose image does not contain it.
///
/// # Errors
/// The folder cannot be written.
pub fn install(folder: &Path) -> Result<(), BootstrapError> {
    let result = (|| {
        let target = folder.join("longshore");
        let write = |source| BootstrapError::Write {
            path: target.clone(),
            source,
        };
        let program = std::env::current_exe().map_err(write)?;
        fs::create_dir_all(folder).map_err(write)?;
        fs::copy(program, &target).map(drop).map_err(write)
    })();
    last_words(result)
}

/// Waits for the peers, sets the variables, and runs the command. Replaces this process,
/// unless it is the first process of a container: then it supervises the command and
/// returns its exit code.
///
/// # Errors
/// See [`BootstrapError`]. The error is also written to the termination message.
pub fn exec(command: &[OsString]) -> Result<i32, BootstrapError> {
    let places = Places::default();
    let run = || {
        let mut prepared = prepare(&places, command, |name| std::env::var(name).ok())?;
        terminal::wait_for_size();
        let ended = match supervise::is_first() {
            true => supervise::supervise(&mut prepared),
            false => Err(prepared.exec()),
        };
        let name = command.first().map(|word| word.to_string_lossy());
        let name = name.unwrap_or_default().into_owned();
        ended.map_err(|source| cannot_run(name, source, &places.work()))
    };
    last_words(run())
}

/// Writes an error to the termination message. The container runtime creates the file;
/// without it, the log still has the error.
fn leave(error: &BootstrapError) {
    let file = fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(LAST_WORDS);
    if let Ok(mut file) = file {
        let _ = io::Write::write_all(&mut file, format!("longshore: {error}").as_bytes());
    }
}

fn last_words<T>(result: Result<T, BootstrapError>) -> Result<T, BootstrapError> {
    if let Err(error) = &result {
        leave(error);
    }
    result
}

fn cannot_run(command: String, source: io::Error, work: &Path) -> BootstrapError {
    // A missing interpreter or library also yields "not found".
    let is_path = command.contains('/');
    let exists = is_path && work.join(&command).exists();
    match source.kind() {
        io::ErrorKind::NotFound if !exists => BootstrapError::NotFound(command),
        _ => BootstrapError::CannotRun { command, source },
    }
}

/// The changes to the environment of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Names and values.
    pub variables: Vec<(String, String)>,
    /// Framework variables that the user sets and that stay unchanged.
    pub kept: Vec<&'static str>,
    /// Variables that the task must not have.
    pub removed: Vec<String>,
}

/// The environment of a task: the caller's recorded shell variables, the run, the task's
/// role and index, and the frameworks' variables. The user's own variables win.
///
/// # Errors
/// [`BootstrapError::Task`] for a task that the run does not have.
pub fn environment(
    config: &PodConfig,
    role: &str,
    index: u32,
    caller: &Caller,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Environment, BootstrapError> {
    let job = config.job();
    let own = config.roles.iter().find(|known| known.name == role);
    let address = job.spec().task_address(role, index)?.to_owned();
    let count = own.map_or(0, |own| own.tasks.len());
    let mut environment = Environment::default();
    for (name, value) in &caller.env {
        match value {
            Some(value) if name == "PATH" => {
                let path = with_program(value);
                environment.variables.push((name.clone(), path));
            }
            Some(value) => environment.variables.push((name.clone(), value.clone())),
            None => environment.removed.push(name.clone()),
        }
    }
    let mut set = |name: &str, value: String| environment.variables.push((name.to_owned(), value));
    set("LONGSHORE_RUN", config.run.clone());
    set("LONGSHORE_ROLE", role.to_owned());
    set("LONGSHORE_INDEX", index.to_string());
    set("LONGSHORE_COUNT", count.to_string());
    set("LONGSHORE_CLUSTER", job.spec().as_dict().to_string());
    set("LONGSHORE_ADDRESS", address);
    let users = own.map(|own| &own.env);
    let by_user = |name: &str| {
        let planned = users.and_then(|env| env.get(name).cloned());
        planned.or_else(|| variable(name))
    };
    // Otherwise Python buffers its output until the end.
    if by_user("PYTHONUNBUFFERED").is_none() {
        set("PYTHONUNBUFFERED", "1".to_owned());
    }
    for (name, value) in job.variables(role, index)? {
        match by_user(name) {
            None => set(name, value),
            Some(own) if own == value => {}
            Some(_) => environment.kept.push(name),
        }
    }
    let users = users.into_iter().flatten();
    let users = users.map(|(name, value)| (name.clone(), value.clone()));
    environment.variables.extend(users);
    Ok(environment)
}

/// The caller's `PATH`, with the folder of this program at its end, so that tasks find it.
fn with_program(path: &str) -> String {
    let program = std::env::current_exe().ok();
    let folder = program
        .as_deref()
        .and_then(Path::parent)
        .and_then(Path::to_str);
    match folder {
        Some(folder) if !path.split(':').any(|known| known == folder) => format!("{path}:{folder}"),
        _ => path.to_owned(),
    }
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

fn prepare(
    places: &Places,
    command: &[OsString],
    variable: impl Fn(&str) -> Option<String>,
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
    if config.tasks() > 1 {
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
    for name in removed {
        prepared.env_remove(name);
    }
    prepared.args(arguments).envs(variables);
    if config.bundle.is_some() {
        let work = places.work();
        make_links(&caller, &work)?;
        prepared.current_dir(&work).env("PWD", &work);
    }
    Ok(prepared)
}

/// A line in the task's log.
#[expect(clippy::print_stderr, reason = "the log of a task is its output")]
fn tell(line: &str) {
    eprintln!("longshore: {line}");
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

#[cfg(test)]
#[path = "bootstrap_tests.rs"]
mod tests;
