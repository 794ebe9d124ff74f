//! Decides which nodes a pod may run on: node selector, required node affinity,
//! taints.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

/// Returns true if the node's name and labels match the pod's node selector and its required node
/// affinity.
pub(crate) fn matches_node(spec: &PodSpec, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let selected = spec
        .node_selector
        .iter()
        .flatten()
        .all(|(key, value)| labels.get(key).is_some_and(|own| own == value));
    let required = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|node| {
            node.required_during_scheduling_ignored_during_execution
                .as_ref()
        });
    selected
        && required.is_none_or(|selector| {
            selector
                .node_selector_terms
                .iter()
                .any(|term| meets(term, name, labels))
        })
}

/// Returns true if all requirements of a term hold. An empty term matches nothing.
pub(crate) fn meets(
    term: &NodeSelectorTerm,
    name: &str,
    labels: &BTreeMap<String, String>,
) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let label = |key: &str| labels.get(key).map(String::as_str);
    let field = |key: &str| (key == "metadata.name").then_some(name);
    expressions
        .iter()
        .all(|requirement| holds(requirement, label(&requirement.key)))
        && fields
            .iter()
            .all(|requirement| holds(requirement, field(&requirement.key)))
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let listed = || value.is_some_and(|value| values.iter().any(|other| other == value));
    let compared = || -> Option<std::cmp::Ordering> {
        let [bound] = values else { return None };
        Some(value?.parse::<i64>().ok()?.cmp(&bound.parse().ok()?))
    };
    match requirement.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(std::cmp::Ordering::is_gt),
        "Lt" => compared().is_some_and(std::cmp::Ordering::is_lt),
        _ => false,
    }
}

/// Returns the sum of the weights of the preferred node affinity that the node meets.
pub(crate) fn preference(spec: &PodSpec, name: &str, labels: &BTreeMap<String, String>) -> i64 {
    let affinity = spec.affinity.as_ref();
    let affinity = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
    let preferred = affinity.and_then(|node| {
        node.preferred_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let met = preferred.into_iter().flatten();
    let met = met.filter(|term| meets(&term.preference, name, labels));
    met.map(|term| i64::from(term.weight)).sum()
}

/// Returns the negative number of taints with the effect `PreferNoSchedule` that the pod does not
/// tolerate.
pub(crate) fn avoidance(taints: &[Taint], spec: &PodSpec) -> i64 {
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let avoided = taints.iter().filter(|taint| {
        taint.effect == "PreferNoSchedule" && !tolerations.iter().any(|one| tolerates(one, taint))
    });
    avoided.fold(0, |sum, _| sum - 1)
}

/// Returns the first taint that the pod does not tolerate and that prevents
/// scheduling.
pub(crate) fn untolerated_taint<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
) -> Option<&'a Taint> {
    taints.iter().find(|taint| {
        matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute")
            && !tolerations
                .iter()
                .any(|toleration| tolerates(toleration, taint))
    })
}

/// Returns true if a toleration matches a taint.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (effect, key) = (text(&toleration.effect), text(&toleration.key));
    if !effect.is_empty() && effect != taint.effect {
        return false;
    }
    if !key.is_empty() && key != taint.key {
        return false;
    }
    match text(&toleration.operator).as_str() {
        "Exists" => true,
        "" | "Equal" => !key.is_empty() && text(&toleration.value) == text(&taint.value),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    fn matches(spec: Value) -> bool {
        let mut spec = spec;
        spec["containers"] = json!([]);
        let spec: PodSpec = serde_json::from_value(spec).unwrap();
        let labels = [("zone", "a"), ("cores", "8")];
        let labels = labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        matches_node(&spec, "n1", &labels)
    }

    fn term(key: &str, operator: &str, values: Value) -> Value {
        json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
    }

    fn affine(terms: Value) -> Value {
        json!({"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }}})
    }

    #[test]
    fn node_selectors_match_labels() {
        assert!(matches(json!({})));
        assert!(matches(json!({"nodeSelector": {"zone": "a"}})));
        assert!(!matches(json!({"nodeSelector": {"zone": "b"}})));
        assert!(!matches(
            json!({"nodeSelector": {"zone": "a", "gpu": "yes"}})
        ));
    }

    #[test]
    fn affinity_operators_match() {
        let table = [
            (term("zone", "In", json!(["b", "a"])), true),
            (term("zone", "NotIn", json!(["b"])), true),
            (term("gpu", "NotIn", json!(["b"])), true),
            (term("zone", "NotIn", json!(["a"])), false),
            (term("gpu", "Exists", json!([])), false),
            (term("gpu", "DoesNotExist", json!([])), true),
            (term("cores", "Gt", json!(["7"])), true),
            (term("cores", "Gt", json!(["8"])), false),
            (term("cores", "Lt", json!(["9"])), true),
            (term("zone", "Lt", json!(["9"])), false),
            (term("zone", "Maybe", json!(["a"])), false),
            (json!({}), false),
            (
                json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}),
                true,
            ),
            (
                json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}),
                false,
            ),
        ];
        for (term, expected) in table {
            assert_eq!(matches(affine(json!([term]))), expected, "{term}");
        }
        let either = json!([
            term("zone", "In", json!(["b"])),
            term("cores", "Exists", json!([]))
        ]);
        assert!(matches(affine(either)));
    }

    #[test]
    fn tolerations_match_taints() {
        let table = [
            (
                json!({"key": "k", "value": "v", "effect": "NoSchedule"}),
                json!([]),
                true,
            ),
            (
                json!({"key": "k", "value": "v", "effect": "NoExecute"}),
                json!([]),
                true,
            ),
            (
                json!({"key": "k", "value": "v", "effect": "PreferNoSchedule"}),
                json!([]),
                false,
            ),
            (
                json!({"key": "k", "value": "v", "effect": "NoSchedule"}),
                json!([{"key": "k", "value": "v"}]),
                false,
            ),
            (
                json!({"key": "k", "value": "v", "effect": "NoSchedule"}),
                json!([{"key": "k", "value": "w"}]),
                true,
            ),
            (
                json!({"key": "k", "value": "v", "effect": "NoSchedule"}),
                json!([{"key": "k", "operator": "Exists"}]),
                false,
            ),
            (
                json!({"key": "k", "value": "v", "effect": "NoSchedule"}),
                json!([{"operator": "Exists"}]),
                false,
            ),
            (
                json!({"key": "k", "value": "v", "effect": "NoSchedule"}),
                json!([{"operator": "Exists", "effect": "NoExecute"}]),
                true,
            ),
            (
                json!({"key": "k", "effect": "NoSchedule"}),
                json!([{"key": "k", "operator": "Equal", "effect": "NoSchedule"}]),
                false,
            ),
        ];
        for (taint, tolerations, repelled) in table {
            let taints: Vec<Taint> = serde_json::from_value(json!([taint])).unwrap();
            let tolerations: Vec<Toleration> = serde_json::from_value(tolerations).unwrap();
            assert_eq!(
                untolerated_taint(&taints, &tolerations).is_some(),
                repelled,
                "{tolerations:?}"
            );
        }
    }
}
