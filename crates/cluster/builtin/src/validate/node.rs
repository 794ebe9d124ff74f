//! Validation of Nodes and Namespaces.

use std::collections::{BTreeMap, HashSet};

use longshore_model::CauseList;
use serde_json::Value;

use super::{
    address::network,
    field_value::{Causes, FieldValue},
};
use crate::{
    cause::Cause,
    json::{self, Object},
    pod_security::label_problems,
};

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(crate) fn node(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for taint in spec.get("taints").with_path("metadata.taints").items() {
        let (key, effect) = (taint.get("key"), taint.get("effect"));
        causes.qualified(&key);
        if !taint.get("value").text().is_empty() {
            let value = taint.get("value");
            super::meta::label_value(&value.path, value.text(), causes.0);
        }
        if effect.text().is_empty() {
            causes.required(&effect, "");
        } else {
            causes.one_of(&effect, EFFECTS);
        }
        if !seen.insert((key.text(), effect.text())) {
            let message = format!(
                "Duplicate value: {}: taints must be unique by key and effect pair",
                taint.value()
            );
            causes
                .0
                .push(Cause::plain(&taint.path, "FieldValueDuplicate", message));
        }
    }
    pod_networks(&spec.get("podCIDRs"), causes);
}

/// Validates a node's pod CIDRs: one, or one per IP family.
fn pod_networks(networks: &FieldValue<'_>, causes: &mut Causes<'_>) {
    for one in networks.items().filter(|one| network(one.text()).is_none()) {
        let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        causes.invalid(&one, detail);
    }
    if networks.len() < 2 {
        return;
    }
    let read = || networks.items().map(|one| network(one.text()));
    let unreadable = networks.items().find(|one| network(one.text()).is_none());
    if let Some(one) = &unreadable {
        let text = one.text();
        let message = format!(
            "Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{}]: <nil> (invalid CIDR address: {text})",
            networks
                .items()
                .position(|one| network(one.text()).is_none())
                .unwrap_or_default()
        );
        let cause = Cause::plain(&networks.path, "InternalError", message);
        causes.0.push(cause);
    }
    let has = |v4: bool| read().flatten().any(|(first, _)| first.is_ipv4() == v4);
    if unreadable.is_some() || networks.len() > 2 || !(has(true) && has(false)) {
        let detail = "may specify no more than one CIDR for each IP family";
        causes.invalid(networks, detail);
    }
    if unreadable.is_none() {
        causes.unique(networks.items());
    }
}

/// Validates a change of a node: only taints and `unschedulable` may change.
pub(crate) fn node_change(before: &Object, after: &Object, causes: &mut CauseList) {
    const OTHER: &str = "node updates may only change labels, taints, or capacity";
    let mut other = false;
    for field in ["podCIDRs", "providerID"] {
        let (old, new) = (
            FieldValue::field(before, "spec").get(field),
            FieldValue::field(after, "spec").get(field),
        );
        if old.is_set() && old.raw() != new.raw() {
            causes.push(match field {
                "podCIDRs" => {
                    let detail = "node updates may not change podCIDR except from \"\" to valid";
                    Cause::forbidden(&new.path, detail)
                }
                _ => Cause::invalid(&new.path, Value::Null, "field cannot be modified once set"),
            });
        }
    }
    for field in ["externalID", "configSource"] {
        let path = format!("spec.{field}");
        other |= json::at(before, &path) != json::at(after, &path);
    }
    if other {
        causes.push(Cause::forbidden("[]", OTHER));
    }
}

/// Validates a namespace. The errors of all finalizers have the same path.
pub(crate) fn namespace(object: &Object, causes: &mut CauseList) {
    for finalizer in FieldValue::field(object, "spec").get("finalizers").items() {
        namespace_finalizer(&finalizer.with_path("spec.finalizers"), causes);
    }
}

/// Validates a namespace when its finalizers are updated. Here, each error has the path of its
/// finalizer.
pub(super) fn finalized_namespace(object: &Object, causes: &mut CauseList) {
    for finalizer in FieldValue::field(object, "spec").get("finalizers").items() {
        namespace_finalizer(&finalizer, causes);
    }
}

fn namespace_finalizer(finalizer: &FieldValue<'_>, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    causes.qualified(finalizer);
    if !finalizer.text().contains('/') && finalizer.text() != "kubernetes" {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        causes.invalid(finalizer, detail);
    }
}

/// Requires valid labels of the Pod Security Standards in a new namespace.
pub(crate) fn new_namespace(object: &Object, causes: &mut CauseList) {
    causes.extend(label_problems(&labels(object)));
}

/// Requires valid labels of the Pod Security Standards, unless they are unchanged.
pub(crate) fn namespace_change(before: &Object, after: &Object, causes: &mut CauseList) {
    let problems = label_problems(&labels(after));
    if problems != label_problems(&labels(before)) {
        causes.extend(problems);
    }
}

fn labels(object: &Object) -> BTreeMap<String, String> {
    let labels = json::at(object, "metadata.labels").and_then(Value::as_object);
    let labels = labels.into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    labels.collect()
}

/// Validates the status of a namespace: the phase is `Active` unless the namespace is being
/// deleted.
pub(crate) fn namespace_status(after: &Object, causes: &mut CauseList) {
    let phase = json::text(after, "status.phase");
    let deleted = json::at(after, "metadata.deletionTimestamp").is_some();
    let (expected, when) = if deleted {
        (
            "Terminating",
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
        )
    } else {
        (
            "Active",
            "may only be 'Active' if `deletionTimestamp` is empty",
        )
    };
    if phase != expected {
        causes.push(Cause::invalid("status.Phase", phase, when));
    }
}
