//! Defaults of the API server. `on_create` and `on_update` apply the rules of a
//! kind before validation; the `fill` of its entry sets the fields that are still
//! missing.

pub(crate) mod admission_policy;
pub(crate) mod autoscaling;
pub(crate) mod certificate;
pub(crate) mod config;
pub(crate) mod definition;
pub(crate) mod devices;
pub(crate) mod event;
pub(crate) mod flow_control;
pub(crate) mod job;
pub(crate) mod lease;
pub(crate) mod limits;
pub(crate) mod namespace;
pub(crate) mod network;
pub(crate) mod node;
pub(crate) mod pod;
pub(crate) mod service;
pub(crate) mod volume;
pub(crate) mod webhook;
pub(crate) mod workload;

use jiff::Timestamp;
use longshore_model::KindInfo;
use serde_json::json;

use crate::{KindRules, SentStatus, json::Object};

/// Prepares a new object for creation.
pub fn on_create(kind: &KindInfo, rules: &KindRules, object: &mut Object) {
    if kind.has_subresource("status") && rules.sent_status == SentStatus::Dropped {
        object.insert("status".into(), json!({}));
    }
    (rules.on_create)(object);
}

/// Applies the admission plugins that set the service account and tolerations of
/// a new pod. [`on_create`] applies them again.
pub fn admit_pod(pod: &mut Object) {
    pod::admit(pod);
}

/// Prepares the approval of a certificate signing request: takes the conditions
/// from the request and sets their timestamps.
pub fn on_approval(before: &Object, object: &mut Object, now: Timestamp) {
    certificate::keep_all_but_conditions(before, object);
    certificate::set_transition_times(before, object, now);
}
