//! The controller's requests and events.

use jiff::Timestamp;
use longshore_client::{Cluster, Error, Item, Patch, View, kinds::Any};
use longshore_model::time;
use serde_json::json;

use super::{budget::Budget, pod::PodFacts, status::Status};
use crate::events::{Recorder, Severity, Subject};

pub(super) struct Requests {
    pub(super) cluster: Cluster,
    pub(super) budgets: View<Any>,
    pub(super) events: Recorder,
}

impl Requests {
    /// Replaces the status if the budget has not changed since it was read.
    pub(super) async fn store_status(
        &self,
        item: &Item<Any>,
        status: &Status,
    ) -> Result<(), Error> {
        let mut object = item.raw()?;
        object["status"] =
            serde_json::to_value(status).map_err(|error| Error::Invalid(error.to_string()))?;
        let namespace = item.namespace().unwrap_or_default();
        let view = self.budgets.clone().in_namespace(namespace)?;
        match view.replace_status(item.name(), &object).await {
            Err(error) if error.is_not_found() => Ok(()),
            done => done.map(drop),
        }
    }

    /// Sets the condition DisruptionTarget of a pod that will not be deleted to False.
    pub(super) async fn reset_disruption(
        &self,
        pod: &PodFacts,
        now: Timestamp,
    ) -> Result<(), Error> {
        let view = self.cluster.pods().in_namespace(&pod.key.namespace)?;
        let patch = Patch::strategic(json!({
            "metadata": {"uid": pod.uid},
            "status": {"conditions": [{
                "type": "DisruptionTarget", "status": "False", "reason": null, "message": null,
                "lastTransitionTime": time::seconds(now),
            }]},
        }));
        match view.patch_status(&pod.key.name, &patch).await {
            Err(error) if error.is_not_found() || error.code() == Some(422) => Ok(()),
            done => done.map(drop),
        }
    }

    pub(super) fn note(&self, budget: &Budget, severity: Severity, reason: &str, message: &str) {
        let subject = Subject {
            api_version: "policy/v1".into(),
            kind: "PodDisruptionBudget".into(),
            namespace: budget.key.namespace.clone(),
            name: budget.key.name.clone(),
            uid: budget.uid.clone(),
        };
        self.events.record_event(subject, severity, reason, message);
    }

    pub(super) fn note_not_deleted(&self, budget: &Budget, pod: &PodFacts) {
        let subject = Subject {
            api_version: "v1".into(),
            kind: "Pod".into(),
            namespace: pod.key.namespace.clone(),
            name: pod.key.name.clone(),
            uid: pod.uid.clone(),
        };
        // Kubernetes prints the namespace twice.
        let namespace = &budget.key.namespace;
        let message =
            format!("Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't");
        self.events
            .record_event(subject, Severity::Warning, "NotDeleted", &message);
    }
}
