//! Validation of PersistentVolumes and PersistentVolumeClaims.

use longshore_model::CauseList;
use serde_json::Value;

use super::{
    field_value::{Causes, FieldValue},
    node_selector, selector, volume_source,
};
use crate::{
    cause::Cause,
    json::{self, Object},
};

const MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];
const CHANGE: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

/// Fields of a volume's spec that are not volume sources.
const NON_SOURCE_FIELDS: &[&str] = &[
    "capacity",
    "accessModes",
    "claimRef",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "mountOptions",
    "volumeMode",
    "nodeAffinity",
    "volumeAttributesClassName",
];

fn access_modes(modes: &FieldValue<'_>, causes: &mut Causes<'_>) {
    for mode in modes.items() {
        causes.one_of(&mode.clone().with_path(&modes.path), MODES);
    }
    let once = modes.items().any(|mode| mode.text() == "ReadWriteOncePod");
    if once && modes.len() > 1 {
        let detail = "may not use ReadWriteOncePod with other access modes";
        causes.forbidden(modes, detail);
    }
}

fn storage(amounts: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let storage = amounts.get("storage");
    let path = format!("{}[storage]", amounts.path);
    if storage.quantity().is_some_and(|quantity| quantity <= 0.0) {
        causes.invalid(&storage.with_path(path), "must be greater than zero");
    }
}

fn class_name(class: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if !class.text().is_empty() {
        causes.subdomain(class);
    }
}

/// Validates the spec of a claim or of a claim template.
pub(super) fn claim_spec(spec: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let modes = spec.get("accessModes");
    if modes.len() == 0 {
        causes.required(&modes, "at least 1 access mode is required");
    }
    selector::check(&spec.get("selector"), causes);
    access_modes(&modes, causes);
    let resources = spec.get("resources");
    let requests = resources.get("requests");
    if requests.get("storage").is_set() {
        storage(&requests.with_path(&resources.path), causes);
    } else {
        causes.required(
            &resources
                .clone()
                .with_path(format!("{}[storage]", resources.path)),
            "",
        );
    }
    class_name(&spec.get("storageClassName"), causes);
    causes.one_of_if_set(&spec.get("volumeMode"), VOLUME_MODES);
    let (source, reference) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    data_source(&source, causes);
    data_source(&reference, causes);
    let differ = |name: &str| source.get(name).raw() != reference.get(name).raw();
    let both = source.is_set() && reference.is_set();
    if both && ["apiGroup", "kind", "name"].into_iter().any(differ) {
        // Kubernetes reports a path object here, which is encoded as an empty
        // map.
        let value = Object::new();
        let cause = Cause::invalid(&spec.path, value, "must match dataSourceRef");
        causes.0.push(cause);
    }
}

/// Validates the data source of a claim.
fn data_source(source: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if !source.is_set() {
        return;
    }
    let (group, kind) = (source.get("apiGroup"), source.get("kind"));
    for field in [&source.get("name"), &kind] {
        if field.text().is_empty() {
            causes.required(field, "");
        }
    }
    if !group.text().is_empty() {
        causes.subdomain(&group);
    } else if kind.text() != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        let cause = Cause::invalid(&source.path, kind.text(), detail);
        causes.0.push(cause);
    }
}

pub(crate) fn claim(object: &Object, causes: &mut CauseList) {
    claim_spec(&FieldValue::field(object, "spec"), &mut Causes(causes));
}

