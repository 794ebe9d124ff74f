//! Releases a pod's resources after it is complete and after it is removed.

use super::Worker;
use crate::{
    collect::{self, EndedPod},
    pod::VOLUMES_DIR,
    pod_threads,
};

impl Worker {
    /// Stops updating the files of a completed pod. Its address and names remain for slower peers
    /// until the pod is removed.
    pub(super) fn retire(&mut self) {
        self.shared.running_containers.removed(&self.uid);
        self.refresher.abort_all();
        self.certifier.abort_all();
        self.cgroup = None;
        self.shared.allocations.release(&self.uid);
        self.shared.devices.release(&self.uid);
        self.shared.hosts.retire(&self.uid);
    }

    /// Registers the name of a pod that was complete before this agent started, because a peer that
    /// restarts with the agent looks up the name again.
    pub(super) fn keep_name(&mut self) {
        let status = self.pod.status.as_ref();
        let had_address = status.is_some_and(|status| status.pod_ip.is_some());
        if !self.phase.is_terminal() || !had_address {
            return;
        }
        if let Some(address) = self.take_address() {
            self.shared.hosts.add_retired(&self.uid, self.host(address));
        }
    }

    /// Calls the hook that reads the volumes, after the containers have ended and before this is
    /// reported, so that a client that sees the end finds the files.
    pub(super) async fn collect_files(&mut self) {
        let is_deleted = self.pod.metadata.deletion_timestamp.is_some();
        if (self.phase.is_terminal() || is_deleted) && self.running.is_empty() {
            self.collect_files_of_removed().await;
        }
    }

    /// Like [`Self::collect_files`], but for a pod that was removed without waiting for its end.
    pub(super) async fn collect_files_of_removed(&mut self) {
        if std::mem::replace(&mut self.collected, true) {
            return;
        }
        let Some(hook) = self.shared.collect_files.clone() else {
            return;
        };
        if !collect::is_wanted(&*hook, &self.pod.metadata) {
            return;
        }
        let (labels, annotations) = (&self.pod.metadata.labels, &self.pod.metadata.annotations);
        let metadata = longshore_model::ObjectMeta {
            name: self.name.clone(),
            namespace: Some(self.namespace.clone()),
            uid: self.uid.clone(),
            labels: labels.clone().unwrap_or_default(),
            annotations: annotations.clone().unwrap_or_default(),
            ..Default::default()
        };
        let volumes = self.shared.pod_folder(&self.uid).join(VOLUMES_DIR);
        let collected = pod_threads::run(move || {
            hook.collect(&EndedPod {
                metadata: &metadata,
                volumes: &volumes,
            });
        });
        if let Err(error) = collected.await {
            tracing::warn!(pod = self.name, %error, "cannot read the pod's volumes");
        }
    }

    /// Removes the volumes of a completed pod after its end was reported. Until then, a restarted
    /// agent may start its containers again.
    pub(super) fn tear_down(&mut self) {
        let is_reported = self.report_retry.at.is_none();
        if self.torn_down || !self.phase.is_terminal() || !self.running.is_empty() || !is_reported {
            return;
        }
        self.torn_down = true;
        self.memory = None;
        self.shared.tear_down(&self.uid);
    }

    /// Releases the address and the names.
    pub(super) fn release(&mut self) {
        if self.released {
            return;
        }
        self.released = true;
        self.shared.running_containers.removed(&self.uid);
        self.refresher.abort_all();
        self.certifier.abort_all();
        self.shared.devices.release(&self.uid);
        self.shared.hosts.remove(&self.uid);
        self.shared.allocations.release(&self.uid);
        if let Some(address) = self.address {
            self.shared.addresses.release(address);
        }
    }
}
