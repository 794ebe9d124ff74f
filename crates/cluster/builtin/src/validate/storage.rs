//! Validation of the storage.k8s.io kinds.

use std::collections::HashSet;

use longshore_model::CauseList;

use super::{
    field_value::{Causes, FieldValue},
    immutable, selector,
};
use crate::{cause::Cause, json::Object};

/// Maximum total size of all parameters in bytes.
const MAX_PARAMETER_BYTES: usize = 256 << 10;

fn parameters(parameters: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let mut size = 0;
    for (key, value) in parameters.entries() {
        if key.is_empty() {
            causes.0.push(Cause::invalid(
                &parameters.path,
                key,
                "field can not be empty.",
            ));
        }
        size += key.len() + value.text().len();
    }
    if parameters.len() > 512 {
        causes.0.push(Cause::too_long(&parameters.path, 512));
    }
    if size > MAX_PARAMETER_BYTES {
        causes
            .0
            .push(Cause::too_long(&parameters.path, MAX_PARAMETER_BYTES));
    }
}

pub(crate) fn class(object: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let provisioner = FieldValue::field(object, "provisioner");
    if provisioner.text().is_empty() {
        causes.required(&provisioner, "");
    } else {
        let lower = provisioner.text().to_ascii_lowercase();
        super::meta::qualified("provisioner", &lower, causes.0);
    }
    parameters(&FieldValue::field(object, "parameters"), causes);
    for term in FieldValue::field(object, "allowedTopologies").items() {
        let list = term.get("matchLabelExpressions");
        let mut keys = HashSet::new();
        for one in list.items() {
            let (key, values) = (one.get("key"), one.get("values"));
            if values.len() == 0 {
                causes.required(&values, "");
            }
            causes.qualified(&key);
            let mut seen = HashSet::new();
            for value in values.items() {
                if !seen.insert(value.text()) {
                    causes.duplicate(&value);
                }
            }
            if !keys.insert(key.text()) {
                causes.duplicate(&key);
            }
        }
    }
    causes.one_of_if_set(
        &FieldValue::field(object, "reclaimPolicy"),
        &["Delete", "Retain"],
    );
    let mode = FieldValue::field(object, "volumeBindingMode");
    causes.one_of_if_set(&mode, &["Immediate", "WaitForFirstConsumer"]);
}

pub(crate) fn class_change(before: &Object, after: &Object, causes: &mut CauseList) {
    let fields = [
        "parameters",
        "provisioner",
        "reclaimPolicy",
        "volumeBindingMode",
    ];
    immutable::fixed_without_value(before, after, &fields, causes);
}

/// Validates the name of a CSI driver.
pub(super) fn driver_name(name: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if name.text().is_empty() {
        return causes.required(name, "");
    } else if name.text().len() > 63 {
        causes.0.push(Cause::too_long(&name.path, 63));
    }
    let lower = name.text().to_ascii_lowercase();
    super::meta::subdomain(&name.path, &lower, causes.0);
}

pub(crate) fn attributes_class(object: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    driver_name(&FieldValue::field(object, "driverName"), causes);
    let own = FieldValue::field(object, "parameters");
    if own.len() == 0 {
        causes.required(&own, "must contain at least one key/value pair");
    }
    parameters(&own, causes);
}

pub(crate) fn attributes_class_change(before: &Object, after: &Object, causes: &mut CauseList) {
    for field in ["driverName", "parameters"] {
        if before.get(field) != after.get(field) {
            let detail = format!("updates to {field} are forbidden.");
            causes.push(Cause::forbidden(field, &detail));
        }
    }
}

/// Validates the name of an attacher: the rules of driver names with other messages.
fn attacher(name: &FieldValue<'_>, causes: &mut Causes<'_>) {
    const CASELESS: &str = r"an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'Example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let before = causes.0.len();
    driver_name(name, causes);
    for cause in &mut causes.0[before..] {
        cause.message = cause.message.replace(super::meta::SUBDOMAIN, CASELESS);
    }
}

