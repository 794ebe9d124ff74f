//! The annotations that ValidatingAdmissionPolicies add to the audit log.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    audit::Record,
    webhooks::policies::binding::{Action, Binding},
};

/// The annotation with the failed validations of bindings with the action `Audit`.
const FAILURES: &str = "validation.policy.admission.k8s.io/validation_failure";
/// Kubernetes' limit of the failures in the annotation.
const MAX_FAILURES: usize = 50;
/// Kubernetes' limit of the length of the value of an annotation of a policy.
const MAX_VALUE_BYTES: usize = 10 * 1024;

/// The annotations of a request.
#[derive(Debug, Default)]
pub(super) struct Audited {
    failures: Vec<Value>,
    /// The distinct values of each annotation; bindings with params have several.
    annotations: BTreeMap<String, Vec<String>>,
}

/// A failed validation. `index` counts the validations of the policy.
pub(super) struct FailedValidation<'a> {
    pub(super) message: &'a str,
    pub(super) policy: &'a str,
    pub(super) index: usize,
}

impl Audited {
    pub(super) fn add_failure(&mut self, failed: &FailedValidation<'_>, binding: &Binding) {
        let actions: Vec<&str> = binding.actions.iter().map(Action::word).collect();
        self.failures.push(json!({
            "message": failed.message,
            "policy": failed.policy,
            "binding": binding.name,
            "expressionIndex": failed.index,
            "validationActions": actions,
        }));
    }

    pub(super) fn annotate(&mut self, policy: &str, key: &str, value: &str) {
        let value = value.trim();
        let value = &value[..value.floor_char_boundary(MAX_VALUE_BYTES)];
        let values = self.annotations.entry(format!("{policy}/{key}"));
        let values = values.or_default();
        if !value.is_empty() && values.iter().all(|other| other != value) {
            values.push(value.to_owned());
        }
    }

    /// Adds the annotations to the record of a request.
    pub(super) fn publish(mut self, record: &Record) {
        for (key, values) in self.annotations {
            if !values.is_empty() {
                record.annotate(key, &values.join(", "));
            }
        }
        if self.failures.is_empty() {
            return;
        }
        let count = self.failures.len();
        if count > MAX_FAILURES {
            tracing::warn!(
                "a request fails {count} validations of admission policies; the audit log \
                 contains {MAX_FAILURES} of them"
            );
            self.failures.truncate(MAX_FAILURES);
        }
        record.annotate(FAILURES, &Value::from(self.failures).to_string());
    }
}
