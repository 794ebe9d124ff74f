//! Rules of the kinds of storage.k8s.io.

use std::collections::HashSet;

use longshore_model::StatusCause;

use super::{
    at::{At, Causes},
    immutable, selector,
};
use crate::{cause::Cause, json::Object};

/// Bytes of all parameters together.
const PARAMETERS: usize = 256 << 10;

fn parameters(parameters: &At<'_>, causes: &mut Causes<'_>) {
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
    if size > PARAMETERS {
        causes.0.push(Cause::too_long(&parameters.path, PARAMETERS));
    }
}

pub(super) fn class(object: &Object, causes: &mut Vec<StatusCause>) {
    let causes = &mut Causes(causes);
    let provisioner = At::field(object, "provisioner");
    if provisioner.text().is_empty() {
        causes.required(&provisioner, "");
    } else {
        let lower = provisioner.text().to_ascii_lowercase();
        super::meta::qualified("provisioner", &lower, causes.0);
    }
    parameters(&At::field(object, "parameters"), causes);
    for term in At::field(object, "allowedTopologies").items() {
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
    causes.one_of_if_set(&At::field(object, "reclaimPolicy"), &["Delete", "Retain"]);
    let mode = At::field(object, "volumeBindingMode");
    causes.one_of_if_set(&mode, &["Immediate", "WaitForFirstConsumer"]);
}

pub(super) fn class_change(before: &Object, after: &Object, causes: &mut Vec<StatusCause>) {
    let fields = [
        "parameters",
        "provisioner",
        "reclaimPolicy",
        "volumeBindingMode",
    ];
    immutable::fixed_unshown(before, after, &fields, causes);
}

/// The name of a driver.
pub(super) fn driver_name(name: &At<'_>, causes: &mut Causes<'_>) {
    if name.text().is_empty() {
        return causes.required(name, "");
    } else if name.text().len() > 63 {
        causes.0.push(Cause::too_long(&name.path, 63));
    }
    let lower = name.text().to_ascii_lowercase();
    super::meta::subdomain(&name.path, &lower, causes.0);
}

pub(super) fn attributes_class(object: &Object, causes: &mut Vec<StatusCause>) {
    let causes = &mut Causes(causes);
    driver_name(&At::field(object, "driverName"), causes);
    let own = At::field(object, "parameters");
    if own.len() == 0 {
        causes.required(&own, "must contain at least one key/value pair");
    }
    parameters(&own, causes);
}

pub(super) fn attributes_class_change(
    before: &Object,
    after: &Object,
    causes: &mut Vec<StatusCause>,
) {
    for field in ["driverName", "parameters"] {
        if before.get(field) != after.get(field) {
            let detail = format!("updates to {field} are forbidden.");
            causes.push(Cause::forbidden(field, &detail));
        }
    }
}

/// The name of an attacher: as that of a driver, with other words for what is wrong.
fn attacher(name: &At<'_>, causes: &mut Causes<'_>) {
    const CASELESS: &str = r"an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'Example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let before = causes.0.len();
    driver_name(name, causes);
    for cause in &mut causes.0[before..] {
        cause.message = cause.message.replace(super::meta::SUBDOMAIN, CASELESS);
    }
}

pub(super) fn attachment(object: &Object, causes: &mut Vec<StatusCause>) {
    let (spec, causes) = (At::field(object, "spec"), &mut Causes(causes));
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

pub(super) fn driver(object: &Object, causes: &mut Vec<StatusCause>) {
    let name = At::field(object, "metadata")
        .get("name")
        .called("metadata.name");
    let (spec, causes) = (At::field(object, "spec"), &mut Causes(causes));
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
        causes.one_of(&mode.called(&modes.path), &["Persistent", "Ephemeral"]);
    }
    let policy = spec.get("fsGroupPolicy");
    causes.one_of_if_set(&policy, &["File", "None", "ReadWriteOnceWithFSType"]);
}

/// Of a driver some things may change while it is in use.
pub(super) fn driver_change(before: &Object, after: &Object, causes: &mut Vec<StatusCause>) {
    let required = |object| At::field(object, "spec").get("attachRequired");
    // The real server's path.
    let shown = required(after).called("spec.attachedRequired");
    Causes(causes).immutable(&required(before), &shown);
    immutable::fixed(before, after, &["spec.volumeLifecycleModes"], causes);
}

pub(super) fn node(object: &Object, causes: &mut Vec<StatusCause>) {
    let causes = &mut Causes(causes);
    let drivers = At::field(object, "spec").get("drivers");
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

/// A driver that a node has keeps what it is there.
pub(super) fn node_change(before: &Object, after: &Object, causes: &mut Vec<StatusCause>) {
    let causes = &mut Causes(causes);
    let drivers = |object| At::field(object, "spec").get("drivers");
    for old in drivers(before).items() {
        let same = |new: &At<'_>| new.get("name").text() == old.get("name").text();
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

pub(super) fn capacity(object: &Object, causes: &mut Vec<StatusCause>) {
    let causes = &mut Causes(causes);
    causes.subdomain(&At::field(object, "storageClassName"));
    for field in ["capacity", "maximumVolumeSize"] {
        let amount = At::field(object, field);
        if amount.amount().is_some_and(|amount| amount < 0.0) {
            causes.invalid(&amount, "must be greater than or equal to 0");
        }
    }
    selector::check(&At::field(object, "nodeTopology"), causes);
}
