//! TensorFlow: `TF_CONFIG`.

use serde_json::{Value, json};

use crate::spec::ClusterSpec;

/// The role that TensorFlow keeps outside of the cluster: it reads checkpoints.
const EVALUATOR: &str = "evaluator";

/// `TF_CONFIG` of one task: the cluster, and who in it the reader is. The
/// source: TensorFlow's guide to distributed training, "`TF_CONFIG`", and what
/// `TFConfigClusterResolver` of TensorFlow 2.21 reads.
///
/// The evaluator stands outside of the others' `cluster`: nobody connects to it.
/// It has itself in its own, without which TensorFlow does not find it. Roles
/// without tasks are left out, for TensorFlow cannot read them. All else, `chief`
/// or `master` included, stands in it as it is; TensorFlow's strategies know
/// `chief`, `worker`, `ps` and `evaluator` only, and no holes.
///
/// ```
/// use longshore_resolver::{ClusterSpec, render::tf_config};
/// let mut spec = ClusterSpec::new();
/// spec.push("worker", "a:1");
/// spec.push("evaluator", "b:1");
/// assert_eq!(
///     tf_config(&spec, "worker", 0).to_string(),
///     r#"{"cluster":{"worker":["a:1"]},"task":{"index":0,"type":"worker"}}"#
/// );
/// ```
#[must_use]
pub fn tf_config(spec: &ClusterSpec, role: &str, index: u32) -> Value {
    let mut cluster = spec.as_dict();
    if let Some(jobs) = cluster.as_object_mut() {
        jobs.retain(|job, _| spec.tasks(job).next().is_some());
        if role != EVALUATOR {
            jobs.remove(EVALUATOR);
        }
    }
    json!({"cluster": cluster, "task": {"type": role, "index": index}})
}
