//! Runs: launched folders of code.

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use futures::stream;
use jiff::Timestamp;
use longshore::{
    Cluster as Connection, Error,
    launcher::{
        Caller, Flags, Follow, FollowOptions, LaunchError, LaunchOptions, Owner, Purpose,
        Run as Inner, Settings, Store,
        bundle::Report,
        caller::current_folder,
        config::{self, SweepEntry, resolve},
        launch::folder_name,
        metrics::{self, MetricSources},
        names, preflight,
        run_outputs::LocalOutputs,
        runs,
        submit::submit,
        suggest, sweeps,
        tag::TagChange,
        why::why,
    },
};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyDict};
use serde_json::Value;

use crate::{
    cluster::Cluster,
    errors::{Failure, raise},
    face::Face,
    outputs,
    stream::{Piece, Stream},
    tracking,
    value::{from_serde, to_json},
    wait::{limit, within},
};

/// A launched run.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct Run {
    pub(crate) cluster: Connection,
    pub(crate) face: Face,
    pub(crate) run: Inner,
    pub(crate) tar_path: Option<String>,
    pub(crate) packed: Option<Report>,
    pub(crate) warnings: Vec<String>,
    /// The outputs of the cluster, if it keeps any.
    pub(crate) kept: Option<LocalOutputs>,
    /// The maximum time until a task starts, if the run's specification is known.
    pub(crate) start_timeout: Option<Duration>,
    pub(crate) allowed: Allowed,
}

/// True if a run may be changed.
#[derive(Debug, Clone)]
pub(crate) enum Allowed {
    /// This process has launched the run, or the user selected runs of all users.
    Always,
    /// If this is the current user.
    IfOwn(Option<Owner>),
}

impl Allowed {
    /// The rule for a run of a list.
    pub(crate) fn of(found: &runs::RunSummary, all_users: bool) -> Self {
        match all_users {
            true => Self::Always,
            false => Self::IfOwn(found.owner.clone()),
        }
    }

    async fn check(self, cluster: &Connection, run: &Inner) -> Result<(), runs::RunsError> {
        match self {
            Self::Always => Ok(()),
            Self::IfOwn(owner) => runs::check_own(cluster, run, owner.as_ref()).await,
        }
    }
}

/// The settings that override a folder's `longshore.toml`: its keys, except the keys of [`Flags`].
fn flags(options: &Bound<'_, PyDict>, mut flags: Flags) -> PyResult<Flags> {
    let mut json = to_json(options)?;
    if let Value::Object(fields) = &mut json {
        fields.retain(|_, value| !value.is_null());
    }
    let invalid = |problem: &dyn std::fmt::Display| PyTypeError::new_err(problem.to_string());
    let text = toml::to_string(&json).map_err(|error| invalid(&error))?;
    let path = Path::new("the arguments of run()");
    let settings = Settings::parse(&text, path).map_err(|error| invalid(&error))?;
    if let Some(remedy) = unused(&settings) {
        return Err(invalid(&remedy));
    }
    (flags.run, flags.task) = (settings.run, settings.task);
    // TOML tables have no order, Python's dicts have.
    if let Some(sweep) = options.get_item("sweep")?
        && let Ok(sweep) = sweep.cast::<PyDict>()
    {
        let order: Vec<String> = sweep.keys().extract()?;
        let position = |entry: &SweepEntry| match entry {
            SweepEntry::Parameter(name, _) => order.iter().position(|known| *known == **name),
            SweepEntry::Combination(_) => None,
        };
        flags.run.sweep.sort_by_key(position);
    }
    Ok(flags)
}

/// Returns a hint if a call has a key of `longshore.toml` that it does not apply.
fn unused(settings: &Settings) -> Option<String> {
    let unused = [
        (
            settings.kubeconfig.is_some() || settings.cluster.is_some(),
            "kubeconfig",
            "give cluster=longshore.Cluster(kubeconfig=...)",
        ),
        (
            !settings.contexts.is_empty(),
            "contexts",
            "write them in longshore.toml, and give the name of one as cluster",
        ),
        (
            !settings.roles.is_empty(),
            "roles",
            "give the number of tasks by role, and write the rest in longshore.toml",
        ),
        (
            !settings.run.forward.is_empty(),
            "forward",
            "only the commands `longshore run`, `attach` and `forward` forward ports",
        ),
        (
            settings.run.notify.is_some(),
            "notify",
            "only the command `longshore run` notifies; call Run.wait() instead",
        ),
    ];
    let found = unused.into_iter().find(|(is_given, ..)| *is_given);
    found.map(|(_, key, remedy)| format!("run() does not apply the key {key}: {remedy}"))
}

