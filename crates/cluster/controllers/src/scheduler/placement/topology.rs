//! The domains of the topology in which a pod may run.

use std::collections::{BTreeMap, BTreeSet};

use super::rules::{Rules, Spread};
use crate::scheduler::choose::{Needs, NodeFacts, selects, untolerated};

const AFFINITY: &str = "node(s) didn't match pod affinity rules";
const ANTI_AFFINITY: &str = "node(s) didn't match pod anti-affinity rules";
const ANTI_AFFINITY_OF_OTHERS: &str = "node(s) didn't satisfy existing pods anti-affinity rules";
const SPREAD: &str = "node(s) didn't match pod topology spread constraints";
const NO_LABEL: &str =
    "node(s) didn't match pod topology spread constraints (missing required label)";

/// A pod on a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Neighbor<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) labels: &'a BTreeMap<String, String>,
    pub(crate) rules: Option<&'a Rules>,
    pub(crate) is_terminating: bool,
    pub(crate) node: &'a NodeFacts,
}

/// The pod that is placed.
#[derive(Debug, Clone, Copy)]
struct Subject<'a> {
    namespace: &'a str,
    labels: &'a BTreeMap<String, String>,
}

/// The domains of a label of nodes: value → number of pods.
type Domains<'a> = BTreeMap<&'a str, i64>;

/// The domains that suit a pod.
#[derive(Debug, Default)]
pub(crate) struct Placement<'a> {
    /// For each term of the affinity, the label and the domains with selected pods. The domains are
    /// `None` if the pod is the first one of a group, which needs only the label.
    affinity: Vec<(&'a str, Option<BTreeSet<&'a str>>)>,
    /// The domains that the anti-affinity excludes: label and value.
    excluded: BTreeSet<(&'a str, &'a str)>,
    /// The domains that the anti-affinity of other pods excludes.
    excluded_by_others: BTreeSet<(&'a str, &'a str)>,
    spread: Vec<Counted<'a>>,
    /// The weights of domains: label and value.
    preferred: BTreeMap<(&'a str, &'a str), i64>,
}

/// A constraint, and the pods in each domain.
#[derive(Debug)]
struct Counted<'a> {
    constraint: &'a Spread,
    domains: Domains<'a>,
    fewest: i64,
    /// 1 if the constraint selects the pod itself, otherwise 0.
    own: i64,
}

impl<'a> Placement<'a> {
    /// Finds the domains for a pod among its neighbors.
    pub(crate) fn of(
        (namespace, labels): (&'a str, &'a BTreeMap<String, String>),
        (needs, rules): (&'a Needs, Option<&'a Rules>),
        nodes: impl Iterator<Item = &'a NodeFacts> + Clone,
        neighbors: &[Neighbor<'a>],
    ) -> Self {
        let subject = Subject { namespace, labels };
        let mut placement = Self::default();
        for neighbor in neighbors {
            placement.note_rules_of(neighbor, subject);
        }
        let Some(rules) = rules else {
            return placement;
        };
        placement.affinity = affinity(rules, subject, neighbors);
        for neighbor in neighbors {
            for term in &rules.anti_affinity {
                if term.matches(neighbor.namespace, neighbor.labels) {
                    placement.excluded.extend(domain(neighbor.node, &term.key));
                }
            }
            for (weight, term) in &rules.preferred {
                if term.matches(neighbor.namespace, neighbor.labels) {
                    placement.prefer(domain(neighbor.node, &term.key), *weight);
                }
            }
        }
        placement.spread = rules
            .spread
            .iter()
            .map(|constraint| {
                count(
                    constraint,
                    rules,
                    (needs, subject),
                    nodes.clone(),
                    neighbors,
                )
            })
            .collect();
        placement
    }

    fn prefer(&mut self, domain: Option<(&'a str, &'a str)>, weight: i64) {
        if let Some(domain) = domain {
            let sum = self.preferred.entry(domain).or_insert(0);
            *sum = sum.saturating_add(weight);
        }
    }

    /// Applies the rules of a pod on a node to the pod that is placed.
    fn note_rules_of(&mut self, neighbor: &Neighbor<'a>, subject: Subject<'_>) {
        let Some(rules) = neighbor.rules else {
            return;
        };
        for term in &rules.anti_affinity {
            if term.matches(subject.namespace, subject.labels) {
                self.excluded_by_others
                    .extend(domain(neighbor.node, &term.key));
            }
        }
        for (weight, term) in &rules.preferred {
            if term.matches(subject.namespace, subject.labels) {
                self.prefer(domain(neighbor.node, &term.key), *weight);
            }
        }
    }

    /// Returns the reason why the pod may not run on a node.
    pub(crate) fn problem(&self, node: &NodeFacts) -> Option<&'static str> {
        for Counted {
            constraint,
            domains,
            fewest,
            own,
        } in self.spread.iter().filter(|one| one.constraint.is_required)
        {
            let Some(value) = node.label(&constraint.key) else {
                return Some(NO_LABEL);
            };
            let count = domains.get(value).copied().unwrap_or_default();
            if count.saturating_add(*own).saturating_sub(*fewest) > constraint.max_skew {
                return Some(SPREAD);
            }
        }
        for (key, domains) in &self.affinity {
            let value = node.label(key);
            let suits = value.is_some_and(|value| {
                domains
                    .as_ref()
                    .is_none_or(|domains| domains.contains(value))
            });
            if !suits {
                return Some(AFFINITY);
            }
        }
        let is_in = |excluded: &BTreeSet<(&str, &str)>| {
            let mut excluded = excluded.iter();
            excluded.any(|(key, value)| node.label(key) == Some(value))
        };
        if is_in(&self.excluded) {
            return Some(ANTI_AFFINITY);
        }
        is_in(&self.excluded_by_others).then_some(ANTI_AFFINITY_OF_OTHERS)
    }

