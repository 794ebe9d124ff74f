//! The time of the change that led to a change of endpoints. Clients use it to measure the delay of
//! the endpoints. Pure.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use jiff::Timestamp;

use super::{pod::PodFacts, service::Service};
use crate::key::Key;

/// The annotation with the trigger time.
pub(super) const ANNOTATION: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// The times of the pods of each Service at its last reconciliation.
#[derive(Debug, Default)]
pub(super) struct Triggers {
    known: HashMap<Key, BTreeMap<String, Timestamp>>,
}

impl Triggers {
    /// Returns the time of the earliest change since the last call, or `None` if no change has a
    /// time.
    pub(super) fn next(&mut self, service: &Service, pods: &[Arc<PodFacts>]) -> Option<Timestamp> {
        let times = pods.iter();
        let times = times.filter_map(|pod| Some((pod.name.clone(), pod.ready_changed?)));
        let times: BTreeMap<String, Timestamp> = times.collect();
        let Some(before) = self.known.get(&service.key) else {
            self.known.insert(service.key.clone(), times);
            return service.created;
        };
        let newer = times.iter();
        let newer = newer.filter(|(name, time)| before.get(*name).is_none_or(|known| known < time));
        let earliest = newer.map(|(_, time)| *time).min();
        self.known.insert(service.key.clone(), times);
        earliest
    }

    /// Forgets a deleted Service.
    pub(super) fn forget(&mut self, key: &Key) {
        self.known.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::testing::{at, pod, service};

    #[test]
    fn the_earliest_change_counts() {
        let mut triggers = Triggers::default();
        let service = service();
        assert_eq!(triggers.next(&service, &[]), service.created);
        assert_eq!(triggers.next(&service, &[]), None);
        let changed = |name: &str, second| {
            let mut pod = pod(name);
            pod.ready_changed = Some(at(second));
            Arc::new(pod)
        };
        let pods = [changed("a", 7), changed("b", 5)];
        assert_eq!(triggers.next(&service, &pods), Some(at(5)));
        assert_eq!(triggers.next(&service, &pods), None);
        let pods = [changed("a", 9), changed("b", 5)];
        assert_eq!(triggers.next(&service, &pods), Some(at(9)));
        triggers.forget(&service.key);
        assert_eq!(triggers.next(&service, &pods), service.created);
    }
}
