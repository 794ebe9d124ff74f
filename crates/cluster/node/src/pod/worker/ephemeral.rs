//! Ephemeral containers, which are added to a running pod.

use std::sync::Arc;

use super::{Role, Worker, record};
use crate::sandbox::Process;

impl Worker {
    /// Adds the records of containers that were added to the pod.
    pub(super) fn add_ephemeral_containers(&mut self) {
        for new in record::ephemeral_records(&self.pod) {
            if !self.records.iter().any(|known| known.name() == new.name()) {
                let name = new.name().to_owned();
                self.shared.logs.add_container(&self.uid, name);
                self.records.push(new);
            }
        }
    }

    /// Starts the ephemeral containers. They do not wait for init containers, and do not restart.
    pub(super) async fn start_ephemeral_containers(&mut self) {
        for index in 0..self.records.len() {
            let record = &self.records[index];
            if record.role == Role::Ephemeral && !record.has_run() {
                self.start_if_due(index).await;
            }
        }
    }

    /// Returns the process whose namespaces the container enters, or the name
    /// of a target that does not run.
    pub(super) fn target_process(&self, index: usize) -> Option<Result<Arc<Process>, String>> {
        let target = self.records[index].target.as_ref()?;
        let found = self
            .records
            .iter()
            .position(|record| record.name() == target);
        let process = found.and_then(|index| self.running.get(&index));
        Some(process.cloned().ok_or_else(|| target.clone()))
    }
}
