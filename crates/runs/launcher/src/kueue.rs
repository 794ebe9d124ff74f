//! Kueue, if the cluster has it: its version, and the Workloads of Jobs and JobSets.

use std::collections::BTreeSet;

use longshore_client::{Cluster, Error, Patch};
use longshore_diagnosis::evidence::{JobEvidence, WorkloadEvidence};
use serde_json::json;

use crate::queries;

const GROUP: &str = "/apis/kueue.x-k8s.io";
/// Label of a Workload: the uid of its Job or JobSet.
const JOB_UID: &str = "kueue.x-k8s.io/job-uid";

/// The preferred version of the cluster, such as `kueue.x-k8s.io/v1beta2`. `None` without Kueue.
pub(crate) async fn version(cluster: &Cluster) -> Result<Option<String>, Error> {
    match cluster.proxy().get(GROUP, &[]).await {
        Ok(group) => Ok(group["preferredVersion"]["groupVersion"]
            .as_str()
            .map(str::to_owned)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The Workloads of the Jobs that have a queue, or whose JobSet has one.
pub(crate) async fn workloads(
    cluster: &Cluster,
    namespace: &str,
    jobs: &[&JobEvidence],
) -> Result<Vec<WorkloadEvidence>, Error> {
    let queued = jobs.iter().filter(|job| job.queue().is_some());
    let uids: BTreeSet<&str> = queued.map(|job| job.queued_uid()).collect();
    if uids.is_empty() {
        return Ok(Vec::new());
    }
    let Some(path) = path(cluster, namespace).await? else {
        return Ok(Vec::new());
    };
    let uids: Vec<&str> = uids.into_iter().collect();
    let selector = format!("{JOB_UID} in ({})", uids.join(","));
    let query = [("labelSelector", selector.as_str())];
    Ok(queries::items(cluster.proxy().get(&path, &query).await?))
}

/// Deactivates Workloads: Kueue suspends their Jobs or JobSets and no longer admits them.
/// Kueue resumes a Job that is suspended while its Workload is active.
pub(crate) async fn deactivate(
    cluster: &Cluster,
    namespace: &str,
    workloads: &[WorkloadEvidence],
) -> Result<(), Error> {
    if workloads.is_empty() {
        return Ok(());
    }
    let Some(path) = path(cluster, namespace).await? else {
        return Ok(());
    };
    let change = Patch::merge(json!({"spec": {"active": false}}));
    for workload in workloads {
        let path = format!("{path}/{}", workload.metadata.name);
        match cluster.proxy().patch(&path, &[], &change).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

async fn path(cluster: &Cluster, namespace: &str) -> Result<Option<String>, Error> {
    let version = version(cluster).await?;
    Ok(version.map(|version| format!("/apis/{version}/namespaces/{namespace}/workloads")))
}
