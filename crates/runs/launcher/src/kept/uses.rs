//! Determines the bundles and data in use from the annotations of Jobs, JobSets, CronJobs and pods.

use std::collections::{BTreeMap, BTreeSet};

use longshore_client::{Cluster, Error, Kind as _, kinds::Any};
use longshore_diagnosis::{
    evidence::{CronJobEvidence, JobEvidence},
    names,
};
use longshore_model::{ObjectMeta, facts::PodFacts};
use serde::Deserialize;
use serde_json::Value;

use crate::{jobset::JobSet, runs::if_allowed};

/// The bundles and data in use, by their sha256.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    /// Used by existing runs and schedules, active or finished.
    referred: BTreeSet<String>,
    /// Used by objects that may still start a container.
    needed: BTreeSet<String>,
    /// Used by pods that are about to start their command.
    starting: BTreeSet<String>,
}

impl Uses {
    /// Returns true if a Job, JobSet or CronJob, active or finished, refers to the bundle.
    #[must_use]
    pub fn is_referred(&self, sha256: &str) -> bool {
        self.referred.contains(sha256)
    }

    /// Returns true if a container that fetches the bundle may still start.
    #[must_use]
    pub fn is_needed(&self, sha256: &str) -> bool {
        self.needed.contains(sha256)
    }

    /// Returns true if a pod may be unpacking the bundle now.
    #[must_use]
    pub fn is_starting(&self, sha256: &str) -> bool {
        self.starting.contains(sha256)
    }

    #[cfg(test)]
    pub(super) fn of_names(needed: BTreeSet<String>, referred: BTreeSet<String>) -> Self {
        Self {
            referred,
            needed,
            ..Self::default()
        }
    }

    fn add(&mut self, objects: [Option<&ObjectMeta>; 2], is_referring: bool, is_active: bool) {
        let used = objects.into_iter().flatten();
        for sha256 in used.flat_map(|meta| bundle(meta).cloned().into_iter().chain(data(meta))) {
            if is_referring {
                self.referred.insert(sha256.clone());
            }
            if is_active {
                self.needed.insert(sha256);
            }
        }
    }

    fn job(&mut self, job: &JobEvidence, template: &Template) {
        let objects = [Some(&job.metadata), Some(&template.metadata)];
        let is_stopped = job.spec.suspend && (job.is_cancelled() || job.stopped_at().is_some());
        self.add(objects, true, !job.is_over() && !is_stopped);
    }

    fn pod(&mut self, pod: &PodFacts) {
        let is_over = matches!(pod.status.phase.as_str(), "Succeeded" | "Failed");
        self.add([Some(&pod.metadata), None], false, !is_over);
        // An init container unpacks the code, so the pod is pending until then.
        if let (Some(bundle), false) = (bundle(&pod.metadata), is_over)
            && pod.status.phase != "Running"
        {
            self.starting.insert(bundle.clone());
        }
    }

    fn schedule(&mut self, schedule: &CronJobEvidence, template: &Template) {
        let objects = [Some(&schedule.metadata), Some(&template.metadata)];
        let is_cancelled = schedule.metadata.annotations.contains_key(names::CANCELLED);
        self.add(objects, true, !(is_cancelled && schedule.spec.suspend));
    }

    fn set(&mut self, set: &Set) {
        let is_over = set.status.terminal_state.is_some()
            || set.metadata.annotations.contains_key(names::CANCELLED);
        self.add([Some(&set.metadata), None], true, !is_over);
    }
}

fn bundle(meta: &ObjectMeta) -> Option<&String> {
    meta.annotations.get(names::BUNDLE)
}

/// The sha256 of an object's data. Any client can write the annotation.
fn data(meta: &ObjectMeta) -> impl Iterator<Item = String> + use<> {
    let text = meta.annotations.get(names::DATA);
    let data = text.and_then(|text| serde_json::from_str::<BTreeMap<String, String>>(text).ok());
    data.unwrap_or_default().into_values()
}

