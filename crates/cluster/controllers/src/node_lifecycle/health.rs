//! The time of each node's last report. Pure: the current time is an argument.
//!
//! Times in objects are from the node's clock, so they are only compared with each other.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use super::facts::NodeFacts;

/// The last report of a node.
#[derive(Debug)]
struct Seen {
    uid: String,
    /// The heartbeat time of the condition Ready.
    heartbeat: Option<String>,
    /// The last renewal of the node's Lease.
    renewed: Option<String>,
    at: Instant,
}

/// The maximum time without a report.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// For a node that has reported.
    pub(super) running: Duration,
    /// For a node that has not reported yet.
    pub(super) starting: Duration,
}

/// The last reports of all nodes.
#[derive(Debug, Default)]
pub(super) struct Health(HashMap<String, Seen>);

impl Health {
    /// Returns true if a node has been silent for too long. `renewed` is the last renewal of its
    /// Lease.
    pub(super) fn is_silent(
        &mut self,
        node: &NodeFacts,
        renewed: Option<String>,
        limits: Limits,
        now: Instant,
    ) -> bool {
        let ready = node.condition("Ready");
        let heartbeat = ready.and_then(|one| one.last_heartbeat_time.clone());
        let limit = match ready {
            Some(_) => limits.running,
            None => limits.starting,
        };
        let known = self.0.get(&node.name);
        let known = known.filter(|known| {
            known.uid == node.uid && known.heartbeat == heartbeat && known.renewed == renewed
        });
        if let Some(known) = known {
            return now.duration_since(known.at) > limit;
        }
        let seen = Seen {
            uid: node.uid.clone(),
            heartbeat,
            renewed,
            at: now,
        };
        self.0.insert(node.name.clone(), seen);
        false
    }

    /// Forgets the nodes that no longer exist.
    pub(super) fn retain(&mut self, exists: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| exists(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_lifecycle::facts::Condition;

    #[test]
    fn a_node_is_silent_without_heartbeats_and_renewals() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let limits = Limits {
            running: Duration::from_secs(50),
            starting: Duration::from_secs(60),
        };
        let mut node = NodeFacts {
            name: "n".into(),
            uid: "u".into(),
            version: "1".into(),
            created: None,
            unschedulable: false,
            taints: Vec::new(),
            conditions: Vec::new(),
        };
        let mut health = Health::default();
        assert!(!health.is_silent(&node, None, limits, at(0)));
        assert!(!health.is_silent(&node, None, limits, at(60)));
        assert!(health.is_silent(&node, None, limits, at(61)));
        // The node reports for the first time.
        let condition = |heartbeat: &str| Condition {
            r#type: "Ready".into(),
            status: "True".into(),
            last_heartbeat_time: Some(heartbeat.into()),
        };
        node.conditions = vec![condition("1")];
        assert!(!health.is_silent(&node, None, limits, at(70)));
        assert!(!health.is_silent(&node, None, limits, at(120)));
        assert!(health.is_silent(&node, None, limits, at(121)));
        // The node renews its Lease.
        let renewed = |text: &str| Some(text.to_owned());
        assert!(!health.is_silent(&node, renewed("1"), limits, at(122)));
        assert!(!health.is_silent(&node, renewed("2"), limits, at(170)));
        assert!(!health.is_silent(&node, renewed("2"), limits, at(220)));
        assert!(health.is_silent(&node, renewed("2"), limits, at(221)));
        node.conditions = vec![condition("2")];
        assert!(!health.is_silent(&node, renewed("2"), limits, at(222)));
        health.retain(|_| false);
        assert!(!health.is_silent(&node, renewed("2"), limits, at(999)));
    }
}
