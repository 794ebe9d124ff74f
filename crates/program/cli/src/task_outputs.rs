//! Keeps outputs of tasks of the embedded cluster when their pods end.

use std::collections::BTreeMap;

use jiff::Timestamp;
use longshore::launcher::{names, outputs::Outputs, run_outputs};
use longshore_embedded::{CollectFiles, EndedPod};

/// The cluster's outputs.
#[derive(Debug)]
pub(crate) struct TaskOutputs(pub(crate) Outputs);

impl CollectFiles for TaskOutputs {
    fn wants(&self, annotations: &BTreeMap<String, String>) -> bool {
        annotations.contains_key(names::OUTPUTS)
    }

    fn collect(&self, pod: &EndedPod<'_>) {
        run_outputs::keep_ended(&self.0, pod.metadata, pod.volumes, Timestamp::now());
    }
}