/// The template of a Job or CronJob, because the object may be a copy of a run's object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Template {
    metadata: ObjectMeta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Set {
    metadata: ObjectMeta,
    status: SetStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SetStatus {
    terminal_state: Option<Value>,
}

/// Queries the bundles in use, in all namespaces.
///
/// # Errors
/// The cluster returns an error or does not answer, so that the bundles in use are unknown.
pub async fn uses(cluster: &Cluster) -> Result<Uses, Error> {
    let sets = cluster.view_of::<Any>(JobSet::info());
    let (jobs, pods, schedules, sets) = futures::try_join!(
        async { cluster.jobs().list().await },
        async { cluster.pods().list().await },
        async { cluster.cronjobs().list().await },
        // Most clusters do not have JobSets.
        async { if_allowed(sets.list().await) },
    )?;
    let mut uses = Uses::default();
    for job in &jobs.items {
        let template = job.field(&["spec", "template"])?.unwrap_or_default();
        uses.job(&job.typed()?, &template);
    }
    for pod in &pods.items {
        uses.pod(&pod.typed()?);
    }
    for schedule in &schedules.items {
        let path = ["spec", "jobTemplate"];
        let template = schedule.field(&path)?.unwrap_or_default();
        uses.schedule(&schedule.typed()?, &template);
    }
    for set in &sets {
        uses.set(&set.typed()?);
    }
    Ok(uses)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn of(kind: &str, object: &Value) -> (bool, bool) {
        let mut uses = Uses::default();
        let template = |path: &str| {
            let found = object.pointer(path).cloned().unwrap_or_default();
            serde_json::from_value(found).unwrap_or_default()
        };
        let read = object.clone();
        match kind {
            "Job" => uses.job(
                &serde_json::from_value(read).unwrap(),
                &template("/spec/template"),
            ),
            "Pod" => uses.pod(&serde_json::from_value(read).unwrap()),
            "CronJob" => uses.schedule(
                &serde_json::from_value(read).unwrap(),
                &template("/spec/jobTemplate"),
            ),
            _ => uses.set(&serde_json::from_value(read).unwrap()),
        }
        (uses.is_referred("x"), uses.is_needed("x"))
    }

    #[test]
    fn finished_runs_refer_to_their_bundle_but_do_not_need_it() {
        let metadata = json!({"name": "a", "annotations": {names::BUNDLE: "x"}});
        let with = |rest: Value| {
            let mut object = rest;
            object["metadata"] = metadata.clone();
            object
        };
        let over = json!([{"type": "Failed", "status": "True"}]);
        assert_eq!(of("Job", &with(json!({}))), (true, true));
        assert_eq!(
            of("Job", &with(json!({"status": {"conditions": over}}))),
            (true, false)
        );
        let suspended = with(json!({"spec": {"suspend": true}}));
        assert_eq!(of("Job", &suspended), (true, true), "a queue has it");
        let mut cancelled = suspended.clone();
        cancelled["metadata"]["annotations"][names::CANCELLED] = json!("2026-01-01T00:00:00Z");
        assert_eq!(of("Job", &cancelled), (true, false));
        let template = json!({"spec": {"template": {"metadata": metadata}}});
        assert_eq!(of("Job", &template), (true, true), "made by hand");

        assert_eq!(of("Pod", &with(json!({}))), (false, true));
        let ended = with(json!({"status": {"phase": "Succeeded"}}));
        assert_eq!(of("Pod", &ended), (false, false));

        assert_eq!(of("CronJob", &with(json!({}))), (true, true));
        assert_eq!(of("CronJob", &cancelled), (true, false));
        let template = json!({"spec": {"jobTemplate": {"metadata": metadata}}});
        assert_eq!(of("CronJob", &template), (true, true));

        assert_eq!(of("JobSet", &with(json!({}))), (true, true));
        let ended = with(json!({"status": {"terminalState": "Completed"}}));
        assert_eq!(of("JobSet", &ended), (true, false));
        assert_eq!(
            of("Job", &json!({"metadata": {"name": "a"}})),
            (false, false)
        );
    }
}
