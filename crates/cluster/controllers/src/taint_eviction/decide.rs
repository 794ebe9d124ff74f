//! Decides how long a pod may stay on a tainted node. Pure.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Taint, Toleration};

use crate::scheduler::tolerates;

/// The time for which a pod may stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stay {
    Forever,
    /// This long, from the time at which the taint was observed.
    For(Duration),
}

/// Returns true if a taint evicts pods that do not tolerate it.
pub(super) fn evicts(taint: &Taint) -> bool {
    taint.effect == "NoExecute"
}

/// Returns how long a pod with these tolerations may stay on a node with these taints. The
/// shortest toleration counts.
pub(super) fn stay(taints: &[Taint], tolerations: &[Toleration]) -> Stay {
    let mut stay = Stay::Forever;
    for taint in taints.iter().filter(|taint| evicts(taint)) {
        let mut tolerations = tolerations.iter();
        let Some(toleration) = tolerations.find(|toleration| tolerates(toleration, taint)) else {
            return Stay::For(Duration::ZERO);
        };
        let Some(seconds) = toleration.toleration_seconds else {
            continue;
        };
        let time = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        stay = match stay {
            Stay::For(known) if known <= time => stay,
            _ => Stay::For(time),
        };
    }
    stay
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn of(taints: Value, tolerations: Value) -> Stay {
        let taints: Vec<Taint> = serde_json::from_value(taints).unwrap();
        let tolerations: Vec<Toleration> = serde_json::from_value(tolerations).unwrap();
        stay(&taints, &tolerations)
    }

    #[test]
    fn the_shortest_toleration_counts() {
        let seconds = |seconds| Stay::For(Duration::from_secs(seconds));
        let taints = json!([
            {"key": "a", "value": "x", "effect": "NoExecute"},
            {"key": "b", "effect": "NoExecute"},
            {"key": "c", "effect": "NoSchedule"},
        ]);
        let exists = |key: &str, seconds: Value| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
        for (tolerations, expected) in [
            (json!([]), seconds(0)),
            (json!([exists("a", json!(null))]), seconds(0)),
            (
                json!([exists("a", json!(null)), exists("b", json!(null))]),
                Stay::Forever,
            ),
            (
                json!([exists("a", json!(9)), exists("b", json!(3))]),
                seconds(3),
            ),
            (
                json!([exists("a", json!(9)), exists("b", json!(null))]),
                seconds(9),
            ),
            (
                json!([exists("a", json!(-1)), exists("b", json!(7))]),
                seconds(0),
            ),
            (json!([{"operator": "Exists"}]), Stay::Forever),
            (
                json!([{"key": "a", "value": "y"}, exists("b", json!(null))]),
                seconds(0),
            ),
        ] {
            assert_eq!(
                of(taints.clone(), tolerations.clone()),
                expected,
                "{tolerations}"
            );
        }
        assert_eq!(
            of(json!([{"key": "c", "effect": "NoSchedule"}]), json!([])),
            Stay::Forever
        );
    }
}
