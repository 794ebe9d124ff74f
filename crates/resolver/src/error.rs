//! What can go wrong when a cluster is asked for tasks.

use std::time::Duration;

use crate::{identity::Identity, missing::Missing, pod_error::PodError, spec::SpecError};

/// Why there is no spec, or no answer from it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The cluster refused, or did not answer.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
    /// The token lacks a right.
    #[error(
        "the right to {verb} {resource} {} is missing: {source}; grant it to the pod's service account, as by `kubectl create role pod-reader --verb=list,watch --resource=pods` and a role binding", within(namespace.as_deref())
    )]
    Forbidden {
        /// The verb, as in RBAC.
        verb: &'static str,
        /// The resource.
        resource: &'static str,
        /// The namespace; `None` for all.
        namespace: Option<String>,
        /// The cluster's words.
        source: Box<longshore_client::Error>,
    },
    /// The pods do not make a spec.
    #[error(transparent)]
    Pods(#[from] PodError),
    /// The spec has no such job or task.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Not all were there in time.
    #[error("not all tasks were there within {} s: {}", waited.as_secs_f64(), listed(missing))]
    Missing {
        /// The roles that lack tasks.
        missing: Vec<Missing>,
        /// How long the wait was.
        waited: Duration,
    },
    /// The asking pod is none of the tasks.
    #[error(
        "{identity} is none of the {tasks} tasks; look whether the selectors match it and the namespace is right"
    )]
    NotATask {
        /// Who asked.
        identity: Box<Identity>,
        /// How many tasks there are.
        tasks: usize,
    },
    /// The connection was closed during a wait.
    #[error("the connection to the cluster was closed while waiting for pods")]
    Closed,
}

fn within(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("in namespace \"{namespace}\""),
        None => "in all namespaces".to_owned(),
    }
}

fn listed(missing: &[Missing]) -> String {
    let texts: Vec<String> = missing.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
