//! The running tasks that can upload their current outputs on request.

use longshore_client::{Cluster, Item};
use longshore_diagnosis::{evidence::RunPod as _, names};
use longshore_model::facts::PodFacts;

use super::{RunOutputsError, TaskChoice};
use crate::{outputs::OutputRequest, run::Run};

/// A running task that uploads its outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uploader {
    /// The task: `worker/1`.
    pub task: String,
    /// The pod of the task.
    pub pod: String,
    /// The command that uploads the current files, for the container [`names::MAIN`].
    pub command: Vec<String>,
}

/// The running tasks of a run that upload their outputs to a store.
///
/// # Errors
/// The cluster does not answer.
pub async fn uploaders(
    cluster: &Cluster,
    run: &Run,
    choice: &TaskChoice,
) -> Result<Vec<Uploader>, RunOutputsError> {
    let mut found = Vec::new();
    for pod in run.list_pods(cluster).await? {
        let facts: PodFacts = Item::typed(&pod)?;
        let task = facts
            .task()
            .filter(|task| choice.has(&task.role, task.index));
        let Some(task) = task else {
            continue;
        };
        let request = facts.metadata.annotations.get(names::OUTPUTS);
        let request = request.map(|text| OutputRequest::parse(text)).transpose()?;
        let uploads = request.is_some_and(|own| own.store.is_some() || own.claim.is_some());
        if !uploads || !facts.has_started() || facts.is_over() {
            continue;
        }
        // The program is the first word of the container's command.
        let containers: Vec<serde_json::Value> =
            pod.field(&["spec", "containers"])?.unwrap_or_default();
        let main = containers.iter().find(|own| own["name"] == names::MAIN);
        let program = main.and_then(|main| main["command"][0].as_str());
        found.push(Uploader {
            task: format!("{}/{}", task.role, task.index),
            pod: pod.name().to_owned(),
            command: [
                program.unwrap_or("longshore"),
                "bootstrap",
                "upload-outputs",
            ]
            .map(str::to_owned)
            .into(),
        });
    }
    Ok(found)
}
