//! Defaults of admission policies and their bindings.

use serde_json::{Value, json};

use crate::json::{self, Object};

/// Sets the defaults of a policy.
pub(crate) fn fill(policy: &mut Object) {
    let Some(Value::Object(spec)) = policy.get_mut("spec") else {
        return;
    };
    json::default(spec, "failurePolicy", "Fail");
    matched(spec, "matchConstraints");
}

/// Sets the defaults of a binding.
pub(crate) fn fill_binding(binding: &mut Object) {
    if let Some(Value::Object(spec)) = binding.get_mut("spec") {
        matched(spec, "matchResources");
    }
}

fn matched(spec: &mut Object, name: &str) {
    let Some(Value::Object(resources)) = spec.get_mut(name) else {
        return;
    };
    json::default(resources, "matchPolicy", "Equivalent");
    json::default(resources, "namespaceSelector", json!({}));
    json::default(resources, "objectSelector", json!({}));
    for rules in ["resourceRules", "excludeResourceRules"] {
        for rule in json::items_mut(resources, rules) {
            json::default(rule, "scope", "*");
        }
    }
}
