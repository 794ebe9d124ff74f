//! Checks whether the quotas of a namespace allow a write.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Evaluator, Quota};
use crate::quantity::{Amount, Amounts};

/// A write of an object.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The evaluator of the kind.
    pub evaluator: &'a Evaluator,
    /// The new state.
    pub object: &'a Map<String, Value>,
    /// The previous state; `None` for a new object.
    pub before: Option<&'a Map<String, Value>>,
    /// True if the write may exceed the limits, as a change of the status may.
    pub may_exceed: bool,
    /// The time of the write.
    pub now: Timestamp,
}

/// The new usage of a quota.
#[derive(Debug, Clone, PartialEq)]
pub struct Charge {
    /// The position of the quota in the list.
    pub quota: usize,
    /// The new value of `status.used`.
    pub used: Amounts,
}

/// Returns the new usage of each quota that changes.
///
/// # Errors
/// An error if the write is not allowed, with the message of Kubernetes.
pub fn charge(quotas: &[Quota], request: Request<'_>) -> Result<Vec<Charge>, String> {
    let Request {
        evaluator,
        object,
        before,
        now,
        ..
    } = request;
    let mut interesting = Vec::new();
    for (at, quota) in quotas.iter().enumerate() {
        let limited = evaluator.limited(quota);
        if limited.is_empty() || !evaluator.is_in_scope(quota, object) {
            continue;
        }
        if let Some(missing) = evaluator.missing(&limited, object) {
            return Err(format!("failed quota: {}: {missing}", quota.name));
        }
        if !limited.iter().all(|name| quota.used.contains_key(name)) {
            return Err(format!(
                "status unknown for quota: {}, resources: {}",
                quota.name,
                join(&limited)
            ));
        }
        interesting.push((at, quota));
    }
    if interesting.is_empty() {
        return Ok(Vec::new());
    }
    let usage = evaluator.usage(object, now);
    let negative: BTreeSet<String> = usage
        .iter()
        .filter(|(_, amount)| amount.is_negative())
        .map(|(name, _)| name.clone())
        .collect();
    if !negative.is_empty() {
        return Err(format!(
            "quota usage is negative for resource(s): {}",
            join(&negative)
        ));
    }
    let mut charges = Vec::new();
    for (at, quota) in interesting {
        // An object that the quota did not count before is charged as a whole.
        let counted = before.filter(|before| evaluator.is_in_scope(quota, before));
        let known = counted
            .map(|before| evaluator.usage(before, now))
            .unwrap_or_default();
        let delta = usage.iter().map(|(name, amount)| {
            let known = known.get(name).copied().unwrap_or(Amount::ZERO);
            (name, (*amount - known).max(Amount::ZERO))
        });
        let requested =
            delta.filter(|(name, amount)| !amount.is_zero() && quota.hard.contains_key(*name));
        let requested: Amounts = requested
            .map(|(name, amount)| (name.clone(), amount))
            .collect();
        if requested.is_empty() {
            continue;
        }
        let mut used = quota.used.clone();
        let mut exceeded = BTreeSet::new();
        for (name, amount) in &requested {
            let new = used.get(name).copied().unwrap_or(Amount::ZERO) + *amount;
            if quota.hard.get(name).is_some_and(|hard| new > *hard) {
                exceeded.insert(name.as_str());
            }
            used.insert(name.clone(), new);
        }
        if !exceeded.is_empty() && !request.may_exceed {
            return Err(format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                quota.name,
                listed(&requested, &exceeded),
                listed(&quota.used, &exceeded),
                listed(&quota.hard, &exceeded)
            ));
        }
        charges.push(Charge { quota: at, used });
    }
    Ok(charges)
}

fn join(names: &BTreeSet<String>) -> String {
    names.iter().cloned().collect::<Vec<_>>().join(",")
}

fn listed(amounts: &Amounts, names: &BTreeSet<&str>) -> String {
    let amounts = amounts.iter().filter(|(name, _)| names.contains(&***name));
    let texts = amounts.map(|(name, amount)| format!("{name}={amount}"));
    texts.collect::<Vec<_>>().join(",")
}