/// Validates a change of a claim: its volume name can be set once, and a bound
/// claim can be expanded.
pub(crate) fn claim_change(before: &Object, after: &Object, causes: &mut CauseList) {
    let (Some(Value::Object(old)), Some(Value::Object(new))) =
        (before.get("spec"), after.get("spec"))
    else {
        return;
    };
    let mut allowed = new.clone();
    if json::text(old, "volumeName").is_empty() {
        json::copy(old, &mut allowed, "volumeName");
    }
    if !old.contains_key("storageClassName") {
        json::copy(old, &mut allowed, "storageClassName");
    }
    if json::text(before, "status.phase") == "Bound" {
        json::copy(old, &mut allowed, "volumeAttributesClassName");
        if let Some(Value::Object(resources)) = allowed.get_mut("resources") {
            match json::at(old, "resources.requests") {
                Some(requests) => resources.insert("requests".into(), requests.clone()),
                None => resources.remove("requests"),
            };
        }
    }
    if allowed != *old {
        causes.push(Cause::forbidden("spec", CHANGE));
    }
    let quantity = |object| {
        FieldValue::field(object, "spec")
            .get("resources")
            .get("requests")
            .get("storage")
            .quantity()
    };
    if json::text(before, "status.phase") == "Bound" && quantity(after) < quantity(before) {
        let detail = "field can not be less than status.capacity";
        let capacity = FieldValue::field(before, "status")
            .get("capacity")
            .get("storage")
            .quantity();
        if capacity.is_none() || quantity(after) <= capacity {
            causes.push(Cause::forbidden("spec.resources.requests.storage", detail));
        }
    }
}

pub(crate) fn volume(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    let modes = spec.get("accessModes");
    if modes.len() == 0 {
        causes.required(&modes, "");
    }
    access_modes(&modes, causes);
    let capacity = spec.get("capacity");
    if capacity.len() == 0 {
        causes.required(&capacity, "");
    }
    if !capacity.get("storage").is_set() || capacity.len() > 1 {
        let message = format!(
            "Unsupported value: {}: supported values: \"storage\"",
            capacity.value()
        );
        causes.0.push(Cause::plain(
            &capacity.path,
            "FieldValueNotSupported",
            message,
        ));
    }
    storage(&capacity, causes);
    let reclaim = spec.get("persistentVolumeReclaimPolicy");
    causes.one_of_if_set(&reclaim, &["Delete", "Recycle", "Retain"]);
    let sources: Vec<FieldValue<'_>> = spec
        .object()
        .into_iter()
        .flatten()
        .filter(|(name, value)| !NON_SOURCE_FIELDS.contains(&name.as_str()) && !value.is_null())
        .map(|(name, _)| spec.get(name))
        .collect();
    if sources.is_empty() {
        causes.required(&spec, "must specify a volume type");
    }
    for second in sources.iter().skip(1) {
        causes.forbidden(second, "may not specify more than 1 volume type");
    }
    host_path(&spec.get("hostPath"), causes);
    volume_source::check(|name| spec.get(name), causes);
    persistent_volume_source(&spec, causes);
    if spec.get("hostPath").get("path").text() == "/" && reclaim.text() == "Recycle" {
        causes.forbidden(&reclaim, "may not be 'recycle' for a hostPath mount of '/'");
    }
    let required = spec.get("nodeAffinity").get("required");
    if required.is_set() {
        let terms = required.get("nodeSelectorTerms");
        if terms.len() == 0 {
            causes.required(&terms, "must have at least one node selector term");
        }
        terms
            .items()
            .for_each(|term| node_selector::term(&term, causes));
    }
    if spec.get("local").is_set() && !spec.get("nodeAffinity").get("required").is_set() {
        causes.required(
            &spec.get("nodeAffinity"),
            "Local volume requires node affinity",
        );
    }
    class_name(&spec.get("storageClassName"), causes);
    causes.one_of_if_set(&spec.get("volumeMode"), VOLUME_MODES);
}

