//! Rules of ResourceQuotas.

use std::collections::BTreeSet;

use longshore_model::StatusCause;

use super::{
    at::{At, Causes},
    immutable,
    limits::{STANDARD, is_huge_pages, resource_name},
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
/// What is counted in whole.
const WHOLE: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
/// What pods use, to which most scopes apply.
const OF_PODS: &[&str] = &[
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
    "pods",
];

fn amounts(list: &At<'_>, causes: &mut Causes<'_>) {
    for (name, at) in list.entries() {
        resource_name(&at.path, name, causes.0);
        let counted = name.starts_with("count/");
        if !name.contains('/') && !STANDARD.contains(&name) && !is_huge_pages(name) {
            let detail = "must be a standard resource for quota";
            causes.0.push(Cause::invalid(&at.path, name, detail));
        }
        let amount = at.amount().unwrap_or_default();
        if amount < 0.0 {
            causes.invalid(&at, "must be greater than or equal to 0");
        } else if (WHOLE.contains(&name) || counted) && amount.fract() != 0.0 {
            causes.invalid(&at, "must be an integer");
        }
    }
}

/// Whether a scope can narrow what is counted of a resource.
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
            OF_PODS.contains(&resource)
                || resource.contains("ephemeral-storage")
                || is_huge_pages(resource)
        }
        _ => true,
    }
}

fn scopes(all: &At<'_>, named: &[&str], hard: &At<'_>, causes: &mut Causes<'_>) {
    let set: BTreeSet<&str> = named.iter().copied().collect();
    for scope in &set {
        if !SCOPES.contains(scope) {
            causes.invalid(all, "unsupported scope");
        }
        for (resource, _) in hard.entries() {
            if STANDARD.contains(&resource) && !applies(scope, resource) {
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

pub(super) fn object(object: &Object, causes: &mut Vec<StatusCause>) {
    let (spec, causes) = (At::field(object, "spec"), &mut Causes(causes));
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
        let operator = operator.called(format!("{}.operator", expressions.path));
        let values = one
            .get("values")
            .called(format!("{}.values", expressions.path));
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
        &expressions.called("spec.scopeSelector.matchExpressions.scopeName"),
        &words,
        &hard,
        causes,
    );
}

pub(super) fn change(before: &Object, after: &Object, causes: &mut Vec<StatusCause>) {
    immutable::fixed(before, after, &["spec.scopes"], causes);
}
