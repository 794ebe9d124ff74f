//! Errors of a resolver.

use std::time::Duration;

use crate::{identity::Identity, missing::Missing, pod_error::PodError, spec::SpecError};

/// The reason why a resolver could not return tasks or a cluster spec.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request to the cluster failed.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
    /// The token does not have the required permission.
    #[error(
        "permission to {verb} {resource} {} is missing: {source}; grant it to the pod's service account, for example with `kubectl create role pod-reader --verb=list,watch --resource=pods` and a role binding", in_namespace(namespace.as_deref())
    )]
    Forbidden {
        /// The RBAC verb.
        verb: &'static str,
        /// The resource.
        resource: &'static str,
        /// The namespace, or `None` for all namespaces.
        namespace: Option<String>,
        /// The response of the cluster.
        source: Box<longshore_client::Error>,
    },
    /// The pods cannot be assembled into tasks.
    #[error(transparent)]
    Pods(#[from] PodError),
    /// The spec has no such job or task.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The required tasks did not exist within the time limit.
    #[error("timed out after {} s waiting for tasks: {}", waited.as_secs_f64(), joined(missing))]
    Missing {
        /// The roles with missing tasks.
        missing: Vec<Missing>,
        /// The time that the resolver waited.
        waited: Duration,
    },
    /// The calling process does not run in a pod of any task.
    #[error("{identity} is not one of the {tasks} tasks; check the selectors and the namespace")]
    NotATask {
        /// The identity of the calling process.
        identity: Box<Identity>,
        /// The number of tasks.
        tasks: usize,
    },
    /// The cluster closed the connection during a wait.
    #[error("the connection to the cluster was closed while waiting for pods")]
    Closed,
}

fn in_namespace(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("in namespace \"{namespace}\""),
        None => "in all namespaces".to_owned(),
    }
}

fn joined(missing: &[Missing]) -> String {
    let texts: Vec<String> = missing.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
