//! Validation of scheduling constraints (tolerations, affinity, topology
//! spread) and host aliases.

use std::net::IpAddr;

use longshore_model::CauseList;

use crate::{
    cause::Cause,
    json::Object,
    validate::{
        field_value::{Causes, FieldValue},
        node_selector, selector,
    },
};

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn check(spec: &Object, path: &str, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    for one in FieldValue::of(spec, "tolerations", path).items() {
        toleration(&one, causes);
    }
    let affinity = FieldValue::of(spec, "affinity", path);
    node_affinity(&affinity.get("nodeAffinity"), causes);
    for kind in ["podAffinity", "podAntiAffinity"] {
        pod_affinity(&affinity.get(kind), causes);
    }
    for one in FieldValue::of(spec, "topologySpreadConstraints", path).items() {
        spread(&one, causes);
    }
    let aliases = FieldValue::of(spec, "hostAliases", path);
    for alias in aliases.items() {
        let address = alias.get("ip");
        if address.text().parse::<IpAddr>().is_err() {
            let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            causes
                .0
                .push(Cause::invalid(&address.path, address.text(), detail));
        }
        for name in alias.get("hostnames").items() {
            causes.subdomain(&name);
        }
    }
}

pub(in crate::validate) fn toleration(one: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let (key, operator, effect) = (one.get("key"), one.get("operator"), one.get("effect"));
    if key.text().is_empty() {
        if operator.text() != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            causes
                .0
                .push(Cause::invalid(&operator.path, operator.text(), detail));
        }
    } else {
        causes.qualified(&key);
    }
    if one.get("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        causes
            .0
            .push(Cause::invalid(&effect.path, effect.text(), detail));
    }
    match operator.text() {
        "" | "Equal" => {
            let value = one.get("value");
            crate::validate::meta::label_value(&operator.path, value.text(), causes.0);
        }
        "Exists" => {
            if !one.get("value").text().is_empty() {
                let detail = "value must be empty when `operator` is 'Exists'";
                let value = one.get("value");
                causes
                    .0
                    .push(Cause::invalid(&operator.path, value.text(), detail));
            }
        }
        _ => causes.not_supported(&operator, &["Equal", "Exists"]),
    }
    if !effect.text().is_empty() {
        causes.one_of(&effect, EFFECTS);
    }
}

fn node_affinity(affinity: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let required = affinity.get(REQUIRED);
    let terms = required.get("nodeSelectorTerms");
    if required.is_set() && terms.len() == 0 {
        causes.required(&terms, "must have at least one node selector term");
    }
    terms
        .items()
        .for_each(|one| node_selector::term(&one, causes));
    for preferred in affinity.get(PREFERRED).items() {
        weight(&preferred, causes);
        node_selector::term(&preferred.get("preference"), causes);
    }
}

fn weight(preferred: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let weight = preferred.get("weight");
    if !(1..=100).contains(&weight.number().unwrap_or_default()) {
        let value = weight.number().unwrap_or_default();
        causes.0.push(Cause::invalid(
            &weight.path,
            value,
            "must be in the range 1-100",
        ));
    }
}

fn pod_affinity(affinity: &FieldValue<'_>, causes: &mut Causes<'_>) {
    for term in affinity.get(REQUIRED).items() {
        pod_term(&term, causes);
    }
    for preferred in affinity.get(PREFERRED).items() {
        weight(&preferred, causes);
        pod_term(&preferred.get("podAffinityTerm"), causes);
    }
}

fn pod_term(term: &FieldValue<'_>, causes: &mut Causes<'_>) {
    selector::check(&term.get("labelSelector"), causes);
    selector::check(&term.get("namespaceSelector"), causes);
    for namespace in term.get("namespaces").items() {
        causes.label(&namespace.with_path(format!("{}.namespace", term.path)));
    }
    let key = term.get("topologyKey");
    if key.text().is_empty() {
        causes.required(&key, "can not be empty");
    }
    crate::validate::meta::qualified(&key.path, key.text(), causes.0);
}

fn spread(constraint: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let skew = constraint.get("maxSkew");
    if skew.number().unwrap_or_default() <= 0 {
        let value = skew.number().unwrap_or_default();
        causes.0.push(Cause::invalid(
            &skew.path,
            value,
            "must be greater than zero",
        ));
    }
    let key = constraint.get("topologyKey");
    if key.text().is_empty() {
        causes.required(&key, "can not be empty");
    }
    let action = constraint.get("whenUnsatisfiable");
    causes.one_of(&action, &["DoNotSchedule", "ScheduleAnyway"]);
    let domains = constraint.get("minDomains");
    if domains.number().is_some_and(|number| number <= 0) {
        causes.invalid(&domains, "must be greater than zero");
    }
    for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        causes.one_of_if_set(&constraint.get(policy), &["Honor", "Ignore"]);
    }
    selector::check(&constraint.get("labelSelector"), causes);
}
