//! Forwards the ports of the node that a pod requests, while the pod runs.

use std::collections::BTreeSet;

use longshore_services::ForwardedPort;

use super::{Retry, Worker};
use crate::host_ports;

/// The ports of the node that are forwarded to a pod.
#[derive(Debug, Default)]
pub(super) struct ForwardedPorts {
    /// The ports that could not be opened, or were not tried yet.
    missing: Vec<ForwardedPort>,
    retry: Retry,
    /// The messages that were reported.
    reported: BTreeSet<String>,
}

impl ForwardedPorts {
    /// Returns the time at which ports are tried again.
    pub(super) fn due(&self) -> Option<tokio::time::Instant> {
        self.retry.at.filter(|_| !self.missing.is_empty())
    }
}

impl Worker {
    /// Opens the ports that the pod requests.
    pub(super) fn forward_host_ports(&mut self) {
        let Some(address) = self.address else {
            return;
        };
        let is_separate = self.shared.spawner.features().has_mounts();
        self.forwarded_ports.missing =
            host_ports::forwarded(&self.pod, address, self.shared.address, is_separate);
        self.forwarded_ports.retry = Retry::default();
        self.open_host_ports();
    }

    /// Opens the ports that are not open, and reports ports that cannot be opened. The pod runs
    /// without them.
    pub(super) fn open_host_ports(&mut self) {
        let ports = &mut self.forwarded_ports;
        if ports.missing.is_empty() || !ports.retry.is_due() {
            return;
        }
        let mut failed = Vec::new();
        for port in std::mem::take(&mut ports.missing) {
            if let Err(message) = self.shared.host_ports.open(&self.uid, port) {
                ports.missing.push(port);
                failed.push(message);
            }
        }
        ports.retry.back_off();
        failed.retain(|message| ports.reported.insert(message.clone()));
        for message in failed {
            self.note(true, "PortNotForwarded", message, None);
        }
    }

    /// Closes the ports after the containers have ended, and before this is reported, because the
    /// next pod may use the ports then.
    pub(super) async fn close_host_ports(&mut self) {
        let is_deleted = self.pod.metadata.deletion_timestamp.is_some();
        if (self.phase.is_terminal() || is_deleted) && self.running.is_empty() {
            self.free_host_ports().await;
        }
    }

    /// Like [`Self::close_host_ports`], but for a pod that was removed without waiting for its end.
    pub(super) async fn free_host_ports(&mut self) {
        self.forwarded_ports.missing.clear();
        self.shared.host_ports.close(&self.uid).await;
        self.shared.admitted_ports.release(&self.uid);
    }
}
