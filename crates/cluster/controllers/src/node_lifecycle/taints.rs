//! The taints that follow from the conditions of a node. Pure.

use k8s_openapi::api::core::v1::Taint;

use super::facts::NodeFacts;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// A condition, its status, and the resulting taint.
const BY_CONDITION: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    (
        "MemoryPressure",
        "True",
        "node.kubernetes.io/memory-pressure",
    ),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    (
        "NetworkUnavailable",
        "True",
        "node.kubernetes.io/network-unavailable",
    ),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];

/// Returns the desired taints of a node, or `None` if the node has them. Other taints are kept. If
/// `evict` is true, nodes that are not ready evict their pods. Pass false if no node is ready,
/// because the cause is then more likely the control plane.
pub(super) fn desired(node: &NodeFacts, evict: bool, now: &str) -> Option<Vec<Taint>> {
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    for (kind, status, key) in BY_CONDITION {
        if node.condition(kind).is_some_and(|one| one.status == status) {
            wanted.push((key, "NoSchedule"));
            if evict && kind == "Ready" {
                wanted.push((key, "NoExecute"));
            }
        }
    }
    if node.unschedulable {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    let is_own = |taint: &Taint| match &*taint.effect {
        "NoSchedule" => {
            taint.key == UNSCHEDULABLE || BY_CONDITION.iter().any(|(_, _, key)| taint.key == *key)
        }
        "NoExecute" => [NOT_READY, UNREACHABLE].contains(&&*taint.key),
        _ => false,
    };
    let is_wanted = |taint: &Taint| wanted.contains(&(&*taint.key, &*taint.effect));
    let kept = node.taints.iter();
    let kept = kept.filter(|taint| !is_own(taint) || is_wanted(taint));
    let mut taints: Vec<Taint> = kept.cloned().collect();
    for (key, effect) in wanted {
        let is_same = |taint: &Taint| taint.key == key && taint.effect == effect;
        if !taints.iter().any(is_same) {
            taints.push(Taint {
                key: key.to_owned(),
                effect: effect.to_owned(),
                time_added: now
                    .parse()
                    .ok()
                    .map(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time),
                ..Taint::default()
            });
        }
    }
    (taints != node.taints).then_some(taints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_lifecycle::facts::Condition;

    fn node(ready: &str) -> NodeFacts {
        NodeFacts {
            name: "n".into(),
            uid: "u".into(),
            version: "1".into(),
            created: None,
            unschedulable: false,
            taints: vec![Taint {
                key: "own".into(),
                effect: "NoExecute".into(),
                ..Taint::default()
            }],
            conditions: vec![Condition {
                r#type: "Ready".into(),
                status: ready.into(),
                last_heartbeat_time: None,
            }],
        }
    }

    fn names(taints: &[Taint]) -> Vec<String> {
        let names = taints.iter();
        names
            .map(|taint| format!("{}:{}", taint.key, taint.effect))
            .collect()
    }

    #[test]
    fn taints_follow_the_conditions() {
        let now = "2026-01-02T03:04:05Z";
        let mut node = node("True");
        assert_eq!(desired(&node, true, now), None);
        node.conditions[0].status = "False".into();
        node.taints = desired(&node, true, now).unwrap_or_default();
        let not_ready = [
            "own:NoExecute",
            "node.kubernetes.io/not-ready:NoSchedule",
            "node.kubernetes.io/not-ready:NoExecute",
        ];
        assert_eq!(names(&node.taints), not_ready);
        assert_eq!(desired(&node, true, now), None);
        node.conditions[0].status = "Unknown".into();
        node.unschedulable = true;
        node.taints = desired(&node, false, now).unwrap_or_default();
        let unreachable = [
            "own:NoExecute",
            "node.kubernetes.io/unreachable:NoSchedule",
            "node.kubernetes.io/unschedulable:NoSchedule",
        ];
        assert_eq!(names(&node.taints), unreachable);
        node.conditions[0].status = "True".into();
        node.unschedulable = false;
        node.taints = desired(&node, true, now).unwrap_or_default();
        assert_eq!(names(&node.taints), ["own:NoExecute"]);
    }
}