/// Rules for sources that only PersistentVolumes have.
fn persistent_volume_source(spec: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let path = spec.get("local").get("path");
    if spec.get("local").is_set() {
        if path.text().is_empty() {
            causes.required(&path, "");
        } else if path.text().split('/').any(|part| part == "..") {
            causes.invalid(&path, "must not contain '..'");
        }
    }
    let scsi = spec.get("iscsi");
    let initiator = scsi.get("initiatorName");
    for (field, shown) in [("iqn", "iqn"), ("initiatorName", "initiatorname")] {
        let name = scsi.get(field);
        let said = !name.text().is_empty() || field == "initiatorName" && initiator.is_set();
        if said && !volume_source::is_iscsi(name.text()) {
            let name = name.with_path(format!("{}.{shown}", scsi.path));
            causes.invalid(&name, "must be valid format");
        }
    }
    let asks = ["chapAuthDiscovery", "chapAuthSession"]
        .iter()
        .any(|field| scsi.get(field).is_true());
    if asks && !scsi.get("secretRef").is_set() {
        causes.required(&scsi.get("secretRef"), "");
    }
    if scsi.get("secretRef").is_set() && scsi.get("secretRef").get("name").text().is_empty() {
        causes.required(&scsi.get("secretRef").get("name"), "");
    }
    let csi = spec.get("csi");
    if csi.is_set() && csi.get("volumeHandle").text().is_empty() {
        causes.required(&csi.get("volumeHandle"), "");
    }
    for field in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        secret_reference(&csi.get(field), causes);
    }
    for source in ["cinder", "storageos"] {
        let secret = spec.get(source).get("secretRef");
        if secret.is_set() && secret.get("namespace").text().is_empty() {
            causes.required(&secret.get("namespace"), "");
        }
    }
    let namespace = spec.get("glusterfs").get("endpointsNamespace");
    if namespace.is_set() && namespace.text().is_empty() {
        let detail = "if the endpointnamespace is set, it must be a valid namespace name";
        causes.invalid(&namespace, detail);
    } else if namespace.is_set() {
        causes.label(&namespace);
    }
    let namespace = spec.get("azureFile").get("secretNamespace");
    if namespace.is_set() && namespace.text().is_empty() {
        causes.required(&namespace, "");
    }
}

/// Validates a reference to a Secret in an explicit namespace.
fn secret_reference(secret: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let (name, namespace) = (secret.get("name"), secret.get("namespace"));
    if !secret.is_set() {
        return;
    }
    if name.text().is_empty() {
        causes.required(&name, "");
    } else {
        causes.subdomain(&name);
    }
    if namespace.text().is_empty() {
        causes.required(&namespace, "");
    } else {
        causes.label(&namespace);
    }
}

/// Validates a path on the node's file system.
pub(super) fn host_path(source: &FieldValue<'_>, causes: &mut Causes<'_>) {
    const TYPES: &[&str] = &[
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    if !source.is_set() {
        return;
    }
    let path = source.get("path");
    if path.text().is_empty() {
        causes.required(&path, "");
    } else if path.text().split('/').any(|part| part == "..") {
        causes.invalid(&path, "must not contain '..'");
    }
    causes.one_of_if_set(&source.get("type"), TYPES);
}

/// Validates a change of a volume: its source and volume mode are immutable.
pub(crate) fn volume_change(before: &Object, after: &Object, causes: &mut CauseList) {
    let source = |object: &Object| -> Object {
        let spec = object.get("spec").and_then(Value::as_object);
        let fields = spec.into_iter().flatten();
        let fields = fields.filter(|(name, _)| !NON_SOURCE_FIELDS.contains(&name.as_str()));
        fields
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    if source(before) != source(after) {
        let detail = "spec.persistentvolumesource is immutable after creation";
        causes.push(Cause::forbidden("spec.persistentvolumesource", detail));
    }
    let causes = &mut Causes(causes);
    let (old, new) = (
        FieldValue::field(before, "spec"),
        FieldValue::field(after, "spec"),
    );
    causes.immutable(
        &old.get("volumeMode"),
        &new.get("volumeMode").with_path("volumeMode"),
    );
    let (had, has) = (old.get("nodeAffinity"), new.get("nodeAffinity"));
    if had.is_set() && had.raw() != has.raw() {
        let detail = "field is immutable, except for updating from beta label to GA";
        causes.invalid(&has.with_path("nodeAffinity"), detail);
    }
}
