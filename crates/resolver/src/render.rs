//! What the frameworks read: `TF_CONFIG`. Pure.

use serde_json::{Value, json};

use crate::ClusterSpec;

/// The role that TensorFlow keeps outside of the cluster: it reads
/// checkpoints and nobody connects to it.
const EVALUATOR: &str = "evaluator";

/// `TF_CONFIG` of one task: the cluster, and who in it the reader is.
///
/// The evaluator's addresses are left out of `cluster`, as TensorFlow wants
/// it. All else, `chief` or `master` included, stands in it as it is.
///
/// ```
/// use longshore_resolver::{ClusterSpec, render::tf_config};
/// let mut spec = ClusterSpec::new();
/// spec.push("worker", "a:1");
/// spec.push("evaluator", "b:1");
/// assert_eq!(
///     tf_config(&spec, "evaluator", 0).to_string(),
///     r#"{"cluster":{"worker":["a:1"]},"task":{"index":0,"type":"evaluator"}}"#
/// );
/// ```
#[must_use]
pub fn tf_config(spec: &ClusterSpec, role: &str, index: u32) -> Value {
    let mut cluster = spec.as_dict();
    if let Some(jobs) = cluster.as_object_mut() {
        jobs.remove(EVALUATOR);
    }
    json!({"cluster": cluster, "task": {"type": role, "index": index}})
}

/// The task that leads, where a framework wants to know: the `chief` or
/// `master` if there is one, else task 0 of `worker`, else task 0 of the
/// first job.
#[must_use]
pub fn leader(spec: &ClusterSpec) -> Option<(&str, u32)> {
    let first = |job: &str| spec.tasks(job).next().map(|(index, _)| index);
    let order = ["chief", "master", "worker"];
    let known = order
        .into_iter()
        .find_map(|job| first(job).map(|index| (job, index)));
    known.or_else(|| {
        spec.jobs()
            .find_map(|job| first(job).map(|index| (job, index)))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn chief_and_workers_stand_in_the_cluster() {
        let spec = ClusterSpec::from_value(&json!({
            "chief": ["c:1"], "worker": ["a:1", "b:1"], "ps": ["p:1"], "evaluator": ["e:1"],
        }))
        .unwrap();
        let config = tf_config(&spec, "worker", 1);
        assert_eq!(
            config,
            json!({
                "cluster": {"chief": ["c:1"], "worker": ["a:1", "b:1"], "ps": ["p:1"]},
                "task": {"type": "worker", "index": 1},
            })
        );
        assert_eq!(leader(&spec), Some(("chief", 0)));
    }

    #[test]
    fn without_a_chief_worker_zero_leads() {
        let spec = ClusterSpec::from_value(&json!({"ps": ["p:1"], "worker": ["a:1"]})).unwrap();
        assert_eq!(leader(&spec), Some(("worker", 0)));
        let spec = ClusterSpec::from_value(&json!({"node": {"2": "p:1"}})).unwrap();
        assert_eq!(leader(&spec), Some(("node", 2)));
        assert_eq!(leader(&ClusterSpec::new()), None);
    }
}