    /// Returns the scores of a node by the affinity to pods, and by constraints that are not
    /// required.
    pub(crate) fn preference(&self, node: &NodeFacts) -> [i64; 2] {
        let preferred = self.preferred.iter();
        let here = preferred.filter(|((key, value), _)| node.label(key) == Some(*value));
        let affinity = here.fold(0_i64, |sum, (_, weight)| sum.saturating_add(*weight));
        let soft = self.spread.iter();
        let soft = soft.filter(|one| !one.constraint.is_required);
        let pods = soft.filter_map(|one| {
            let value = node.label(&one.constraint.key)?;
            one.domains.get(value).copied()
        });
        let spread = pods.fold(0_i64, i64::saturating_sub);
        [affinity, spread]
    }
}

/// Returns the domain of a node by a label.
fn domain<'a>(node: &'a NodeFacts, key: &'a str) -> Option<(&'a str, &'a str)> {
    Some((key, node.label(key)?))
}

/// Returns the domains with pods that match all terms of the affinity.
fn affinity<'a>(
    rules: &'a Rules,
    subject: Subject<'_>,
    neighbors: &[Neighbor<'a>],
) -> Vec<(&'a str, Option<BTreeSet<&'a str>>)> {
    let terms = &rules.affinity;
    let matches_all = |namespace: &str, labels: &BTreeMap<String, String>| {
        terms.iter().all(|term| term.matches(namespace, labels))
    };
    let friends: Vec<_> = neighbors
        .iter()
        .filter(|one| matches_all(one.namespace, one.labels))
        .collect();
    let domains: Vec<_> = terms
        .iter()
        .map(|term| {
            let values = friends.iter().filter_map(|one| one.node.label(&term.key));
            (term.key.as_str(), values.collect::<BTreeSet<_>>())
        })
        .collect();
    let is_first = domains.iter().all(|(_, values)| values.is_empty())
        && matches_all(subject.namespace, subject.labels);
    let domains = domains.into_iter();
    domains
        .map(|(key, values)| (key, (!is_first).then_some(values)))
        .collect()
}

/// Counts the pods of a constraint in each domain.
fn count<'a>(
    constraint: &'a Spread,
    rules: &Rules,
    (needs, subject): (&Needs, Subject<'_>),
    nodes: impl Iterator<Item = &'a NodeFacts>,
    neighbors: &[Neighbor<'a>],
) -> Counted<'a> {
    let keys = rules.spread.iter();
    let keys: Vec<&str> = keys
        .filter(|one| one.is_required == constraint.is_required)
        .map(|one| one.key.as_str())
        .collect();
    let counts = |node: &NodeFacts| {
        keys.iter().all(|key| node.label(key).is_some())
            && (!constraint.honors_affinity || selects(needs, node))
            && (!constraint.honors_taints || !untolerated(needs, node))
    };
    let mut domains = Domains::new();
    for node in nodes.filter(|node| counts(node)) {
        if let Some(value) = node.label(&constraint.key) {
            domains.entry(value).or_insert(0);
        }
    }
    let is_selected = |labels| {
        let selector = constraint.selector.as_ref();
        selector.is_some_and(|selector| selector.matches(labels))
    };
    for one in neighbors {
        let is_counted = one.namespace == subject.namespace && !one.is_terminating;
        if is_counted && is_selected(one.labels) && counts(one.node) {
            let value = one.node.label(&constraint.key);
            if let Some(count) = value.and_then(|value| domains.get_mut(value)) {
                *count = count.saturating_add(1);
            }
        }
    }
    let fewest = match domains.len() >= constraint.min_domains {
        true => domains.values().min().copied().unwrap_or_default(),
        false => 0,
    };
    Counted {
        constraint,
        domains,
        fewest,
        own: i64::from(is_selected(subject.labels)),
    }
}
