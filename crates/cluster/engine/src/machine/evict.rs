//! Eviction: deletes a pod if its PodDisruptionBudget allows it.

use std::{collections::BTreeMap, sync::Arc};

use longshore_builtin::json as js;
use longshore_model::{StatusCause, time};
use serde_json::{Value, json};

use super::{JsonObject, Transaction, delete, namespace};
use crate::{Error, Evict, Object, Subject, kinds::KindId, object};

/// Maximum number of pods in a budget's `disruptedPods`, as in Kubernetes.
const MAX_DISRUPTED_PODS: usize = 2000;
/// Retry delay, in seconds, when the status of a budget is out of date (as in
/// Kubernetes).
const RETRY_SECONDS: u32 = 10;

/// Deletes a pod and counts the disruption against its budget.
pub(crate) fn evict(tx: &mut Transaction<'_>, request: &Evict) -> Result<(), Error> {
    let missing = |what| Error::Internal(format!("{what} are not served"));
    let kind = tx.kinds().builtin_id("", "Pod");
    let kind = kind.ok_or_else(|| missing("pods"))?;
    let info = tx.kinds().entry(kind).info.clone();
    let subject = Subject::new(&info, &request.name);
    namespace::check(tx.state(), &info, &request.namespace, &request.name)?;
    let old = tx
        .get(kind, &object::key(Some(&request.namespace), &request.name))
        .cloned()
        .ok_or_else(|| Error::NotFound(subject.clone()))?;
    let pod = old.map();
    if is_subject_to_budgets(&pod) {
        let budgets = tx.kinds().builtin_id("policy", "PodDisruptionBudget");
        let budgets = budgets.ok_or_else(|| missing("PodDisruptionBudgets"))?;
        let found = matching_budgets(tx, budgets, &request.namespace, old.labels());
        match found.as_slice() {
            [] => {}
            [budget] => {
                let mut budget = budget.map();
                if !is_exempt(&pod, &budget) {
                    consume_disruption(&mut budget, &request.name, tx)?;
                    tx.put(budgets, &budget)?;
                }
            }
            _ => return Err(Error::SeveralBudgets),
        }
    }
    delete::check_preconditions(&subject, &old, &request.options)?;
    let updated = tx.put(kind, &with_condition(pod, tx))?;
    delete::delete_one(tx, kind, &updated, &request.options).map(drop)
}

/// Returns true if budgets apply to a pod. They do not apply to pods that are pending, finished or
/// terminating.
fn is_subject_to_budgets(pod: &JsonObject) -> bool {
    let phase = js::text(pod, "status.phase");
    !matches!(phase, "Succeeded" | "Failed" | "Pending")
        && js::at(pod, "metadata.deletionTimestamp").is_none()
}

/// The budgets that select a pod with these labels.
fn matching_budgets(
    tx: &Transaction<'_>,
    budgets: KindId,
    namespace: &str,
    labels: &BTreeMap<String, String>,
) -> Vec<Arc<Object>> {
    let prefix = format!("{namespace}/");
    let all = tx.state().table(budgets).objects.values();
    all.filter(|budget| budget.key().starts_with(&prefix))
        .filter(|budget| selects(js::at(&budget.map(), "spec.selector"), labels))
        .cloned()
        .collect()
}

/// Returns true if a `policy/v1` selector matches the labels. A missing selector matches no pods,
/// an empty selector matches all.
fn selects(selector: Option<&Value>, labels: &BTreeMap<String, String>) -> bool {
    let Some(Value::Object(selector)) = selector else {
        return false;
    };
    let equal = selector.get("matchLabels").and_then(Value::as_object);
    let mut equal = equal.into_iter().flatten();
    equal.all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str())
        && js::items(selector, "matchExpressions").all(|expression| {
            let label = labels.get(js::text(expression, "key"));
            let values = js::at(expression, "values").and_then(Value::as_array);
            let is_listed = label.is_some_and(|label| {
                let mut values = values.into_iter().flatten();
                values.any(|value| value.as_str() == Some(label))
            });
            match js::text(expression, "operator") {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "Exists" => label.is_some(),
                "DoesNotExist" => label.is_none(),
                _ => false,
            }
        })
}

