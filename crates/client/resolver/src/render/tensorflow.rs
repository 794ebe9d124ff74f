//! TensorFlow: `TF_CONFIG`.

use serde_json::{Value, json};

use crate::spec::ClusterSpec;

/// The role that TensorFlow keeps out of the cluster. It evaluates checkpoints.
const EVALUATOR: &str = "evaluator";

/// Returns `TF_CONFIG` for one task: the cluster, and the task's own role and
/// index. The format follows TensorFlow's guide to distributed training, section
/// "`TF_CONFIG`", and the `TFConfigClusterResolver` of TensorFlow 2.21.
///
/// The other tasks' `cluster` does not contain the evaluator, because no task
/// connects to it. The evaluator's own `cluster` contains it, because TensorFlow
/// looks it up there. Roles without tasks are left out, because TensorFlow cannot
/// read them. All other roles are included unchanged, even `master`. TensorFlow's
/// strategies support only the roles `chief`, `worker`, `ps` and `evaluator`, with
/// consecutive indices.
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
