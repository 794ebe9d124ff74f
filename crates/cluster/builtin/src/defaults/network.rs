//! Defaults of Endpoints, EndpointSlices and NetworkPolicies.

use serde_json::{Value, json};

use crate::json::{self, Object};

pub(crate) fn endpoints(endpoints: &mut Object) {
    for subset in json::items_mut(endpoints, "subsets") {
        for port in json::items_mut(subset, "ports") {
            json::default_text(port, "protocol", "TCP");
        }
    }
}

pub(crate) fn slice(slice: &mut Object) {
    for port in json::items_mut(slice, "ports") {
        json::default(port, "name", "");
        json::default_text(port, "protocol", "TCP");
    }
}

/// A policy always applies to ingress, and to egress if it has egress rules.
pub(crate) fn policy(policy: &mut Object) {
    let spec = json::child(policy, "spec");
    let has = |spec: &Object, field| {
        spec.get(field)
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty())
    };
    if !has(spec, "policyTypes") {
        let mut types = vec![json!("Ingress")];
        if has(spec, "egress") {
            types.push(json!("Egress"));
        }
        spec.insert("policyTypes".into(), Value::Array(types));
    }
    for list in ["ingress", "egress"] {
        for rule in json::items_mut(spec, list) {
            for port in json::items_mut(rule, "ports") {
                json::default_text(port, "protocol", "TCP");
            }
        }
    }
}

/// Sets the default scope of an IngressClass's parameters.
pub(crate) fn ingress_class(class: &mut Object) {
    if let Some(Value::Object(parameters)) = json::child(class, "spec").get_mut("parameters") {
        json::default_text(parameters, "scope", "Cluster");
    }
}