/// Returns true if the pod may be evicted without counting: it is not ready, and the budget's
/// policy permits the eviction of unhealthy pods.
fn is_exempt(pod: &JsonObject, budget: &JsonObject) -> bool {
    let conditions = js::at(pod, "status.conditions").and_then(Value::as_array);
    let is_ready = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    let number = |path| js::number(budget, path).unwrap_or_default();
    let (healthy, desired) = (
        number("status.currentHealthy"),
        number("status.desiredHealthy"),
    );
    let always = js::text(budget, "spec.unhealthyPodEvictionPolicy") == "AlwaysAllow";
    !is_ready && (always || (healthy >= desired && desired > 0))
}

/// Consumes one allowed disruption and records the pod in the budget.
fn consume_disruption(
    budget: &mut JsonObject,
    pod: &str,
    tx: &Transaction<'_>,
) -> Result<(), Error> {
    let name = js::text(budget, "metadata.name").to_owned();
    let number = |path| js::number(budget, path).unwrap_or_default();
    let deny = |why: String, seconds| {
        Err(Error::TooManyDisruptions {
            cause: StatusCause {
                reason: "DisruptionBudget".into(),
                message: format!("The disruption budget {name} {why}"),
                field: String::new(),
            },
            seconds,
        })
    };
    let observed = number("status.observedGeneration");
    if observed < number("metadata.generation") {
        return deny(
            "is still being processed by the server.".into(),
            RETRY_SECONDS,
        );
    }
    let allowed = number("status.disruptionsAllowed");
    let disrupted = js::at(budget, "status.disruptedPods").and_then(Value::as_object);
    let broken = if allowed < 0 {
        Some("pdb disruptions allowed is negative")
    } else if disrupted.is_some_and(|pods| pods.len() > MAX_DISRUPTED_PODS) {
        Some("DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    } else {
        None
    };
    if let Some(reason) = broken {
        let subject = Subject {
            group: "policy".into(),
            resource: "poddisruptionbudget".into(),
            kind: "PodDisruptionBudget".into(),
            name: name.as_str().into(),
        };
        return Err(Error::Forbidden {
            subject,
            reason: reason.to_owned(),
            causes: Vec::new(),
        });
    }
    if allowed == 0 {
        let (desired, healthy) = (
            number("status.desiredHealthy"),
            number("status.currentHealthy"),
        );
        let why = match healthy > desired {
            true => "does not allow evicting pods currently".to_owned(),
            false => format!("needs {desired} healthy pods and has {healthy} currently"),
        };
        return deny(why, 0);
    }
    let now = time::seconds(tx.now);
    let status = js::child(budget, "status");
    status.insert("disruptionsAllowed".into(), (allowed - 1).into());
    if allowed == 1 {
        let condition = json!({
            "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods",
            "message": "", "lastTransitionTime": now, "observedGeneration": observed,
        });
        set_condition(status, condition);
    }
    js::child(status, "disruptedPods").insert(pod.to_owned(), now.into());
    Ok(())
}

/// Adds the condition with the reason for the deletion.
fn with_condition(mut pod: JsonObject, tx: &Transaction<'_>) -> JsonObject {
    let now = time::seconds(tx.now);
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
    });
    set_condition(js::child(&mut pod, "status"), condition);
    pod
}

/// Replaces the condition of the same type. A condition with the same status is
/// left unchanged.
fn set_condition(status: &mut JsonObject, condition: Value) {
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(conditions) = conditions else {
        return;
    };
    let same = |other: &&mut Value| other["type"] == condition["type"];
    match conditions.iter_mut().find(same) {
        Some(other) if other["status"] == condition["status"] => {}
        Some(other) => *other = condition,
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors() {
        let labels =
            [("app", "a"), ("tier", "web")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let labels = BTreeMap::from(labels);
        let one = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (selector, expected) in [
            (json!({}), true),
            (json!(null), false),
            (json!({"matchLabels": {"app": "a"}}), true),
            (json!({"matchLabels": {"app": "a", "tier": "db"}}), false),
            (one("app", "In", &["b", "a"]), true),
            (one("app", "In", &["b"]), false),
            (one("none", "In", &["b"]), false),
            (one("app", "NotIn", &["a"]), false),
            (one("none", "NotIn", &["a"]), true),
            (one("app", "Exists", &[]), true),
            (one("none", "DoesNotExist", &[]), true),
            (one("app", "DoesNotExist", &[]), false),
        ] {
            assert_eq!(selects(Some(&selector), &labels), expected, "{selector}");
        }
        assert!(!selects(None, &labels));
    }
}
