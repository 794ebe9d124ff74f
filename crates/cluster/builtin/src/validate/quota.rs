//! Validation of ResourceQuotas.

use std::collections::BTreeSet;

use longshore_model::CauseList;

use super::{
    field_value::{Causes, FieldValue},
    immutable,
    limit_range::{COUNTS, is_huge_pages, is_standard, resource_name},
};
use crate::{cause::Cause, json::Object};

const SCOPES: &[&str] = &[
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];
/// Compute resources of pods, to which most scopes apply.
const POD_COMPUTE_RESOURCES: &[&str] = &[
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
    "pods",
];

fn amounts(list: &FieldValue<'_>, causes: &mut Causes<'_>) {
    for (name, at) in list.entries() {
        resource_name(&at.path, name, causes.0);
        let counted = name.starts_with("count/");
        if !name.contains('/') && !is_standard(name) && !is_huge_pages(name) {
            let detail = "must be a standard resource for quota";
            causes.0.push(Cause::invalid(&at.path, name, detail));
        }
        let quantity = at.quantity().unwrap_or_default();
        if quantity < 0.0 {
            causes.invalid(&at, "must be greater than or equal to 0");
        } else if (COUNTS.contains(&name) || counted) && quantity.fract() != 0.0 {
            causes.invalid(&at, "must be an integer");
        }
    }
}

/// Returns true if a scope is applicable to a resource.
fn applies(scope: &str, resource: &str) -> bool {
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            resource == "persistentvolumeclaims" || resource == "requests.storage"
        }
        "PriorityClass"
        | "CrossNamespacePodAffinity"
        | "Terminating"
        | "NotTerminating"
        | "NotBestEffort" => {
            POD_COMPUTE_RESOURCES.contains(&resource)
                || resource.contains("ephemeral-storage")
                || is_huge_pages(resource)
        }
        _ => true,
    }
}

fn scopes(all: &FieldValue<'_>, named: &[&str], hard: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let set: BTreeSet<&str> = named.iter().copied().collect();
    for scope in &set {
        if !SCOPES.contains(scope) {
            causes.invalid(all, "unsupported scope");
        }
        for (resource, _) in hard.entries() {
            if is_standard(resource) && !applies(scope, resource) {
                causes.invalid(all, "unsupported scope applied to resource");
            }
        }
    }
    for pair in [
        ["BestEffort", "NotBestEffort"],
        ["Terminating", "NotTerminating"],
    ] {
        if pair.iter().all(|scope| set.contains(scope)) {
            causes.invalid(all, "conflicting scopes");
        }
    }
}

pub(crate) fn object(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    let hard = spec.get("hard");
    amounts(&hard, causes);
    let named = spec.get("scopes");
    let words: Vec<&str> = named.items().map(|scope| scope.text()).collect();
    scopes(&named, &words, &hard, causes);
    let expressions = spec.get("scopeSelector").get("matchExpressions");
    let mut words = Vec::new();
    for one in expressions.items() {
        let (scope, operator) = (one.get("scopeName").text(), one.get("operator"));
        words.push(scope);
        let operator = operator.with_path(format!("{}.operator", expressions.path));
        let values = one
            .get("values")
            .with_path(format!("{}.values", expressions.path));
        if SCOPES[..4].contains(&scope) && operator.text() != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            causes.invalid(&operator, detail);
        }
        match operator.text() {
            "In" | "NotIn" if values.len() == 0 => {
                let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                causes.required(&values, detail);
            }
            "Exists" | "DoesNotExist" if values.len() > 0 => {
                let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                causes.invalid(&values, detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => causes.invalid(&operator, "not a valid selector operator"),
        }
    }
    scopes(
        &expressions.with_path("spec.scopeSelector.matchExpressions.scopeName"),
        &words,
        &hard,
        causes,
    );
}

pub(crate) fn change(before: &Object, after: &Object, causes: &mut CauseList) {
    immutable::fixed(before, after, &["spec.scopes"], causes);
}
