//! Writes a pod's status to the API, and completes its deletion.

use longshore_client::{DeleteOptions, Patch};
use serde_json::json;

use super::{Phase, Retry, Worker, status};
impl Worker {
    /// The phase in the API. A pod that a client has ended stays ended.
    pub(super) fn visible_phase(&self) -> Phase {
        let given = Phase::of(&self.pod);
        match given.is_terminal() {
            true => given,
            false => self.phase,
        }
    }

    /// Writes the status if it changed.
    pub(super) async fn report(&mut self) {
        if self.deleted || !self.report_retry.is_due() {
            return;
        }
        // A time in the past must not wake the task again.
        self.report_retry.at = None;
        if self.reported.is_none() && Phase::of(&self.pod).is_terminal() {
            return;
        }
        let status = status::render(&status::Inputs {
            pod: &self.pod,
            records: &self.records,
            phase: self.visible_phase(),
            policy: self.policy,
            address: self.address,
            host_address: self.shared.address,
            started: self.started,
            reason: self.reason.clone(),
            is_rejected: self.is_rejected,
            resize: &self.resize,
            pod_resources: self.allocation.of_pod(),
            before: &self.conditions,
            now: self.shared.clock.now(),
        });
        if self.reported.as_ref() == Some(&status) {
            return;
        }
        let patch = json!({"metadata": {"uid": self.uid}, "status": status});
        let pods = self.shared.cluster.pods().in_namespace(&self.namespace);
        let result = match pods {
            Ok(pods) => {
                pods.patch_status(&self.name, &Patch::strategic(patch))
                    .await
            }
            Err(error) => Err(error),
        };
        match result {
            Ok(_) => {
                self.conditions = status["conditions"].as_array().cloned().unwrap_or_default();
                self.conditions
                    .retain(|condition| condition.get("$patch").is_none());
                self.reported = Some(status);
                self.report_retry = Retry::default();
            }
            // The pod was deleted or replaced; a message follows.
            Err(error) if error.is_not_found() || error.is_conflict() => {
                self.reported = Some(status);
            }
            Err(error) => {
                tracing::warn!(pod = self.name, %error, "cannot write a pod's status");
                self.report_retry.back_off();
            }
        }
    }

    /// Deletes the object after its containers have ended.
    pub(super) async fn finish_deletion(&mut self) {
        let wanted = self.pod.metadata.deletion_timestamp.is_some();
        let reported = self.report_retry.at.is_none();
        if !wanted || self.deleted || !self.running.is_empty() || !reported {
            return;
        }
        let options = DeleteOptions {
            grace_seconds: Some(0),
            uid: Some(self.uid.clone()),
            ..Default::default()
        };
        let result = match self.shared.cluster.pods().in_namespace(&self.namespace) {
            Ok(pods) => pods.delete(&self.name, &options).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => self.deleted = true,
            Err(error) if error.is_not_found() || error.is_conflict() => self.deleted = true,
            Err(error) => {
                tracing::warn!(pod = self.name, %error, "cannot delete a pod");
                self.report_retry.back_off();
            }
        }
    }
}
