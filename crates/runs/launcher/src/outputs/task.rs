//! The task that a pod's outputs belong to. Pure.

use longshore_diagnosis::names;
use longshore_model::{ObjectMeta, meta::COMPLETION_INDEX, name};

use super::{OutputRequest, OutputsError};

/// A task whose files are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputTask {
    /// The namespace.
    pub(super) namespace: String,
    /// The run. For a schedule, the execution.
    pub(super) run: String,
    /// The role.
    pub(super) role: String,
    /// The index within the role.
    pub(super) index: u32,
    /// The pod.
    pub(super) pod: String,
    /// The UID of the pod.
    pub(super) pod_uid: String,
    /// The files to keep.
    pub(super) request: OutputRequest,
}

impl OutputTask {
    /// The task of a pod. `None` if it does not request outputs, or uploads them itself.
    ///
    /// # Errors
    /// The pod's annotations or labels, which any client can write, are invalid.
    pub fn of(pod: &ObjectMeta) -> Result<Option<Self>, OutputsError> {
        let Some(annotation) = pod.annotations.get(names::OUTPUTS) else {
            return Ok(None);
        };
        let request = OutputRequest::parse(annotation)?;
        if request.store.is_some() || request.claim.is_some() {
            return Ok(None);
        }
        let invalid = |problem: String| OutputsError::NotATask {
            pod: pod.name.clone(),
            problem,
        };
        let label = |key: &'static str| {
            let value = pod.labels.get(key).map(String::as_str).unwrap_or_default();
            // The values become file names.
            let checked = name::dns_label(key, value);
            checked.map_err(|error| invalid(error.to_string()))?;
            Ok::<_, OutputsError>(value)
        };
        let (run, role) = (label(names::RUN)?, label(names::ROLE)?);
        let index = pod.annotations.get(COMPLETION_INDEX);
        let index = index.map(|index| {
            index
                .parse()
                .map_err(|_| invalid(format!("index {index:?}")))
        });
        let run = match request.scheduled {
            true => {
                let job = label(names::JOB_NAME)?;
                let execution = job.strip_prefix(&format!("{run}-{role}-"));
                let execution = execution.ok_or_else(|| invalid(format!("Job {job:?}")))?;
                format!("{run}-{execution}")
            }
            false => run.to_owned(),
        };
        name::dns_label("namespace", pod.namespace())
            .map_err(|error| invalid(error.to_string()))?;
        Ok(Some(Self {
            namespace: pod.namespace().to_owned(),
            run,
            role: role.to_owned(),
            index: index.transpose()?.unwrap_or(0),
            pod: pod.name.clone(),
            pod_uid: pod.uid.clone(),
            request,
        }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn pod(change: impl FnOnce(&mut ObjectMeta)) -> ObjectMeta {
        let request = json!({"patterns": ["*.json"], "maxBytes": 10, "maxFiles": 1_000_000_000});
        let mut pod: ObjectMeta = serde_json::from_value(json!({
            "name": "digits-x7k2p-worker-1-abcde", "namespace": "team", "uid": "u",
            "labels": {names::RUN: "digits-x7k2p", names::ROLE: "worker"},
            "annotations": {names::OUTPUTS: request.to_string(), COMPLETION_INDEX: "1"},
        }))
        .unwrap();
        change(&mut pod);
        pod
    }

    #[test]
    fn pods_of_runs_that_request_outputs_are_tasks() {
        let task = OutputTask::of(&pod(|_| ())).unwrap().unwrap();
        assert_eq!(
            (task.run.as_str(), task.role.as_str(), task.index),
            ("digits-x7k2p", "worker", 1)
        );
        assert_eq!(task.request.max_files, super::super::MOST_FILES);
        let none = pod(|pod| pod.annotations.clear());
        assert_eq!(OutputTask::of(&none).unwrap(), None);
    }

    #[test]
    fn the_run_of_a_schedule_is_its_execution() {
        let request = json!({"patterns": ["a"], "maxBytes": 1, "maxFiles": 1, "scheduled": true});
        let of_job = |job: &str| {
            OutputTask::of(&pod(|pod| {
                pod.annotations
                    .insert(names::OUTPUTS.to_owned(), request.to_string());
                pod.labels
                    .insert(names::JOB_NAME.to_owned(), job.to_owned());
            }))
        };
        assert_eq!(
            of_job("digits-x7k2p-worker-29000").unwrap().unwrap().run,
            "digits-x7k2p-29000"
        );
        assert!(of_job("other-29000").is_err());
    }

    #[test]
    fn labels_and_annotations_that_are_no_names_are_refused() {
        let set = |key: &'static str, value: &'static str| {
            move |pod: &mut ObjectMeta| {
                pod.labels.insert(key.to_owned(), value.to_owned());
            }
        };
        assert!(OutputTask::of(&pod(set(names::RUN, "../../x"))).is_err());
        assert!(OutputTask::of(&pod(set(names::ROLE, ""))).is_err());
        let annotated = |key: &'static str, value: &'static str| {
            OutputTask::of(&pod(|pod| {
                pod.annotations.insert(key.to_owned(), value.to_owned());
            }))
        };
        assert!(annotated(COMPLETION_INDEX, "-1").is_err());
        for wrong in [
            "",
            "[]",
            r#"{"patterns":["/etc/*"],"maxBytes":1,"maxFiles":1}"#,
        ] {
            assert!(annotated(names::OUTPUTS, wrong).is_err(), "{wrong}");
        }
    }
}
