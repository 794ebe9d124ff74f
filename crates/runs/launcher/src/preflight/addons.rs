//! Optional components that a plan needs: JobSet, and Kueue queues.

use longshore_client::{Cluster, Error, Kind as _};
use longshore_diagnosis::explain::Cause;

use super::{Finding, Report};
use crate::{jobset::JobSet, kueue};

/// An optional component of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Addon {
    /// JobSet, in the supported version.
    JobSet,
    /// A Kueue LocalQueue, by name.
    Queue(String),
}

/// The presence of a component in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// The component exists.
    There,
    /// The kind exists, but the object does not.
    NoObject,
    /// The cluster does not have the kind.
    NoKind,
    /// The permission to read the component is missing.
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
    let path = JobSet::info().api_path();
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

/// Reports missing components.
pub(super) fn check(namespace: &str, addons: &[(Addon, Presence)], report: &mut Report) {
    let missing = addons.iter().filter_map(|(addon, presence)| {
        let (kind, problem, remedy) = match (addon, presence) {
            (_, Presence::There | Presence::Unseen) => return None,
            (Addon::JobSet, _) => (
                Cause::MissingKind,
                format!(
                    "the cluster has no JobSets ({})",
                    JobSet::info().api_version()
                ),
                "install JobSet, or remove `jobset` to create one Job per role".to_owned(),
            ),
            (Addon::Queue(name), Presence::NoKind) => (
                Cause::MissingKind,
                format!("Kueue is not installed, so there is no queue {name:?}"),
                "install Kueue, or remove `queue`".to_owned(),
            ),
            (Addon::Queue(name), Presence::NoObject) => (
                Cause::MissingQueue,
                format!("there is no queue {name:?} in the namespace {namespace:?}"),
                "`kubectl get localqueues` lists the existing ones".to_owned(),
            ),
        };
        Some(Finding::new(kind, problem, remedy))
    });
    report.refusals.extend(missing);
}
