//! Converts errors to the exception classes of `longshore.errors`.

use std::collections::BTreeMap;

use longshore::{
    Error,
    embedded::Error as EmbeddedError,
    launcher::{
        LaunchError, config::ConfigError, follow, run_outputs::RunOutputsError, runs::RunsError,
        sweeps::SweepError,
    },
    recording::Error as RecordingError,
    resolver::{Error as ResolverError, PodError, SpecError, render::RenderError},
    zenml::ZenmlError,
};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyDict},
};

use crate::exceptions::{API_ERRORS, bounded};
pub(crate) use crate::exceptions::{invalid, late, of_class, one};

/// An error of one of the crates that this crate wraps.
pub(crate) enum Failure {
    Client(Error),
    Resolver(ResolverError),
    Embedded(EmbeddedError),
    Zenml(ZenmlError),
    Launch(LaunchError),
    Config(ConfigError),
    Recording(RecordingError),
    Runs(RunsError),
    Sweep(SweepError),
    Outputs(RunOutputsError),
    /// A timeout, with its message.
    Late(String),
}

impl From<RecordingError> for Failure {
    fn from(error: RecordingError) -> Self {
        Self::Recording(error)
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        Self::Launch(error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

impl From<ResolverError> for Failure {
    fn from(error: ResolverError) -> Self {
        Self::Resolver(error)
    }
}

impl From<EmbeddedError> for Failure {
    fn from(error: EmbeddedError) -> Self {
        Self::Embedded(error)
    }
}

impl From<ZenmlError> for Failure {
    fn from(error: ZenmlError) -> Self {
        Self::Zenml(error)
    }
}

impl From<follow::Error> for Failure {
    fn from(error: follow::Error) -> Self {
        Self::Client(match error {
            follow::Error::Cluster(error) => error,
            _ => Error::Closed,
        })
    }
}

impl From<RunsError> for Failure {
    fn from(error: RunsError) -> Self {
        match error {
            RunsError::Cluster(error) => Self::Client(error),
            other => Self::Runs(other),
        }
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::Cluster(error) => Self::Client(error),
            other => Self::Sweep(other),
        }
    }
}

impl From<RunOutputsError> for Failure {
    fn from(error: RunOutputsError) -> Self {
        match error {
            RunOutputsError::Cluster(error) => Self::Client(error),
            other => Self::Outputs(other),
        }
    }
}

impl From<PodError> for Failure {
    fn from(error: PodError) -> Self {
        Self::Resolver(error.into())
    }
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Self {
        Self::Resolver(error.into())
    }
}

/// The exception for an error.
pub(crate) fn raised(py: Python<'_>, failure: Failure) -> PyErr {
    let made = match failure {
        Failure::Client(error) => client(py, &error),
        Failure::Resolver(error) => resolver(py, &error),
        Failure::Embedded(error) => one(py, "EmbeddedError", &chain(&error)),
        Failure::Zenml(error) => zenml(py, &error),
        Failure::Launch(LaunchError::Cluster(error)) => client(py, &error),
        Failure::Launch(error) => one(py, "LaunchError", &error.to_string()),
        Failure::Recording(RecordingError::Client(error)) => client(py, &error),
        Failure::Recording(error) => one(py, "ConfigError", &chain(&error)),
        Failure::Config(error) => one(py, "InvalidError", &error.to_string()),
        Failure::Runs(error) => one(py, of_runs(&error), &error.to_string()),
        Failure::Sweep(error) => one(py, "KubeError", &error.to_string()),
        Failure::Outputs(error) => one(py, of_outputs(&error), &error.to_string()),
        Failure::Late(text) => one(py, "WaitTimeoutError", &text),
    };
    made.unwrap_or_else(|problem| problem)
}

/// The class of an error about the name of a run.
fn of_runs(error: &RunsError) -> &'static str {
    match error {
        RunsError::Ambiguous { .. } | RunsError::Pattern { .. } => "InvalidError",
        RunsError::NotOwn { .. } => "KubeError",
        _ => "NotFoundError",
    }
}

/// The class of an error about the outputs of a run.
fn of_outputs(error: &RunOutputsError) -> &'static str {
    match error {
        RunOutputsError::NotATask(_) | RunOutputsError::Task(_) => "InvalidError",
        _ => "KubeError",
    }
}

/// Like [`raised`], for `map_err`.
pub(crate) fn raise<E: Into<Failure>>(py: Python<'_>) -> impl Fn(E) -> PyErr {
    move |error| raised(py, error.into())
}

