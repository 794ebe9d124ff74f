//! What is given back when a pod is through, and when it is gone.

use super::Worker;
use crate::remover::remove_folder;

impl Worker {
    /// Nothing runs any more: no file needs to be kept up to date. Address and
    /// names stay until the pod is removed, for peers that are slower to look.
    pub(super) fn retire(&mut self) {
        self.shared.live.removed(&self.uid);
        self.refresher.abort_all();
        self.shared.devices.release(&self.uid);
        self.shared.hosts.retire(&self.uid);
    }

    /// Keeps the name of a pod that was over before this agent began: a peer that is
    /// started again after the agent waits for it like the first time.
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

    /// Removes the volumes of a pod that is over. Not before its end has been reported:
    /// until then, an agent that starts anew may start its containers again.
    pub(super) fn tear_down(&mut self) {
        let is_reported = self.report_retry.at.is_none();
        if self.torn_down || !self.phase.is_terminal() || !self.running.is_empty() || !is_reported {
            return;
        }
        self.torn_down = true;
        self.shared.tear_down(&self.uid);
    }

    /// Gives address and names back.
    pub(super) fn release(&mut self) {
        if self.released {
            return;
        }
        self.released = true;
        self.shared.live.removed(&self.uid);
        self.refresher.abort_all();
        self.shared.devices.release(&self.uid);
        self.shared.hosts.remove(&self.uid);
        if let Some(address) = self.address {
            self.shared.addresses.release(address);
        }
    }

    pub(super) fn remove_files(&self) {
        self.shared.logs.remove_pod(&self.uid);
        remove_folder(&self.shared.pod_folder(&self.uid));
    }
}