pub(crate) fn attachment(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    attacher(&spec.get("attacher"), causes);
    let source = spec.get("source");
    let (inline, named) = (
        source.get("inlineVolumeSpec"),
        source.get("persistentVolumeName"),
    );
    match (inline.is_set(), named.is_set()) {
        (false, false) => causes.required(
            &source,
            "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
        ),
        (true, true) => causes.forbidden(
            &source,
            "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
        ),
        (false, true) if named.text().is_empty() => {
            causes.required(&named, "must specify non empty persistentVolumeName")
        }
        _ => {}
    }
    causes.subdomain(&spec.get("nodeName"));
}

pub(crate) fn driver(object: &Object, causes: &mut CauseList) {
    let name = FieldValue::field(object, "metadata")
        .get("name")
        .with_path("metadata.name");
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    if name.text().len() > 63 {
        causes.0.push(Cause::too_long(&name.path, 63));
    }
    for field in [
        "attachRequired",
        "podInfoOnMount",
        "storageCapacity",
        "seLinuxMount",
    ] {
        if !spec.get(field).is_set() {
            causes.required(&spec.get(field), "");
        }
    }
    let modes = spec.get("volumeLifecycleModes");
    for mode in modes.items() {
        causes.one_of(&mode.with_path(&modes.path), &["Persistent", "Ephemeral"]);
    }
    let policy = spec.get("fsGroupPolicy");
    causes.one_of_if_set(&policy, &["File", "None", "ReadWriteOnceWithFSType"]);
}

/// Validates a change of a CSIDriver: some fields are mutable while the driver
/// is in use.
pub(crate) fn driver_change(before: &Object, after: &Object, causes: &mut CauseList) {
    let required = |object| FieldValue::field(object, "spec").get("attachRequired");
    // The path that Kubernetes reports.
    let shown = required(after).with_path("spec.attachedRequired");
    Causes(causes).immutable(&required(before), &shown);
    immutable::fixed(before, after, &["spec.volumeLifecycleModes"], causes);
}

pub(crate) fn node(object: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let drivers = FieldValue::field(object, "spec").get("drivers");
    causes.unique(drivers.items().map(|driver| driver.get("name")));
    for driver in drivers.items() {
        driver_name(&driver.get("name"), causes);
        let id = driver.get("nodeID");
        if id.text().is_empty() {
            causes.required(&id, "");
        } else if id.text().len() > 192 {
            causes.0.push(Cause::too_long(&id.path, 192));
        }
        causes.not_negative(&driver.get("allocatable").get("count"));
        let keys: Vec<&str> = driver
            .get("topologyKeys")
            .items()
            .map(|key| key.text())
            .collect();
        let mut seen = HashSet::new();
        for key in &keys {
            if key.is_empty() {
                causes.required(&driver, "");
            }
            if !seen.insert(key) {
                causes.0.push(Cause::duplicate(&driver.path, *key));
            }
            super::meta::qualified(&driver.path, key, causes.0);
        }
    }
}

/// Validates a change of a CSINode: the entry of an existing driver is
/// immutable.
pub(crate) fn node_change(before: &Object, after: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let drivers = |object| FieldValue::field(object, "spec").get("drivers");
    for old in drivers(before).items() {
        let same = |new: &FieldValue<'_>| new.get("name").text() == old.get("name").text();
        if let Some(new) = drivers(after).items().find(same) {
            for field in ["nodeID", "topologyKeys"] {
                if old.get(field).raw() != new.get(field).raw() {
                    causes.invalid(&drivers(after), "field is immutable");
                    break;
                }
            }
        }
    }
}

pub(crate) fn capacity(object: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    causes.subdomain(&FieldValue::field(object, "storageClassName"));
    for field in ["capacity", "maximumVolumeSize"] {
        let quantity = FieldValue::field(object, field);
        if quantity.quantity().is_some_and(|quantity| quantity < 0.0) {
            causes.invalid(&quantity, "must be greater than or equal to 0");
        }
    }
    selector::check(&FieldValue::field(object, "nodeTopology"), causes);
}
