//! Chooses the pods to delete for a pod with a higher priority. Pure.

use std::{cmp::Reverse, collections::BTreeMap};

use jiff::Timestamp;

use super::{
    budget::Budget,
    choose::{Load, NodeFacts, Usage},
};
use crate::key::Key;

/// A pod with a lower priority on a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Victim<'a> {
    pub(super) key: &'a Key,
    pub(super) priority: i32,
    /// The start time; `None` counts as now.
    pub(super) started: Option<Timestamp>,
    pub(super) labels: &'a BTreeMap<String, String>,
    pub(super) load: &'a Load,
}

impl Victim<'_> {
    /// Returns a key that sorts the most important pods first: pods with a high priority, then pods
    /// with an early start.
    fn rank(&self) -> (Reverse<i32>, Timestamp, &Key) {
        let started = self.started.unwrap_or(Timestamp::MAX);
        (Reverse(self.priority), started, self.key)
    }
}

/// A node, and its pods with a lower priority.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    pub(super) node: &'a NodeFacts,
    /// The resources in use, including the resources of the victims.
    pub(super) usage: Usage,
    pub(super) victims: Vec<Victim<'a>>,
}

/// The chosen node, and the pods to delete, from the most important one.
#[derive(Debug, PartialEq)]
pub(super) struct Chosen<'a> {
    pub(super) node: &'a str,
    pub(super) victims: Vec<&'a Key>,
}

/// The victims on a node.
struct Selected<'a> {
    node: &'a str,
    victims: Vec<Victim<'a>>,
    /// The number of victims that a budget protects.
    violations: usize,
}

/// Chooses a node and victims. Prefers the fewest violations of budgets, then the lowest maximum
/// priority of the victims, the lowest sum of priorities, the fewest victims, and the latest start
/// of the victims with the highest priority. `fits` returns true if the pod fits the node with this
/// usage.
pub(super) fn choose<'a>(
    candidates: impl IntoIterator<Item = Candidate<'a>>,
    budgets: &[&Budget],
    fits: impl Fn(&NodeFacts, &Usage) -> bool,
) -> Option<Chosen<'a>> {
    let selected = candidates
        .into_iter()
        .filter_map(|candidate| select(candidate, budgets, &fits));
    let best = selected.min_by_key(|selected| {
        let victims = &selected.victims;
        let highest = victims.first().map_or(i32::MIN, |victim| victim.priority);
        let offset = i64::from(i32::MAX) + 1;
        let priorities = victims.iter().map(|victim| i64::from(victim.priority));
        let sum = priorities.fold(0_i64, |sum, priority| sum.saturating_add(priority + offset));
        let of_highest = victims.iter().filter(|victim| victim.priority == highest);
        let earliest = of_highest
            .map(|victim| victim.started.unwrap_or(Timestamp::MAX))
            .min();
        (
            selected.violations,
            highest,
            sum,
            victims.len(),
            Reverse(earliest),
        )
    })?;
    Some(Chosen {
        node: best.node,
        victims: best.victims.iter().map(|victim| victim.key).collect(),
    })
}

/// Selects as few victims on a node as possible. Returns `None` if the pod does not fit even
/// without all of them. Pods that a budget protects, and the most important pods, are kept first.
fn select<'a>(
    candidate: Candidate<'a>,
    budgets: &[&Budget],
    fits: &impl Fn(&NodeFacts, &Usage) -> bool,
) -> Option<Selected<'a>> {
    let Candidate {
        node,
        mut usage,
        mut victims,
    } = candidate;
    if victims.is_empty() {
        return None;
    }
    for victim in &victims {
        usage.remove(victim.load);
    }
    if !fits(node, &usage) {
        return None;
    }
    victims.sort_by(|one, other| one.rank().cmp(&other.rank()));
    let (violating, others) = split(&victims, budgets);
    let mut keep = |victim: &Victim<'a>| {
        usage.add(victim.load);
        let is_kept = fits(node, &usage);
        if !is_kept {
            usage.remove(victim.load);
        }
        is_kept
    };
    let mut selected: Vec<Victim<'a>> = violating;
    selected.retain(|victim| !keep(victim));
    let violations = selected.len();
    selected.extend(others.into_iter().filter(|victim| !keep(victim)));
    if selected.is_empty() {
        return None;
    }
    selected.sort_by(|one, other| one.rank().cmp(&other.rank()));
    Some(Selected {
        node: &node.name,
        victims: selected,
        violations,
    })
}

/// Splits victims into those whose deletion violates a budget, and the others.
fn split<'a>(victims: &[Victim<'a>], budgets: &[&Budget]) -> (Vec<Victim<'a>>, Vec<Victim<'a>>) {
    let mut allowed: Vec<i32> = budgets.iter().map(|budget| budget.allowed).collect();
    let mut violates = |victim: &Victim<'_>| {
        let budgets = budgets.iter().zip(&mut allowed);
        for (budget, allowed) in budgets {
            let selects = budget.namespace == victim.key.namespace
                && !victim.labels.is_empty()
                && budget.selector.matches(victim.labels)
                && !budget.disrupted.contains(&victim.key.name);
            if selects {
                *allowed = allowed.saturating_sub(1);
                if *allowed < 0 {
                    return true;
                }
            }
        }
        false
    };
    victims.iter().copied().partition(|victim| violates(victim))
}

#[cfg(test)]
mod tests;
