//! What a plan needs that a cluster may not have: JobSet, and Kueue's queues.

use longshore_client::{Cluster, Error};

use super::{Finding, Report};
use crate::{explain::Cause, jobset::jobset, kueue};

/// Something that not every cluster has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Addon {
    /// JobSet, in the version that is spoken here.
    JobSet,
    /// A queue of Kueue's, by its name.
    Queue(String),
}

/// Whether the cluster has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is there.
    There,
    /// Its kind is there, the object is not.
    NoObject,
    /// The cluster does not know its kind.
    NoKind,
    /// It may not be seen.
    Unseen,
}

pub(super) async fn ask(cluster: &Cluster, namespace: &str, addon: &Addon) -> Presence {
    let found = match addon {
        Addon::JobSet => version_has_jobsets(cluster).await,
        Addon::Queue(name) => queue(cluster, namespace, name).await,
    };
    found.unwrap_or(Presence::Unseen)
}

async fn version_has_jobsets(cluster: &Cluster) -> Result<Presence, Error> {
    let path = jobset().api_path();
    match cluster.proxy().get(&path, &[]).await {
        Ok(_) => Ok(Presence::There),
        Err(error) if error.is_not_found() => Ok(Presence::NoKind),
        Err(error) => Err(error),
    }
}

async fn queue(cluster: &Cluster, namespace: &str, name: &str) -> Result<Presence, Error> {
    let Some(version) = kueue::version(cluster).await? else {
        return Ok(Presence::NoKind);
    };
    let path = format!("/apis/{version}/namespaces/{namespace}/localqueues/{name}");
    match cluster.proxy().get(&path, &[]).await {
        Ok(_) => Ok(Presence::There),
        Err(error) if error.is_not_found() => Ok(Presence::NoObject),
        Err(error) => Err(error),
    }
}

/// What is missing.
pub(super) fn judge(namespace: &str, addons: &[(Addon, Presence)], report: &mut Report) {
    let missing = addons.iter().filter_map(|(addon, presence)| {
        let (kind, problem, remedy) = match (addon, presence) {
            (_, Presence::There | Presence::Unseen) => return None,
            (Addon::JobSet, _) => (
                Cause::MissingKind,
                format!("the cluster has no JobSets ({})", jobset().api_version()),
                "install JobSet, or leave `jobset` out: then each role is a Job of its own"
                    .to_owned(),
            ),
            (Addon::Queue(name), Presence::NoKind) => (
                Cause::MissingKind,
                format!("the cluster has no queues, and so none called {name:?}"),
                "install Kueue, or leave `queue` out".to_owned(),
            ),
            (Addon::Queue(name), Presence::NoObject) => (
                Cause::MissingQueue,
                format!("there is no queue {name:?} in the namespace {namespace:?}"),
                "`kubectl get localqueues` lists those that are there".to_owned(),
            ),
        };
        Some(Finding::new(kind, problem, remedy))
    });
    report.refusals.extend(missing);
}