/// A command: a program with its arguments, or a line for a shell.
#[derive(FromPyObject)]
pub(crate) enum Command {
    #[pyo3(transparent)]
    Line(String),
    #[pyo3(transparent)]
    Words(Vec<String>),
}

impl Command {
    fn words(self) -> Vec<String> {
        match self {
            Self::Words(words) => words,
            Self::Line(line) => {
                let words = config::Command::Line(line).words();
                words.iter().map(ToString::to_string).collect()
            }
        }
    }
}

/// The keys of `longshore.toml`, sorted.
#[pyfunction]
pub(crate) fn settings_keys() -> Vec<&'static str> {
    Settings::keys()
}

/// The candidate that is closest to a mistyped word, if one is close.
#[pyfunction]
pub(crate) fn nearest(word: &str, candidates: Vec<String>) -> Option<String> {
    suggest::nearest(word, candidates.iter().map(String::as_str)).map(str::to_owned)
}

/// The environment of this process, for tasks on this machine. Its interpreter comes first in
/// `PATH`, also if its virtual environment is not activated.
fn caller(py: Python<'_>) -> PyResult<Caller> {
    let executable: Option<PathBuf> = py.import("sys")?.getattr("executable")?.extract()?;
    let own = executable.and_then(|path| path.parent().map(PathBuf::from));
    let variable = |name: &str| {
        let value = env::var_os(name);
        match &own {
            Some(own) if name == "PATH" => {
                let known = value.unwrap_or_default();
                let folders = std::iter::once(own.clone()).chain(env::split_paths(&known));
                env::join_paths(folders).ok().or(Some(known))
            }
            _ => value,
        }
    };
    Ok(Caller::record(variable, &current_folder()?).caller)
}

/// Packs a folder, uploads it and launches a run of it.
#[pyfunction]
#[pyo3(signature = (
    cluster, folder, *, command, roles, env, cpu=None, memory=None, gpu=None, context=None, options
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn launch<'py>(
    py: Python<'py>,
    cluster: &Bound<'py, Cluster>,
    folder: PathBuf,
    command: Command,
    roles: Vec<String>,
    env: Vec<String>,
    cpu: Option<String>,
    memory: Option<String>,
    gpu: Option<String>,
    context: Option<&str>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let is_local = cluster.get().code_folder.is_some();
    let given = Flags {
        command: command.words(),
        roles,
        env,
        cpu,
        memory,
        gpu,
        here: is_local.then(current_folder).transpose()?,
        ..Flags::default()
    };
    let flags = flags(options, given)?.with_environment(|name| env::var(name).ok());
    let settings = Settings::load(&folder).map(|settings| match context {
        Some(context) => settings.in_context(context),
        None => settings,
    });
    let spec = settings.and_then(|settings| resolve(&settings, &flags, &folder_name(&folder)));
    let mut spec = spec.map_err(Failure::from).map_err(raise(py))?;
    if is_local {
        spec.caller = Some(caller(py)?);
    }
    let options = LaunchOptions {
        store_for_large_code: cluster.get().code_folder.clone().map(Store::Folder),
        keeps_outputs: cluster.get().outputs.is_some(),
        data_root: cluster.get().data_folder.clone(),
        ..LaunchOptions::default()
    };
    let kept = cluster.get().outputs.clone();
    let (cluster, face) = (cluster.get().inner.clone(), cluster.get().face);
    let launching = async move {
        let start_timeout = spec.follow_options().start_timeout;
        let launched = spec.submit(&cluster, &folder, options).await?;
        Ok::<_, longshore::launcher::LaunchError>(Run {
            cluster,
            face,
            run: launched.run,
            tar_path: None,
            packed: launched.packed,
            warnings: launched.warnings.iter().map(ToString::to_string).collect(),
            kept,
            start_timeout: Some(start_timeout),
            allowed: Allowed::Always,
        })
    };
    face.run(py, launching, |py, run| {
        Ok(run.into_pyobject(py)?.into_any().unbind())
    })
}

/// Finds a run by its name, a prefix of it, or `last`.
#[pyfunction]
#[pyo3(signature = (cluster, name, namespace=None, all_users=false))]
pub(crate) fn find_run<'py>(
    py: Python<'py>,
    cluster: &Bound<'py, Cluster>,
    name: String,
    namespace: Option<String>,
    all_users: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let kept = cluster.get().outputs.clone();
    let (cluster, face) = (cluster.get().inner.clone(), cluster.get().face);
    let users = match all_users {
        true => runs::Users::All,
        false => runs::Users::Mine,
    };
    let finding = async move {
        let namespace = namespace.unwrap_or_else(|| cluster.default_namespace().to_owned());
        let found = runs::find_of(&cluster, &namespace, &name, users).await?;
        let allowed = Allowed::of(&found, all_users);
        Ok::<_, runs::RunsError>(Run::found(cluster, face, (found.run, allowed), kept))
    };
    face.run(py, finding, |py, run| {
        Ok(run.into_pyobject(py)?.into_any().unbind())
    })
}

