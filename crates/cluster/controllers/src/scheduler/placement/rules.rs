//! The rules of a pod about other pods.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::core::v1::{PodAffinityTerm, PodSpec, TopologySpreadConstraint},
    apimachinery::pkg::apis::meta::v1::LabelSelector as Selector,
};
use longshore_client::LabelSelector;
use longshore_model::selector::{Requirement, StructuredSelector};

/// The affinity, anti-affinity and spread constraints of a pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Rules {
    /// Pods that must be in the same domain.
    pub(super) affinity: Vec<Term>,
    /// Pods that must not be in the same domain.
    pub(super) anti_affinity: Vec<Term>,
    /// Pods that should be in the same domain, or should not if the weight is negative.
    pub(super) preferred: Vec<(i64, Term)>,
    pub(super) spread: Vec<Spread>,
}

/// A term of an affinity: selects pods in a domain of the topology.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    /// The label of nodes whose values are the domains.
    pub(super) key: String,
    selector: Option<LabelSelector>,
    namespaces: BTreeSet<String>,
    /// The selector of namespaces.
    namespace_selector: Option<LabelSelector>,
}

/// A topology spread constraint.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spread {
    pub(super) key: String,
    pub(super) selector: Option<LabelSelector>,
    pub(super) max_skew: i64,
    /// True if the pod must not be scheduled where the constraint does not hold.
    pub(super) is_required: bool,
    pub(super) min_domains: usize,
    /// True if nodes that the pod does not select are not counted.
    pub(super) honors_affinity: bool,
    /// True if nodes with taints that the pod does not tolerate are not counted.
    pub(super) honors_taints: bool,
}

impl Rules {
    /// Reads the rules of a pod in a namespace; `None` if it has none.
    pub(crate) fn of(
        spec: &PodSpec,
        namespace: &str,
        labels: &BTreeMap<String, String>,
    ) -> Option<Self> {
        let affinity = spec.affinity.as_ref();
        let together = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
        let apart = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
        let terms = |terms: Option<&Vec<PodAffinityTerm>>| -> Vec<Term> {
            let terms = terms.into_iter().flatten();
            terms.map(|term| Term::of(term, namespace)).collect()
        };
        let required = |one: Option<&Vec<PodAffinityTerm>>| terms(one);
        let mut rules = Self {
            affinity: required(together.and_then(|one| {
                one.required_during_scheduling_ignored_during_execution
                    .as_ref()
            })),
            anti_affinity: required(apart.and_then(|one| {
                one.required_during_scheduling_ignored_during_execution
                    .as_ref()
            })),
            ..Self::default()
        };
        let preferred = together.and_then(|one| {
            one.preferred_during_scheduling_ignored_during_execution
                .as_ref()
        });
        let avoided = apart.and_then(|one| {
            one.preferred_during_scheduling_ignored_during_execution
                .as_ref()
        });
        for (terms, sign) in [(preferred, 1), (avoided, -1)] {
            for one in terms.into_iter().flatten() {
                let term = Term::of(&one.pod_affinity_term, namespace);
                rules.preferred.push((sign * i64::from(one.weight), term));
            }
        }
        let constraints = spec.topology_spread_constraints.iter().flatten();
        rules.spread = constraints.map(|one| Spread::of(one, labels)).collect();
        (rules != Self::default()).then_some(rules)
    }
}

/// Reads a selector; `None` selects nothing.
fn selector(selector: Option<&Selector>) -> Option<LabelSelector> {
    let selector = selector?;
    let expressions = selector.match_expressions.iter().flatten();
    let structured = StructuredSelector {
        match_labels: selector.match_labels.clone().unwrap_or_default(),
        match_expressions: expressions
            .map(|one| Requirement {
                key: one.key.clone(),
                operator: one.operator.clone(),
                values: one.values.clone().unwrap_or_default(),
            })
            .collect(),
    };
    LabelSelector::try_from(structured).ok()
}

impl Term {
    fn of(term: &PodAffinityTerm, namespace: &str) -> Self {
        let mut namespaces: BTreeSet<String> = term.namespaces.iter().flatten().cloned().collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.insert(namespace.to_owned());
        }
        Self {
            key: term.topology_key.clone(),
            selector: selector(term.label_selector.as_ref()),
            namespaces,
            namespace_selector: selector(term.namespace_selector.as_ref()),
        }
    }

    /// Returns true if the term selects a pod with these labels.
    pub(super) fn matches(&self, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
        let is_in_namespace = || {
            self.namespaces.contains(namespace)
                || self.namespace_selector.as_ref().is_some_and(|selector| {
                    let name = "kubernetes.io/metadata.name".to_owned();
                    selector.matches(&BTreeMap::from([(name, namespace.to_owned())]))
                })
        };
        let selector = self.selector.as_ref();
        selector.is_some_and(|selector| selector.matches(labels)) && is_in_namespace()
    }
}

impl Spread {
    fn of(constraint: &TopologySpreadConstraint, labels: &BTreeMap<String, String>) -> Self {
        let mut selected = constraint.label_selector.clone();
        // Keys whose values in the pod's labels are also selected.
        if let Some(selected) = &mut selected {
            let given = selected.match_labels.get_or_insert_default();
            for key in constraint.match_label_keys.iter().flatten() {
                if let Some(value) = labels.get(key) {
                    given.insert(key.clone(), value.clone());
                }
            }
        }
        let policy = |policy: &Option<String>| policy.as_deref().map(|policy| policy == "Honor");
        let min_domains = constraint.min_domains.unwrap_or(1);
        Self {
            key: constraint.topology_key.clone(),
            selector: selector(selected.as_ref()),
            max_skew: i64::from(constraint.max_skew),
            is_required: constraint.when_unsatisfiable == "DoNotSchedule",
            min_domains: usize::try_from(min_domains).unwrap_or(1),
            honors_affinity: policy(&constraint.node_affinity_policy).unwrap_or(true),
            honors_taints: policy(&constraint.node_taints_policy).unwrap_or(false),
        }
    }
}
