//! The list of logs that a cluster keeps of the pods of Jobs, including deleted pods.

use std::collections::BTreeSet;

use jiff::Timestamp;
use longshore_client::{Cluster, Error, Item};
use longshore_diagnosis::{
    evidence::{JobEvidence, RunPod as _},
    names,
};
use longshore_model::{ObjectMeta, facts::PodFacts, meta::OwnerReference};
use serde::Deserialize;

use super::TaskLog;
use crate::{queries, run::Run};

/// The logs of a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct KeptLogs {
    /// The metadata of the pod.
    metadata: ObjectMeta,
    /// The object whose removal also removes the logs.
    owner: OwnerReference,
    /// The time when the pod was deleted, as far as its node knows.
    pub(super) deleted: Option<Timestamp>,
    /// True if the pod exists.
    #[serde(skip)]
    pub(super) is_present: bool,
    /// The reason why the cluster has removed the logs.
    pub(super) removed: Option<String>,
    /// The containers that have started.
    containers: Vec<Container>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Container {
    name: String,
    instances: Vec<Instance>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Instance {
    is_cut: bool,
}

/// Lists the logs of a run's pods. `None` if the cluster keeps no logs of deleted pods, or the
/// user may not read logs.
///
/// # Errors
/// The cluster does not answer, or returns an internal error.
pub(crate) async fn list(cluster: &Cluster, run: &Run) -> Result<Option<Vec<KeptLogs>>, Error> {
    let selector = format!("{}={}", names::RUN, run.label());
    let mut kept = of_namespace(cluster, &run.namespace, Some(&selector)).await?;
    if let Some(kept) = &mut kept {
        kept.retain(|logs| run.has(&logs.metadata));
        find_present(cluster, run, kept).await?;
    }
    Ok(kept)
}

/// Like [`list`], for the pods of a namespace that a label selector matches.
pub(super) async fn of_namespace(
    cluster: &Cluster,
    namespace: &str,
    selector: Option<&str>,
) -> Result<Option<Vec<KeptLogs>>, Error> {
    // No pod has this name, so other clusters respond with 404.
    let path = format!("/api/v1/namespaces/{namespace}/pods/*/log");
    let query = selector.map(|selector| ("labelSelector", selector));
    match cluster.proxy().get(&path, query.as_slice()).await {
        Ok(found) if found["kind"] == "PodLogsList" => Ok(Some(queries::items(found))),
        Ok(_) => Ok(None),
        Err(error) if error.code().is_some_and(|code| (400..500).contains(&code)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Finds the pods that exist. A caller that listed the pods before the logs may have missed pods
/// that were created in between. They must not count as deleted.
async fn find_present(cluster: &Cluster, run: &Run, kept: &mut [KeptLogs]) -> Result<(), Error> {
    if kept.iter().all(|logs| logs.deleted.is_some()) {
        return Ok(());
    }
    let pods = run.list_pods(cluster).await?;
    let present: BTreeSet<&str> = pods.iter().map(Item::uid).collect();
    for logs in kept {
        logs.is_present = present.contains(logs.uid());
    }
    Ok(())
}

/// Returns the UIDs of the objects that own the logs of a run.
pub(super) fn owners(jobs: &[JobEvidence]) -> BTreeSet<&str> {
    let controllers = jobs.iter().filter_map(|job| job.metadata.controller());
    let controllers = controllers.map(|owner| owner.uid.as_str());
    let jobs = jobs.iter().map(|job| job.metadata.uid.as_str());
    jobs.chain(controllers).collect()
}

impl KeptLogs {
    pub(crate) fn uid(&self) -> &str {
        &self.metadata.uid
    }

    /// Returns the UID of the object whose removal also removes the logs.
    pub(crate) fn owner(&self) -> &str {
        &self.owner.uid
    }

    /// Returns the names of the containers that have logs.
    pub(super) fn container_names(&self) -> Vec<String> {
        let names = self.containers.iter().map(|container| &container.name);
        names.cloned().collect()
    }

    /// Returns true if the beginning of a container's log was removed.
    pub(super) fn is_cut(&self, container: &str) -> bool {
        let mut containers = self.containers.iter();
        let found = containers.find(|found| found.name == container);
        let last = found.and_then(|found| found.instances.last());
        last.is_some_and(|last| last.is_cut)
    }

    /// Returns the pod, without its spec and status.
    pub(super) fn pod(&self) -> PodFacts {
        PodFacts {
            metadata: self.metadata.clone(),
            ..PodFacts::default()
        }
    }

    /// Returns the log of a deleted pod: of the command, or of an init container if the command has
    /// not started. `None` if the pod exists.
    pub(crate) fn log(&self) -> Option<TaskLog> {
        if self.is_present {
            return None;
        }
        let pod = self.pod();
        let main = pod.main_name();
        let names = || self.containers.iter().map(|container| &container.name);
        let last = || {
            names()
                .find(|name| *name == names::FETCH)
                .or(names().next())
        };
        let container = names().find(|name| *name == main).or_else(last)?;
        Some(TaskLog {
            task: pod.task()?,
            attempt: pod.attempts_before().saturating_add(1),
            pod: self.metadata.name.clone(),
            uid: self.metadata.uid.clone(),
            created: self.metadata.creation_timestamp,
            container: container.clone(),
            is_main: container == main,
            is_deleted: true,
            is_cut: self.is_cut(container),
        })
    }
}
