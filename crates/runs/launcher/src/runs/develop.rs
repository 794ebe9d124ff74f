//! Runs of `longshore dev`: the records on their Jobs, and the numbers of the sessions.

use longshore_client::{Cluster, Error, Patch};
use longshore_diagnosis::{evidence::JobEvidence, names};
use serde_json::json;

use super::{Run, RunsError};
use crate::dev::DevRecord;

/// The number of attempts to number a session while other clients change the Job.
const ATTEMPTS: u32 = 10;

/// The record of `longshore dev` from the start of the run. `None` if another command started it.
///
/// # Errors
/// [`RunsError::Cluster`].
pub async fn dev_record(cluster: &Cluster, run: &Run) -> Result<Option<DevRecord>, RunsError> {
    let jobs = run.found_jobs(cluster).await?;
    let recorded = jobs
        .iter()
        .find_map(|job| job.metadata.annotations.get(names::DEV));
    // Any client can write the record. An invalid record counts as empty.
    Ok(recorded.map(|text| serde_json::from_str(text).unwrap_or_default()))
}

/// Numbers a session of `longshore dev` that attaches to the run, after all earlier sessions.
///
/// # Errors
/// [`RunsError::Cluster`].
pub async fn next_dev_session(cluster: &Cluster, run: &Run) -> Result<u64, RunsError> {
    let view = cluster.jobs().in_namespace(&run.namespace)?;
    let mut attempt = 0;
    loop {
        let mut jobs = run.found_jobs(cluster).await?;
        jobs.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let Some(job) = jobs.first() else {
            return Err(RunsError::NoSuchRun {
                name: run.name.to_string(),
                namespace: run.namespace.clone(),
                nearest: None,
            });
        };
        let session = latest(job).saturating_add(1);
        // The patch fails if the Job has changed meanwhile, so two sessions never have the same
        // number.
        let change = Patch::merge(json!({"metadata": {
            "resourceVersion": job.metadata.resource_version,
            "annotations": {names::DEV_SESSION: session.to_string()},
        }}));
        match view.patch(&job.metadata.name, &change).await {
            Ok(_) => return Ok(session),
            Err(error) if is_temporary(&error) && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_temporary(error: &Error) -> bool {
    error.is_conflict() || error.is_not_found()
}

/// The number of the latest session. The client that started the run has the number 0.
fn latest(job: &JobEvidence) -> u64 {
    let number = job.metadata.annotations.get(names::DEV_SESSION);
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_number_that_cannot_be_read_is_that_of_the_first_session() {
        let number = |text: Option<&str>| {
            let job = json!({"metadata": {"annotations": {names::DEV_SESSION: text}}});
            let job = match text {
                Some(_) => job,
                None => json!({"metadata": {}}),
            };
            latest(&serde_json::from_value(job).unwrap())
        };
        assert_eq!(number(None), 0);
        assert_eq!(number(Some("7")), 7);
        assert_eq!(number(Some("-1")), 0);
        assert_eq!(number(Some("99999999999999999999")), 0);
    }
}
