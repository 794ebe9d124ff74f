//! Evaluates a Job's `podFailurePolicy` for a failed pod.

use k8s_openapi::api::batch::v1::{PodFailurePolicy, PodFailurePolicyRule};

use super::facts::{Phase, PodFacts};

/// The action for a failed pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Count the failure towards the backoff limit.
    Count,
    /// Replace the pod without counting the failure.
    Ignore,
    /// Fail the pod's index immediately.
    FailIndex,
    /// Fail the Job immediately, with this reason.
    FailJob(String),
}

/// Returns the action of the first matching rule, or [`Verdict::Count`] if no rule
/// matches.
pub(crate) fn verdict(policy: Option<&PodFailurePolicy>, pod: &PodFacts) -> Verdict {
    if pod.phase != Phase::Failed {
        return Verdict::Count;
    }
    let rules = policy
        .map(|policy| policy.rules.as_slice())
        .unwrap_or_default();
    let matched = rules
        .iter()
        .enumerate()
        .find_map(|(position, rule)| Some((position, rule, matching(rule, pod)?)));
    let Some((position, rule, evidence)) = matched else {
        return Verdict::Count;
    };
    match rule.action.as_str() {
        "Ignore" => Verdict::Ignore,
        "FailIndex" => Verdict::FailIndex,
        "FailJob" => Verdict::FailJob(format!(
            "{evidence} matching FailJob rule at index {position}"
        )),
        _ => Verdict::Count,
    }
}

/// Describes the part of the pod that matches the rule.
fn matching(rule: &PodFailurePolicyRule, pod: &PodFacts) -> Option<String> {
    if let Some(codes) = &rule.on_exit_codes {
        let concerns = |container: &str| {
            codes
                .container_name
                .as_deref()
                .is_none_or(|name| name == container)
        };
        let wanted = |code: i32| match codes.operator.as_str() {
            "In" => codes.values.contains(&code),
            "NotIn" => !codes.values.contains(&code),
            _ => false,
        };
        let exit = pod
            .exits
            .iter()
            .find(|exit| concerns(&exit.container) && wanted(exit.code))?;
        return Some(format!(
            "Container {} for pod {}/{} failed with exit code {}",
            exit.container, pod.namespace, pod.name, exit.code
        ));
    }
    let patterns = rule.on_pod_conditions.as_ref()?;
    let (kind, _) = pod.conditions.iter().find(|(kind, status)| {
        patterns.iter().any(|pattern| {
            let wanted = pattern
                .status
                .as_deref()
                .filter(|status| !status.is_empty());
            let wanted = wanted.unwrap_or("True");
            pattern.type_ == *kind && wanted == status
        })
    })?;
    Some(format!(
        "Pod {}/{} has condition {kind}",
        pod.namespace, pod.name
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;
    use crate::job::facts::Exit;
    use crate::job::testing::pod;

    fn failed(codes: &[(&str, i32)], conditions: &[(&str, &str)]) -> PodFacts {
        let mut pod = pod("p");
        pod.phase = Phase::Failed;
        pod.exits = codes
            .iter()
            .map(|(container, code)| Exit {
                container: (*container).into(),
                code: *code,
            })
            .collect();
        pod.conditions = conditions
            .iter()
            .map(|(kind, status)| ((*kind).into(), (*status).into()))
            .collect();
        pod
    }

    fn evaluate(rules: Value, pod: &PodFacts) -> Verdict {
        let policy: PodFailurePolicy = serde_json::from_value(json!({ "rules": rules })).unwrap();
        verdict(Some(&policy), pod)
    }

    #[test]
    fn rules_match_exit_codes() {
        let rules = json!([
            {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}},
            {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}},
            {"action": "FailIndex", "onExitCodes": {"containerName": "main", "operator": "NotIn", "values": [1, 2]}},
        ]);
        let table: &[(&[(&str, i32)], Verdict)] = &[
            (&[("main", 3)], Verdict::Ignore),
            (
                &[("main", 42)],
                Verdict::FailJob(
                    "Container main for pod a/p failed with exit code 42 matching FailJob rule at index 1".into(),
                ),
            ),
            (&[("side", 42)], Verdict::Count),
            (&[("main", 1)], Verdict::Count),
            (&[("main", 7)], Verdict::FailIndex),
            (&[], Verdict::Count),
        ];
        for (codes, expected) in table {
            assert_eq!(
                evaluate(rules.clone(), &failed(codes, &[])),
                *expected,
                "{codes:?}"
            );
        }
    }

    #[test]
    fn rules_match_conditions() {
        let rules = json!([
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailJob", "onPodConditions": [{"type": "ConfigIssue", "status": "True"}]},
        ]);
        let table: &[(&[(&str, &str)], Verdict)] = &[
            (&[("DisruptionTarget", "True")], Verdict::Ignore),
            (&[("DisruptionTarget", "False")], Verdict::Count),
            (
                &[("ConfigIssue", "True")],
                Verdict::FailJob(
                    "Pod a/p has condition ConfigIssue matching FailJob rule at index 1".into(),
                ),
            ),
        ];
        for (conditions, expected) in table {
            assert_eq!(evaluate(rules.clone(), &failed(&[], conditions)), *expected);
        }
    }

    #[test]
    fn pods_that_are_being_deleted_are_counted() {
        let mut pod = failed(&[("main", 3)], &[]);
        pod.phase = Phase::Unfinished { running: true };
        let rules = json!([{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}}]);
        assert_eq!(evaluate(rules, &pod), Verdict::Count);
        assert_eq!(verdict(None, &pod), Verdict::Count);
    }
}
