//! Reports which tasks are missing, and why. Pure.

use std::{collections::BTreeMap, fmt};

use longshore_model::facts::{PodFacts, Stage};

use crate::{
    address,
    order::natural_order,
    policy::Act,
    tasks::{Assembly, Selected},
};

/// The maximum number of reasons that a message lists.
const MAX_REASONS: usize = 10;

/// A role with fewer tasks than required.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The role.
    pub role: String,
    /// The number of tasks that the role needs.
    pub needed: usize,
    /// The number of tasks that the role has.
    pub ready: usize,
    /// The reasons, one for each pod that is not a task yet.
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
        let listed = &reasons[..reasons.len().min(MAX_REASONS)];
        write!(f, "; {}", listed.join(", "))?;
        match reasons.len() - listed.len() {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

/// Returns the roles with missing tasks. The list is empty when every role has
/// enough tasks.
#[must_use]
pub fn missing(
    selected: &[Selected<'_>],
    needed: &BTreeMap<String, usize>,
    assembly: &Assembly,
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
        of_role(role, pods, needed, assembly)
    });
    unknown.chain(known).collect()
}

fn of_role(
    role: &str,
    pods: &[Vec<&PodFacts>],
    needed: usize,
    assembly: &Assembly,
) -> Option<Missing> {
    let mut pods: Vec<&PodFacts> = pods.iter().flatten().copied().collect();
    pods.sort_by(|a, b| natural_order(&a.metadata.name, &b.metadata.name));
    let mut reasons: Vec<String> = pods
        .iter()
        .filter_map(|pod| reason_missing(pod, assembly))
        .collect();
    let ready = pods.len() - reasons.len();
    if ready >= needed {
        return None;
    }
    match needed.checked_sub(pods.len()) {
        Some(1..) if pods.is_empty() => {
            reasons.push("no pod matches".to_owned());
        }
        Some(uncreated @ 1..) => reasons.push(format!("{uncreated} not created yet")),
        _ => {}
    }
    Some(Missing {
        role: role.to_owned(),
        needed,
        ready,
        reasons,
    })
}

/// Returns true if a pod has everything that a task needs.
pub(crate) fn is_complete(pod: &PodFacts, assembly: &Assembly) -> bool {
    reason_missing(pod, assembly).is_none()
}

/// Returns the reason why a pod is not a task yet.
fn reason_missing(pod: &PodFacts, assembly: &Assembly) -> Option<String> {
    let name = &pod.metadata.name;
    let policy = &assembly.policy;
    let (act, state) = match pod.stage() {
        Stage::Ready => (Act::Keep, ""),
        Stage::Pending => (policy.pending, pod.status.phase.as_str()),
        Stage::Finished => (policy.finished, pod.status.phase.as_str()),
        Stage::Unready => (policy.unready, "not ready"),
        Stage::Terminating => (policy.terminating, "being deleted"),
    };
    if act != Act::Keep {
        return Some(match pod.blocking_reason() {
            Some(reason) => format!("{name} is {state} ({reason})"),
            None => format!("{name} is {state}"),
        });
    }
    let host = address::host(pod, assembly.address, assembly.family).map(drop);
    let port = address::port(pod, &assembly.port, assembly.address).map(drop);
    host.and(port).err().map(|error| error.to_string())
}
