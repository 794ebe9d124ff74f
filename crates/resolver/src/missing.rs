//! Which tasks are missing, and why. Pure.

use std::{collections::BTreeMap, fmt};

use crate::{
    facts::{PodFacts, State},
    order::natural_order,
    policy::Act,
    tasks::{Assembly, Selected},
};

/// How many pods are named one by one.
const NAMED: usize = 10;

/// A role that has fewer tasks than it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The role.
    pub role: String,
    /// How many tasks it needs.
    pub needed: usize,
    /// How many it has.
    pub ready: usize,
    /// What is known of the others, pod by pod.
    pub reasons: Vec<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            role,
            needed,
            ready,
            reasons,
        } = self;
        write!(f, "{role}: {ready} of {needed}")?;
        let named = &reasons[..reasons.len().min(NAMED)];
        write!(f, "; {}", named.join(", "))?;
        match reasons.len() - named.len() {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

/// The roles that lack tasks; none when every role has what it needs.
#[must_use]
pub fn missing(
    selected: &[Selected<'_>],
    needed: &BTreeMap<String, usize>,
    how: &Assembly,
) -> Vec<Missing> {
    let unknown = needed.iter().filter(|(role, needed)| {
        **needed > 0 && !selected.iter().any(|known| known.role == role.as_str())
    });
    let unknown = unknown.map(|(role, needed)| Missing {
        role: role.clone(),
        needed: *needed,
        ready: 0,
        reasons: vec!["no selector is given for this role".to_owned()],
    });
    let known = selected.iter().filter_map(|Selected { role, pods }| {
        let needed = needed.get(*role).copied().unwrap_or(0);
        of_role(role, pods, needed, how)
    });
    unknown.chain(known).collect()
}

fn of_role(role: &str, pods: &[Vec<&PodFacts>], needed: usize, how: &Assembly) -> Option<Missing> {
    let mut pods: Vec<&PodFacts> = pods.iter().flatten().copied().collect();
    pods.sort_by(|a, b| natural_order(&a.metadata.name, &b.metadata.name));
    let mut reasons: Vec<String> = pods.iter().filter_map(|pod| why_not(pod, how)).collect();
    let ready = pods.len() - reasons.len();
    if ready >= needed {
        return None;
    }
    match needed.checked_sub(pods.len()) {
        Some(1..) if pods.is_empty() => {
            reasons.push("no pod matches".to_owned());
        }
        Some(lacking @ 1..) => reasons.push(format!("{lacking} not created yet")),
        _ => {}
    }
    Some(Missing {
        role: role.to_owned(),
        needed,
        ready,
        reasons,
    })
}

/// Whether a pod is a task, with all that a task needs.
pub(crate) fn is_there(pod: &PodFacts, how: &Assembly) -> bool {
    why_not(pod, how).is_none()
}

/// Why a pod is no task yet.
fn why_not(pod: &PodFacts, how: &Assembly) -> Option<String> {
    let name = &pod.metadata.name;
    let policy = &how.policy;
    let (act, state) = match pod.state() {
        State::Ready => (Act::Keep, ""),
        State::Pending => (policy.pending, pod.status.phase.as_str()),
        State::Finished => (policy.finished, pod.status.phase.as_str()),
        State::Unready => (policy.unready, "not ready"),
        State::Terminating => (policy.terminating, "being deleted"),
    };
    if act != Act::Keep {
        return Some(match pod.hindrance() {
            Some(hindrance) => format!("{name} is {state} ({hindrance})"),
            None => format!("{name} is {state}"),
        });
    }
    let host = pod.host(how.address, how.family).map(drop);
    let port = pod.port(&how.port, how.address).map(drop);
    host.and(port).err().map(|error| error.to_string())
}