/// The exception for an unknown format, a missing task, or a job without tasks.
pub(crate) fn render(py: Python<'_>, error: RenderError) -> PyErr {
    match error {
        RenderError::Spec(error) => raised(py, error.into()),
        other => PyValueError::new_err(other.to_string()),
    }
}

fn client(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let text = error.to_string();
    let class = match error {
        Error::Namespace(_) => "NamespaceError",
        Error::Status { .. } => "StatusError",
        Error::NotFound { .. } => "NotFoundError",
        Error::Api { .. } if error.is_conflict() => "ConflictError",
        Error::Api { .. } if error.is_already_exists() => "AlreadyExistsError",
        Error::Api { .. } if error.is_forbidden() => "ForbiddenError",
        Error::Api { .. } | Error::Decode { .. } => "APIError",
        Error::Unreachable { .. } => "UnreachableError",
        Error::Timeout { .. } => "WaitTimeoutError",
        Error::Closed => "ClosedError",
        Error::Invalid(_) => "InvalidError",
        Error::Config(_) => "ConfigError",
        _ => "KubeError",
    };
    api(py, class, &text, error)
}

/// An exception with the server's `Status`, if the server sent one.
fn api(py: Python<'_>, class: &str, text: &str, error: &Error) -> PyResult<PyErr> {
    if !API_ERRORS.contains(&class) {
        return one(py, class, text);
    }
    let errors = py.import("longshore.errors")?;
    let response = match error.status() {
        None => py.None().into_bound(py),
        Some(status) => {
            let seconds = error.retry_after().map(|after| after.as_secs_f64());
            let fields = (status.code, crate::value::from_serde(py, status)?, seconds);
            let sent = PyDict::new(py);
            if let Some(response) = error.response() {
                sent.set_item("url", response.url())?;
                sent.set_item("headers", response.headers().collect::<BTreeMap<_, _>>())?;
                sent.set_item("content", PyBytes::new(py, response.body()))?;
            }
            errors.getattr("Response")?.call(fields, Some(&sent))?
        }
    };
    let error = errors.getattr(class)?.call1((response, bounded(text)))?;
    Ok(PyErr::from_value(error))
}

fn resolver(py: Python<'_>, error: &ResolverError) -> PyResult<PyErr> {
    let text = error.to_string();
    match error {
        ResolverError::Cluster(error) => client(py, error),
        ResolverError::Forbidden { source, .. } => api(py, "ForbiddenError", &text, source),
        ResolverError::Pods(_) => one(py, "PodError", &text),
        ResolverError::Spec(SpecError::NoSuchJob(_) | SpecError::NoSuchTask { .. }) => {
            one(py, "NoSuchTaskError", &text)
        }
        ResolverError::Spec(_) => one(py, "SpecError", &text),
        ResolverError::Missing { missing, .. } => {
            let raised = one(py, "MissingTasksError", &text)?;
            let by_role = PyDict::new(py);
            for one in missing {
                by_role.set_item(&one.role, (one.ready, one.needed, one.reasons.clone()))?;
            }
            raised.value(py).setattr("missing", by_role)?;
            Ok(raised)
        }
        ResolverError::NotATask { .. } => one(py, "NotATaskError", &text),
        ResolverError::Closed => one(py, "ClosedError", &text),
        _ => one(py, "KubeError", &text),
    }
}

fn zenml(py: Python<'_>, error: &ZenmlError) -> PyResult<PyErr> {
    let text = error.to_string();
    match error {
        ZenmlError::Cluster(error) => client(py, error),
        ZenmlError::Kubeconfig { .. } => one(py, "ConfigError", &text),
        ZenmlError::Exists { .. } => one(py, "AlreadyExistsError", &text),
        ZenmlError::Json(_)
        | ZenmlError::Yaml(_)
        | ZenmlError::UnknownKey { .. }
        | ZenmlError::Version { .. }
        | ZenmlError::Backend { .. }
        | ZenmlError::Missing { .. }
        | ZenmlError::Kind { .. }
        | ZenmlError::ImagePullPolicy { .. }
        | ZenmlError::Key { .. }
        | ZenmlError::Settings(_)
        | ZenmlError::OneJob { .. }
        | ZenmlError::TooLarge { .. }
        | ZenmlError::TarPath { .. } => one(py, "InvalidError", &text),
        _ => one(py, "LaunchError", &text),
    }
}

/// The messages of an error and of its sources.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
