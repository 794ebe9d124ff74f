//! Lists of runs.

use std::time::Duration;

use jiff::Timestamp;
use longshore::{
    LabelSelector,
    launcher::{
        Owner,
        config::duration,
        runs::{self, RunFilter, StateFilter},
        tag::TagChange,
    },
};
use pyo3::{prelude::*, types::PyList};

use crate::{
    cluster::Cluster,
    errors::{Failure, raise},
    runs::{Allowed, Run},
    tracking::{check_tags, invalid},
    value::{from_serde, rfc3339},
};

/// The runs of a namespace, or of all namespaces, newest first: each with its summary, as
/// `longshore runs --output json` prints it.
#[pyfunction]
#[pyo3(signature = (cluster, *, namespace, all_namespaces, states, tags, name, since, mine, all_users, limit))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn list_runs<'py>(
    py: Python<'py>,
    cluster: &Bound<'py, Cluster>,
    namespace: Option<String>,
    all_namespaces: bool,
    states: Vec<String>,
    tags: Vec<TagChange>,
    name: Option<&str>,
    since: Option<&Bound<'py, PyAny>>,
    mine: bool,
    all_users: bool,
    limit: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let states = states.iter().map(|state| state.parse::<StateFilter>());
    let states = states.collect::<Result<_, _>>();
    check_tags(py, &tags)?;
    let mut filter = RunFilter {
        states: states.map_err(|error| invalid(py, &error.to_string()))?,
        since: since.map(first_time).transpose()?,
        tags,
        ..RunFilter::default()
    };
    if let Some(name) = name {
        let named = filter.named(name);
        filter = named.map_err(|error| invalid(py, &format!("name: {error}")))?;
    }
    let kept = cluster.get().outputs.clone();
    let (cluster, face) = (cluster.get().inner.clone(), cluster.get().face);
    let namespace = match all_namespaces {
        true => None,
        false => Some(namespace.unwrap_or_else(|| cluster.default_namespace().to_owned())),
    };
    let known = cluster.clone();
    let listing = async move {
        let mut selector = LabelSelector::everything();
        if mine {
            let me = Owner::current(&cluster).await?;
            selector = me.selector()?;
            filter.owner = Some(me);
        }
        let mut found = runs::list_matching(&cluster, namespace.as_deref(), &selector).await?;
        found.retain(|run| filter.matches(run));
        found.truncate(limit.unwrap_or(usize::MAX));
        Ok::<_, Failure>(found)
    };
    face.run(py, listing, move |py, found| {
        let found = found.into_iter().map(|summary| {
            let json = from_serde(py, &summary.to_json())?;
            let allowed = Allowed::of(&summary, all_users);
            let run = Run::found(known.clone(), face, (summary.run, allowed), kept.clone());
            (run, json).into_pyobject(py)
        });
        let found: Vec<_> = found.collect::<PyResult<_>>()?;
        Ok(PyList::new(py, found)?.into_any().unbind())
    })
}

/// The time of `since`: a time, or a time span before now.
fn first_time(given: &Bound<'_, PyAny>) -> PyResult<Timestamp> {
    let py = given.py();
    let span = if let Ok(text) = given.extract::<String>() {
        let span = duration("since", &text).map_err(Failure::from);
        span.map_err(raise(py))?
    } else if let Ok(span) = given.extract::<Duration>() {
        span
    } else {
        let text = rfc3339(given)?;
        let time = text.parse();
        return time.map_err(|error| invalid(py, &format!("since: {text:?}: {error}")));
    };
    let time = Timestamp::now().checked_sub(span);
    time.map_err(|error| invalid(py, &format!("since: {error}")))
}
