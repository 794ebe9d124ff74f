//! What can go wrong: with pods, and with a cluster.

use std::time::Duration;

use crate::{identity::Identity, missing::Missing, spec::SpecError};

/// Why pods do not make tasks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PodError {
    /// A pod that must run does not.
    #[error("Pod \"{name}\" is not running; phase: \"{phase}\"")]
    NotRunning {
        /// The pod's name.
        name: String,
        /// The phase it is in.
        phase: String,
    },
    /// A pod that must be ready is not.
    #[error("Pod \"{name}\" is running and not ready; wait for it, or do without readiness")]
    NotReady {
        /// The pod's name.
        name: String,
    },
    /// A pod that is going away.
    #[error("Pod \"{name}\" is being deleted; wait until it is gone, or leave out pods that end")]
    Terminating {
        /// The pod's name.
        name: String,
    },
    /// A running pod without the address asked for.
    #[error(
        "Pod \"{name}\" has no {what}; wait until it has one, or choose another kind of address"
    )]
    NoAddress {
        /// The pod's name.
        name: String,
        /// What is missing.
        what: String,
    },
    /// A pod without the port asked for.
    #[error("Pod \"{name}\" has no port named \"{port}\"; {}", known_ports(known))]
    NoPort {
        /// The pod's name.
        name: String,
        /// The port's name.
        port: String,
        /// The names of the ports it has.
        known: Vec<String>,
    },
    /// A pod that two selectors match.
    #[error(
        "Pod \"{name}\" is matched by two selectors, of role \"{first}\" and role \"{second}\"; make the selectors disjoint, or count each pod once"
    )]
    Doubled {
        /// The pod's name.
        name: String,
        /// The role that had it first.
        first: String,
        /// The role that matched it again.
        second: String,
    },
    /// Two running pods with one completion index.
    #[error(
        "Pods \"{first}\" and \"{second}\" both have completion index {index} in role \"{role}\"; select the pods of one Job only"
    )]
    SameIndex {
        /// The role.
        role: String,
        /// The index that both carry.
        index: u32,
        /// One pod.
        first: String,
        /// The other.
        second: String,
    },
    /// A pod without the completion index that is to order it.
    #[error(
        "Pod \"{name}\" has no completion index; select pods of an Indexed Job, or order by name"
    )]
    NoIndex {
        /// The pod's name.
        name: String,
    },
}

fn known_ports(known: &[String]) -> String {
    if known.is_empty() {
        "its containers name none: give the number".to_owned()
    } else {
        format!("it has {}", known.join(", "))
    }
}

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