impl Run {
    /// A run that the cluster has.
    pub(crate) fn found(
        cluster: Connection,
        face: Face,
        (run, allowed): (Inner, Allowed),
        kept: Option<LocalOutputs>,
    ) -> Self {
        Self {
            cluster,
            face,
            run,
            tar_path: None,
            packed: None,
            warnings: Vec::new(),
            kept,
            start_timeout: None,
            allowed,
        }
    }
}

#[pymethods]
impl Run {
    #[getter]
    fn name(&self) -> &str {
        self.run.name.as_str()
    }

    #[getter]
    fn namespace(&self) -> &str {
        &self.run.namespace
    }

    /// The location of the uploaded code of a pipeline.
    #[getter]
    fn tar_path(&self) -> Option<&str> {
        self.tar_path.as_deref()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// What was packed and what was left out.
    #[getter]
    fn packed<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(report) = &self.packed else {
            return Ok(None);
        };
        let packed = PyDict::new(py);
        packed.set_item("files", report.files)?;
        packed.set_item("bytes", report.bytes)?;
        packed.set_item("left_out", report.left_out)?;
        packed.set_item("left_out_examples", &report.left_out_examples)?;
        packed.set_item("largest", &report.largest)?;
        Ok(Some(packed))
    }

    /// Follows the run to its end: its events, each a dict. Raises `WaitTimeoutError` if the first
    /// requests take longer than the timeout.
    #[pyo3(signature = (*, logs=true, timeout=None))]
    fn follow<'py>(
        &self,
        py: Python<'py>,
        logs: bool,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let limit = limit(timeout)?;
        let (face, cluster, run) = (self.face, self.cluster.clone(), self.run.clone());
        let mut options = FollowOptions {
            logs,
            ..FollowOptions::default()
        };
        options.start_timeout = self.start_timeout.unwrap_or(options.start_timeout);
        let starting = async move {
            let late = || format!("the cluster has not answered about the run {}", run.name);
            within(limit, late, Follow::start(&cluster, &run, options)).await
        };
        face.run(py, starting, move |py, follow| {
            let events = stream::unfold(follow, |mut follow| async {
                let event = match follow.next().await? {
                    Ok(event) => serde_json::to_value(&event).map_err(|error| {
                        Error::Config(format!("an event of the run cannot be shown: {error}"))
                    }),
                    Err(longshore::launcher::follow::Error::Cluster(error)) => Err(error),
                    Err(_) => Err(Error::Closed),
                };
                Some((event.map(Piece::Json), follow))
            });
            let stream = Stream::new(face, events).into_pyobject(py)?;
            Ok(stream.into_any().unbind())
        })
    }

    /// The state of the run and its cause, as a dict.
    fn why<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (cluster, run) = (self.cluster.clone(), self.run.clone());
        let asking = async move { why(&cluster, &run).await };
        self.face
            .run(py, asking, |py, why| Ok(from_serde(py, &why)?.unbind()))
    }

    /// The summary of the run in a list, as a dict.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let asking = tracking::summary(self.cluster.clone(), self.run.clone());
        self.face
            .run(py, asking, |py, found| Ok(from_serde(py, &found)?.unbind()))
    }

    /// What the tasks use, as a dict.
    #[pyo3(signature = (series=true))]
    fn usage<'py>(&self, py: Python<'py>, series: bool) -> PyResult<Bound<'py, PyAny>> {
        let asking = tracking::used(self.cluster.clone(), self.run.clone(), series);
        self.face
            .run(py, asking, |py, usage| Ok(from_serde(py, &usage)?.unbind()))
    }

    /// Changes tags: those without a value are removed.
    fn tag<'py>(&self, py: Python<'py>, changes: Vec<TagChange>) -> PyResult<Bound<'py, PyAny>> {
        tracking::check_tags(py, &changes)?;
        let (cluster, run) = (self.cluster.clone(), self.run.clone());
        let allowed = self.allowed.clone();
        self.face.done(py, async move {
            allowed.check(&cluster, &run).await?;
            runs::set_tags(&cluster, &run, &changes).await
        })
    }

    /// Replaces the note, or removes it.
    #[pyo3(signature = (text=None))]
    fn set_note<'py>(&self, py: Python<'py>, text: Option<String>) -> PyResult<Bound<'py, PyAny>> {
        tracking::check_text(py, text.as_deref())?;
        let (cluster, run) = (self.cluster.clone(), self.run.clone());
        let allowed = self.allowed.clone();
        self.face.done(py, async move {
            allowed.check(&cluster, &run).await?;
            runs::set_note(&cluster, &run, text.as_deref()).await
        })
    }

    /// What differs between this run and another one, as a dict.
    fn compare<'py>(&self, py: Python<'py>, other: &Self) -> PyResult<Bound<'py, PyAny>> {
        let runs = (self.run.clone(), other.run.clone());
        let asking = tracking::compared(self.cluster.clone(), self.kept.clone(), runs.0, runs.1);
        self.face.run(py, asking, |py, difference| {
            Ok(from_serde(py, &difference)?.unbind())
        })
    }

    /// The outputs of the tasks, each a dict; with a folder, writes the files to it.
    #[pyo3(signature = (to=None, task=None, force=false))]
    fn outputs<'py>(
        &self,
        py: Python<'py>,
        to: Option<PathBuf>,
        task: Option<String>,
        force: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (kept, cluster, run) = (self.kept.clone(), self.cluster.clone(), self.run.clone());
        let asking = outputs::outputs(kept, cluster, run, to, task, force);
        self.face
            .run(py, asking, |py, tasks| Ok(from_serde(py, &tasks)?.unbind()))
    }

    /// The last values of the metrics of the tasks, as a dict.
    #[pyo3(signature = (logs=true))]
    fn metrics<'py>(&self, py: Python<'py>, logs: bool) -> PyResult<Bound<'py, PyAny>> {
        let (kept, cluster, run) = (self.kept.clone(), self.cluster.clone(), self.run.clone());
        let asking = async move {
            let sources = MetricSources {
                logs,
                outputs: kept.as_ref(),
            };
            let found = metrics::of_run(&cluster, &run, sources).await?;
            Ok::<_, Error>(found.to_json(&run))
        };
        self.face
            .run(py, asking, |py, found| Ok(from_serde(py, &found)?.unbind()))
    }

    /// The combinations of the sweep with their states and metrics, as a dict.
    #[pyo3(signature = (logs=true))]
    fn sweep<'py>(&self, py: Python<'py>, logs: bool) -> PyResult<Bound<'py, PyAny>> {
        let (kept, cluster, run) = (self.kept.clone(), self.cluster.clone(), self.run.clone());
        let asking = async move {
            let sources = MetricSources {
                logs,
                outputs: kept.as_ref(),
            };
            sweeps::table(&cluster, &run, sources).await
        };
        self.face.run(py, asking, |py, table| {
            Ok(from_serde(py, &table.to_json())?.unbind())
        })
    }

    /// Runs the failed combinations of the sweep again.
    fn retry<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (cluster, face) = (self.cluster.clone(), self.face);
        let (run, kept) = (self.run.clone(), self.kept.clone());
        let start_timeout = self.start_timeout;
        let allowed = self.allowed.clone();
        let launching = async move {
            allowed.check(&cluster, &run).await?;
            let plan = sweeps::retry(&cluster, &run, &names::random_suffix()).await;
            let plan = plan.map_err(Failure::from)?;
            let report = preflight::check(&cluster, &plan, Purpose::Follow).await;
            let report = report.map_err(LaunchError::from)?;
            if !report.refusals.is_empty() {
                return Err(LaunchError::Refused(report.refusals).into());
            }
            let run = submit(&cluster, &plan).await.map_err(LaunchError::from)?;
            Ok::<_, Failure>(Self {
                cluster,
                face,
                run,
                tar_path: None,
                packed: None,
                warnings: report.warnings.iter().map(ToString::to_string).collect(),
                kept,
                start_timeout,
                allowed: Allowed::Always,
            })
        };
        face.run(py, launching, |py, run| {
            Ok(run.into_pyobject(py)?.into_any().unbind())
        })
    }

    /// Stops the run and keeps its record.
    fn cancel<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (cluster, run) = (self.cluster.clone(), self.run.clone());
        let allowed = self.allowed.clone();
        self.face.done(py, async move {
            allowed.check(&cluster, &run).await?;
            let cancelled = runs::cancel(&cluster, &run, Timestamp::now());
            cancelled.await.map(drop)
        })
    }

    /// Removes the run with its record.
    fn remove<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (kept, cluster, run) = (self.kept.clone(), self.cluster.clone(), self.run.clone());
        let allowed = self.allowed.clone();
        self.face.done(py, async move {
            allowed.check(&cluster, &run).await?;
            outputs::remove(kept, cluster, run).await
        })
    }

    fn __repr__(&self) -> String {
        format!("<Run {} namespace={}>", self.run.name, self.run.namespace)
    }
}
