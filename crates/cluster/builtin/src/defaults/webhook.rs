//! Defaults of webhook configurations and APIServices.

use serde_json::{Value, json};

use crate::json::{self, Object};

/// Sets the default port of a Service reference.
pub(crate) fn service(holder: &mut Object) {
    if let Some(Value::Object(service)) = holder.get_mut("service") {
        json::default(service, "port", 443);
    }
}

/// Sets the defaults of a MutatingWebhookConfiguration.
pub(crate) fn fill_mutating(object: &mut Object) {
    fill_validating(object);
    for webhook in json::items_mut(object, "webhooks") {
        json::default(webhook, "reinvocationPolicy", "Never");
    }
}

/// Sets the defaults of a ValidatingWebhookConfiguration.
pub(crate) fn fill_validating(object: &mut Object) {
    for webhook in json::items_mut(object, "webhooks") {
        json::default(webhook, "failurePolicy", "Fail");
        json::default(webhook, "matchPolicy", "Equivalent");
        json::default(webhook, "namespaceSelector", json!({}));
        json::default(webhook, "objectSelector", json!({}));
        json::default(webhook, "timeoutSeconds", 10);
        if let Some(Value::Object(config)) = webhook.get_mut("clientConfig") {
            service(config);
        }
        for rule in json::items_mut(webhook, "rules") {
            json::default(rule, "scope", "*");
        }
    }
}

/// The API server itself serves a new APIService that has no Service.
pub(crate) fn on_create(object: &mut Object) {
    if json::at(object, "spec.service").is_none_or(Value::is_null) {
        let available = json!({
            "type": "Available",
            "status": "True",
            "reason": "Local",
            "message": "Local APIServices are always available",
        });
        object.insert("status".into(), json!({"conditions": [available]}));
    }
}

/// Sets the transition times of the conditions.
pub(crate) fn on_insert(object: &mut Object, created: &str) {
    let status = json::child(object, "status");
    for condition in json::items_mut(status, "conditions") {
        condition.insert("lastTransitionTime".into(), created.into());
    }
}
