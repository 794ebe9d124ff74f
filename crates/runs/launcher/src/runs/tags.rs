//! Tags and notes of runs: labels and an annotation of their Jobs, which can change at any time.

use std::collections::BTreeMap;

use longshore_client::{Cluster, Patch};
use longshore_diagnosis::names;
use longshore_model::ObjectMeta;
use serde_json::{Map, Value, json};

use super::{Run, RunsError, stop::schedules};
use crate::tag::TagChange;

/// The tags of a Job.
pub(super) fn of(meta: &ObjectMeta) -> BTreeMap<String, String> {
    let tags = meta.labels.iter().filter_map(|(key, value)| {
        let key = key.strip_prefix(names::TAG_PREFIX)?;
        Some((key.to_owned(), value.clone()))
    });
    tags.collect()
}

/// Changes the tags of a run, on its Jobs. The tags of a schedule apply to the runs that it creates
/// later.
///
/// # Errors
/// [`RunsError::Cluster`].
pub async fn set_tags(
    cluster: &Cluster,
    run: &Run,
    changes: &[TagChange],
) -> Result<(), RunsError> {
    let labels: Map<String, Value> = changes
        .iter()
        .map(|(key, value)| (format!("{}{key}", names::TAG_PREFIX), json!(value)))
        .collect();
    patch(cluster, run, json!({"labels": labels})).await
}

/// Sets the note of a run, on its Jobs. `None` removes it.
///
/// # Errors
/// [`RunsError::Cluster`].
pub async fn set_note(cluster: &Cluster, run: &Run, note: Option<&str>) -> Result<(), RunsError> {
    patch(cluster, run, json!({"annotations": {names::NOTE: note}})).await
}

async fn patch(cluster: &Cluster, run: &Run, metadata: Value) -> Result<(), RunsError> {
    let schedules = schedules(cluster, run).await?;
    for schedule in &schedules {
        let template = json!({"jobTemplate": {"metadata": metadata}});
        let change = json!({"metadata": metadata, "spec": template});
        schedule.patch(&Patch::merge(change)).await?;
    }
    if !schedules.is_empty() {
        // The runs of a schedule have their own tags.
        return Ok(());
    }
    let view = cluster.jobs().in_namespace(&run.namespace)?;
    let change = Patch::merge(json!({"metadata": metadata}));
    for job in run.found_jobs(cluster).await? {
        match view.patch(&job.metadata.name, &change).await {
            Err(error) if !error.is_not_found() => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}
