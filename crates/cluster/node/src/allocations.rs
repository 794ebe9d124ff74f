//! The CPU and memory that the node has allocated to its pods. A resize waits until its resources
//! are free.

use std::collections::HashMap;

use longshore_model::{
    quantity::{Amount, Amounts},
    resources::PodResources,
};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::machine::MachineInfo;

/// The resources allocated to a pod: thousandths of cores, and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Allocated {
    pub(crate) cpu: i64,
    pub(crate) memory: i64,
}

impl Allocated {
    /// Returns the resources that a pod requests.
    pub(crate) fn of(pod: &PodResources) -> Self {
        let requests: Amounts = pod.requests_with_overhead();
        let amount = |name: &str| requests.get(name).copied().unwrap_or(Amount::ZERO);
        Self {
            cpu: amount("cpu").thousandths(),
            memory: amount("memory").whole(),
        }
    }
}

/// The allocations of all pods, by their uids.
#[derive(Debug)]
pub(crate) struct Allocations {
    pods: Mutex<HashMap<String, Allocated>>,
    /// Incremented when resources are freed.
    freed: watch::Sender<u64>,
}

impl Default for Allocations {
    fn default() -> Self {
        Self {
            pods: Mutex::default(),
            freed: watch::Sender::new(0),
        }
    }
}

impl Allocations {
    /// Allocates the resources that an admitted pod requests.
    pub(crate) fn admit(&self, uid: &str, requested: Allocated) {
        self.pods.lock().insert(uid.to_owned(), requested);
    }

    /// Allocates the resources that a pod requests after a resize.
    ///
    /// # Errors
    /// Returns Kubernetes' message if the node lacks the resources.
    pub(crate) fn resize(
        &self,
        uid: &str,
        requested: Allocated,
        machine: &MachineInfo,
    ) -> Result<(), String> {
        let mut pods = self.pods.lock();
        let before = pods.get(uid).copied().unwrap_or_default();
        let sum = |of: fn(&Allocated) -> i64| {
            let others = pods.iter().filter(|(other, _)| *other != uid);
            others.fold(0_i64, |sum, (_, one)| sum.saturating_add(of(one)))
        };
        let cores = i64::try_from(machine.cores).unwrap_or(i64::MAX);
        let memory = i64::try_from(machine.memory).unwrap_or(i64::MAX);
        for (name, before, requested, used, capacity) in [
            (
                "cpu",
                before.cpu,
                requested.cpu,
                sum(|one| one.cpu),
                cores.saturating_mul(1000),
            ),
            (
                "memory",
                before.memory,
                requested.memory,
                sum(|one| one.memory),
                memory,
            ),
        ] {
            // A decrease always fits.
            if requested > before && requested.saturating_add(used) > capacity {
                return Err(format!(
                    "Node didn't have enough resource: {name}, requested: {requested}, used: \
                     {used}, capacity: {capacity}"
                ));
            }
        }
        pods.insert(uid.to_owned(), requested);
        drop(pods);
        if requested.cpu < before.cpu || requested.memory < before.memory {
            self.freed
                .send_modify(|count| *count = count.wrapping_add(1));
        }
        Ok(())
    }

    /// Frees the resources of a pod.
    pub(crate) fn release(&self, uid: &str) {
        if self.pods.lock().remove(uid).is_some() {
            self.freed
                .send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// Returns a receiver that is notified when resources are freed.
    pub(crate) fn freed(&self) -> watch::Receiver<u64> {
        self.freed.subscribe()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_resize_waits_until_it_fits() {
        let mut machine = MachineInfo::read(std::path::Path::new("/"));
        (machine.cores, machine.memory) = (2, 1000);
        let allocated = |cpu, memory| Allocated { cpu, memory };
        let all = Allocations::default();
        all.admit("a", allocated(1500, 100));
        all.admit("b", allocated(500, 100));
        let mut freed = all.freed();
        freed.mark_unchanged();
        let error = all.resize("b", allocated(600, 100), &machine).unwrap_err();
        assert_eq!(
            error,
            "Node didn't have enough resource: cpu, requested: 600, used: 1500, capacity: 2000"
        );
        let error = all.resize("b", allocated(500, 901), &machine).unwrap_err();
        assert!(
            error.contains("memory, requested: 901, used: 100"),
            "{error}"
        );
        assert!(!freed.has_changed().unwrap());
        all.resize("a", allocated(1000, 100), &machine).unwrap();
        assert!(freed.has_changed().unwrap());
        all.resize("b", allocated(1000, 900), &machine).unwrap();
        // A decrease is possible even on a node that has too few resources.
        machine.cores = 1;
        all.resize("b", allocated(900, 900), &machine).unwrap();
        all.release("a");
        assert!(all.resize("b", allocated(1000, 900), &machine).is_ok());
    }
}
