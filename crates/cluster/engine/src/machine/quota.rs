//! ResourceQuotas: a write that quotas count is charged to them in the same transaction, or
//! refused, like with Kubernetes' admission plugin ResourceQuota.

use longshore_builtin::json as js;
use longshore_model::{
    KindInfo,
    quota::{self, Evaluator, Quota, Request},
};
use serde_json::Value;

use super::{JsonObject, Transaction};
use crate::{Error, Subject, Subresource};

/// Charges a write to the quotas of its namespace (403 if a quota is exceeded).
pub(super) fn charge(
    tx: &mut Transaction<'_>,
    info: &KindInfo,
    object: &JsonObject,
    before: Option<&JsonObject>,
    subresource: Subresource,
) -> Result<(), Error> {
    let namespace = js::text(object, "metadata.namespace");
    let found = tx.state().in_namespace("", "ResourceQuota", namespace);
    let mut objects: Vec<JsonObject> = found.map(|quota| quota.map()).collect();
    if objects.is_empty() {
        return Ok(());
    }
    let Some(evaluator) = Evaluator::of(&info.gvk.group, &info.plural) else {
        return Ok(());
    };
    let is_status = subresource == Subresource::Status;
    let counts = match before {
        None => true,
        Some(_) if is_status => evaluator == Evaluator::Claims,
        Some(_) if subresource == Subresource::Resize => evaluator == Evaluator::Pods,
        Some(before) => evaluator.is_charged_for_update(before, object),
    };
    if !counts {
        return Ok(());
    }
    let quotas: Result<Vec<Quota>, _> = objects.iter().map(Quota::of).collect();
    let quotas = quotas
        .map_err(|error| Error::Internal(format!("a ResourceQuota cannot be read: {error}")))?;
    let request = Request {
        evaluator: &evaluator,
        object,
        before,
        may_exceed: is_status,
        now: tx.now,
    };
    let charges = quota::charge(&quotas, request).map_err(|reason| Error::Forbidden {
        subject: Subject::new(info, js::text(object, "metadata.name")),
        reason,
        causes: Vec::new(),
    })?;
    let Some(kind) = tx.kinds().builtin_id("", "ResourceQuota") else {
        return Ok(());
    };
    for charge in charges {
        let Some(quota) = objects.get_mut(charge.quota) else {
            continue;
        };
        let used = charge.used.iter();
        let used = used.map(|(name, amount)| (name.clone(), amount.to_string().into()));
        js::child(quota, "status").insert("used".into(), Value::Object(used.collect()));
        tx.put(kind, quota)?;
    }
    Ok(())
}
