//! Builds the pods of a Job from its template.

use k8s_openapi::{
    api::{
        batch::v1::Job,
        core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use longshore_model::{meta::COMPLETION_INDEX, name::SUFFIX_LETTERS};

use super::names;

/// The maximum length of a name before the random suffix, as for `generateName`.
const MAX_PREFIX_LENGTH: usize = 58;

/// A pod to create.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NewPod {
    /// The completion index in an Indexed Job.
    pub(crate) index: Option<u32>,
    /// The counted and the ignored failures of the index, if the Job limits
    /// failures per index.
    pub(crate) failures: Option<(i64, i64)>,
}

/// Returns five random characters.
pub(crate) fn suffix() -> String {
    (0..5)
        .map(|_| char::from(SUFFIX_LETTERS[rand::random_range(0..SUFFIX_LETTERS.len())]))
        .collect()
}

/// Returns a pod's name: `job-suffix`, or `job-index-suffix`.
pub(crate) fn name(job: &str, index: Option<u32>, suffix: &str) -> String {
    let tail = index.map_or_else(|| "-".to_owned(), |index| format!("-{index}-"));
    let room = MAX_PREFIX_LENGTH.saturating_sub(tail.len());
    let mut end = job.len().min(room);
    while !job.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{tail}{suffix}", &job[..end])
}

/// Builds the pod with the given name.
pub(crate) fn build(job: &Job, new: NewPod, name: String) -> Pod {
    let meta = &job.metadata;
    let job_name = meta.name.clone().unwrap_or_default();
    let job_uid = meta.uid.clone().unwrap_or_default();
    let template = job
        .spec
        .as_ref()
        .map(|spec| spec.template.clone())
        .unwrap_or_default();
    let template_meta = template.metadata.unwrap_or_default();

    let mut labels = template_meta.labels.unwrap_or_default();
    labels.extend(names::JOB_NAME.map(|key| (key.to_owned(), job_name.clone())));
    labels.extend(names::CONTROLLER_UID.map(|key| (key.to_owned(), job_uid.clone())));
    let mut annotations = template_meta.annotations.unwrap_or_default();
    let mut finalizers = template_meta.finalizers.unwrap_or_default();
    if !finalizers
        .iter()
        .any(|finalizer| finalizer == names::FINALIZER)
    {
        finalizers.push(names::FINALIZER.to_owned());
    }
    let mut spec = template.spec.unwrap_or_default();
    if let Some(index) = new.index {
        labels.insert(COMPLETION_INDEX.to_owned(), index.to_string());
        annotations.insert(COMPLETION_INDEX.to_owned(), index.to_string());
        spec.hostname = Some(format!("{job_name}-{index}"));
        let containers = spec.containers.iter_mut();
        containers
            .chain(spec.init_containers.iter_mut().flatten())
            .for_each(add_index_variable);
    }
    if let Some((counted, ignored)) = new.failures {
        annotations.insert(names::INDEX_FAILURES.to_owned(), counted.to_string());
        if ignored > 0 {
            annotations.insert(names::INDEX_IGNORED.to_owned(), ignored.to_string());
        }
    }
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(name[..name.len().saturating_sub(5)].to_owned()),
            name: Some(name),
            namespace: meta.namespace.clone(),
            labels: Some(labels),
            annotations: (!annotations.is_empty()).then_some(annotations),
            finalizers: Some(finalizers),
            owner_references: Some(vec![OwnerReference {
                api_version: "batch/v1".to_owned(),
                kind: "Job".to_owned(),
                name: job_name,
                uid: job_uid,
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    }
}

fn add_index_variable(container: &mut Container) {
    let env = container.env.get_or_insert_default();
    if env
        .iter()
        .any(|variable| variable.name == names::INDEX_VARIABLE)
    {
        return;
    }
    env.push(EnvVar {
        name: names::INDEX_VARIABLE.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                api_version: Some("v1".to_owned()),
                field_path: format!("metadata.labels['{COMPLETION_INDEX}']"),
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn job() -> Job {
        serde_json::from_value(json!({
            "metadata": {"name": "train", "namespace": "a", "uid": "j1"},
            "spec": {"template": {
                "metadata": {"labels": {"app": "x"}, "annotations": {"note": "y"}},
                "spec": {
                    "subdomain": "train", "restartPolicy": "Never",
                    "initContainers": [{"name": "fetch"}],
                    "containers": [
                        {"name": "main", "env": [{"name": "A", "value": "1"}]},
                        {"name": "own", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "mine"}]}
                    ]
                }
            }}
        }))
        .unwrap()
    }

    #[test]
    fn names_fit_and_keep_their_index() {
        assert_eq!(name("train", None, "abcde"), "train-abcde");
        assert_eq!(name("train", Some(12), "abcde"), "train-12-abcde");
        let long = "x".repeat(63);
        assert_eq!(name(&long, None, "abcde").len(), 63);
        let indexed = name(&long, Some(1234), "abcde");
        assert!(
            indexed.ends_with("x-1234-abcde") && indexed.len() == 63,
            "{indexed}"
        );
    }

    #[test]
    fn suffixes_use_the_characters_of_generated_names() {
        let text = suffix();
        assert_eq!(text.len(), 5);
        assert!(text.bytes().all(|b| SUFFIX_LETTERS.contains(&b)));
    }

    #[test]
    fn a_pod_of_an_indexed_job_has_its_index() {
        let new = NewPod {
            index: Some(3),
            failures: Some((2, 1)),
        };
        let pod = serde_json::to_value(build(&job(), new, "train-3-abcde".into())).unwrap();
        assert_eq!(
            pod["metadata"],
            json!({
                "name": "train-3-abcde", "generateName": "train-3-", "namespace": "a",
                "labels": {
                    "app": "x",
                    "batch.kubernetes.io/job-name": "train", "job-name": "train",
                    "batch.kubernetes.io/controller-uid": "j1", "controller-uid": "j1",
                    "batch.kubernetes.io/job-completion-index": "3"
                },
                "annotations": {
                    "note": "y",
                    "batch.kubernetes.io/job-completion-index": "3",
                    "batch.kubernetes.io/job-index-failure-count": "2",
                    "batch.kubernetes.io/job-index-ignored-failure-count": "1"
                },
                "finalizers": ["batch.kubernetes.io/job-tracking"],
                "ownerReferences": [{
                    "apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j1",
                    "controller": true, "blockOwnerDeletion": true
                }]
            })
        );
        let variable = json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {
            "apiVersion": "v1",
            "fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"
        }}});
        assert_eq!(pod["spec"]["hostname"], "train-3");
        assert_eq!(pod["spec"]["subdomain"], "train");
        assert_eq!(pod["spec"]["initContainers"][0]["env"], json!([variable]));
        assert_eq!(
            pod["spec"]["containers"][0]["env"],
            json!([{"name": "A", "value": "1"}, variable])
        );
        assert_eq!(
            pod["spec"]["containers"][1]["env"],
            json!([{"name": "JOB_COMPLETION_INDEX", "value": "mine"}])
        );
    }

    #[test]
    fn a_pod_of_a_non_indexed_job_has_no_index() {
        let pod =
            serde_json::to_value(build(&job(), NewPod::default(), "train-abcde".into())).unwrap();
        assert_eq!(pod["spec"]["hostname"], json!(null));
        assert_eq!(pod["metadata"]["annotations"], json!({"note": "y"}));
        assert_eq!(pod["spec"]["initContainers"][0]["env"], json!(null));
        assert_eq!(
            pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"],
            json!(null)
        );
    }
}
