//! Validation: the errors of each kind, with the field paths and messages of Kubernetes.

mod address;
pub(crate) mod admission_policy;
pub(crate) mod autoscaling;
pub(crate) mod certificate;
mod conditions;
pub(crate) mod config;
pub(crate) mod cron;
pub(crate) mod definition;
pub(crate) mod devices;
pub(crate) mod endpoints;
pub(crate) mod event;
mod field_value;
pub(crate) mod flow_control;
pub(crate) mod immutable;
pub(crate) mod ingress;
pub(crate) mod job;
pub(crate) mod job_status;
pub(crate) mod lease;
pub(crate) mod limit_range;
mod meta;
pub(crate) mod network_policy;
pub(crate) mod node;
mod node_selector;
mod pem;
pub(crate) mod pod;
pub(crate) mod pod_certificate;
pub(crate) mod policy;
pub(crate) mod quota;
pub(crate) mod rbac;
pub(crate) mod registration;
mod selector;
pub(crate) mod service;
pub(crate) mod stateful_set;
pub(crate) mod storage;
pub(crate) mod storage_migration;
pub(crate) mod trust_bundle;
pub(crate) mod volume;
mod volume_source;
pub(crate) mod webhook;
pub(crate) mod workload;
mod zero_values;

use jiff::Timestamp;
use longshore_model::{CauseList, KindInfo, StatusCause};

pub use meta::{deletion, embedded};

use crate::{KindRules, json::Object};

/// Validates an object without regard to its previous state.
#[must_use]
pub fn object(kind: &KindInfo, rules: &KindRules, object: &Object) -> Vec<StatusCause> {
    let mut causes = meta::object(kind, rules, object);
    (rules.validate)(object, &mut causes);
    zero_values::show_as_zero(kind, &mut causes);
    causes.into_vec()
}

/// Validates a namespace when its finalizers are updated.
#[must_use]
pub fn finalized(kind: &KindInfo, rules: &KindRules, namespace: &Object) -> Vec<StatusCause> {
    let mut causes = meta::object(kind, rules, namespace);
    node::finalized_namespace(namespace, &mut causes);
    causes.into_vec()
}

/// Validates the rules that apply only to new objects.
#[must_use]
pub fn new_object(rules: &KindRules, object: &Object) -> Vec<StatusCause> {
    let mut causes = CauseList::new();
    (rules.validate_new)(object, &mut causes);
    causes.into_vec()
}

/// Validates a change.
#[must_use]
pub fn change(rules: &KindRules, before: &Object, after: &Object) -> Vec<StatusCause> {
    let mut causes = meta::change(before, after);
    (rules.validate_update)(before, after, &mut causes);
    causes.into_vec()
}

/// Validates metadata that a status update changed.
#[must_use]
pub fn metadata(
    kind: &KindInfo,
    rules: &KindRules,
    before: &Object,
    after: &Object,
) -> Vec<StatusCause> {
    let mut causes = meta::object(kind, rules, after);
    causes.extend(meta::change(before, after));
    causes.into_vec()
}

/// Validates a change of the status at the time `now`.
#[must_use]
pub fn status(
    rules: &KindRules,
    before: &Object,
    after: &Object,
    now: Timestamp,
) -> Vec<StatusCause> {
    let mut causes = CauseList::new();
    (rules.validate_status)(before, after, &mut causes);
    (rules.validate_status_now)(before, after, now, &mut causes);
    causes.into_vec()
}

/// Validates a change of the ephemeral containers of a pod.
#[must_use]
pub fn ephemeral_containers(before: &Object, after: &Object) -> Vec<StatusCause> {
    let mut causes = meta::change(before, after);
    pod::ephemeral::change(before, after, &mut causes);
    causes.into_vec()
}

/// Validates a change of the resources of a pod.
#[must_use]
pub fn resize(before: &Object, after: &Object) -> Vec<StatusCause> {
    let mut causes = meta::change(before, after);
    pod::resize::change(before, after, &mut causes);
    causes.into_vec()
}

/// Validates the approval of a certificate signing request.
#[must_use]
pub fn approval(before: &Object, after: &Object) -> Vec<StatusCause> {
    let mut causes = CauseList::new();
    certificate::status(before, after, true, &mut causes);
    causes.into_vec()
}
