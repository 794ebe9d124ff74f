//! The fields of claims, volumes and classes that the controllers read.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        core::v1::{
            NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim, TopologySelectorTerm,
        },
        storage::v1::StorageClass,
    },
    apimachinery::pkg::api::resource::Quantity as Text,
};
use longshore_client::{Error, Item, LabelSelector, kinds::Any};
use longshore_model::{Quantity, selector::StructuredSelector};

use super::names::{BIND_COMPLETED, BOUND_BY_CONTROLLER, CLASS, DEFAULT_CLASS, SELECTED_NODE};
use crate::key::Key;

type Annotations = BTreeMap<String, String>;

/// A claim.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClaimFacts {
    /// Namespace and name.
    pub(crate) key: Key,
    /// UID.
    pub(crate) uid: String,
    /// resourceVersion.
    pub(crate) version: String,
    /// True if the claim is being deleted.
    pub(crate) deleting: bool,
    /// The finalizers of the claim.
    pub(crate) finalizers: Vec<String>,
    /// The annotations of the claim.
    pub(crate) annotations: Annotations,
    /// The UID of the controller that owns the claim.
    pub(crate) owner: Option<String>,
    /// The class that the claim names. `Some("")` requests volumes without a class.
    pub(crate) named_class: Option<String>,
    /// The volume that the claim is bound to or requests; empty if none.
    pub(crate) volume: String,
    /// The requested access modes.
    pub(crate) modes: Vec<String>,
    /// The requested size in bytes.
    pub(crate) size: f64,
    /// The requested size as written in the spec.
    pub(crate) size_text: String,
    /// The selector of volumes by their labels.
    pub(crate) selector: Option<LabelSelector>,
    /// `Filesystem` or `Block`.
    pub(crate) volume_mode: String,
    /// The VolumeAttributesClass; empty if none.
    pub(crate) attributes_class: String,
    /// True if the claim requests a copy of other data.
    pub(crate) has_source: bool,
    /// `status.phase`.
    pub(crate) phase: String,
    /// `status.accessModes`.
    pub(crate) status_modes: Vec<String>,
    /// The size in `status.capacity`, in bytes.
    pub(crate) capacity: Option<f64>,
    /// True if `status` has an access mode, a capacity, or a current class.
    pub(crate) has_status: bool,
}

/// A volume.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VolumeFacts {
    /// Name.
    pub(crate) name: String,
    /// UID.
    pub(crate) uid: String,
    /// resourceVersion.
    pub(crate) version: String,
    /// True if the volume is being deleted.
    pub(crate) deleting: bool,
    /// The finalizers of the volume.
    pub(crate) finalizers: Vec<String>,
    /// The annotations of the volume.
    pub(crate) annotations: Annotations,
    /// The labels of the volume.
    pub(crate) labels: BTreeMap<String, String>,
    /// The class of the volume; empty if none.
    pub(crate) class: String,
    /// The supported access modes.
    pub(crate) modes: Vec<String>,
    /// The size in bytes.
    pub(crate) size: f64,
    /// The size as written in the spec.
    pub(crate) size_text: String,
    /// `Filesystem` or `Block`.
    pub(crate) volume_mode: String,
    /// The VolumeAttributesClass; empty if none.
    pub(crate) attributes_class: String,
    /// `Retain`, `Delete` or `Recycle`.
    pub(crate) reclaim_policy: String,
    /// The claim that the volume is bound to or reserved for.
    pub(crate) claim: Option<ClaimReference>,
    /// The nodes that can use the volume. Without terms, all nodes can.
    pub(crate) node_terms: Option<Vec<NodeSelectorTerm>>,
    /// The path of a volume of type `local`.
    pub(crate) local_path: Option<String>,
    /// True if the volume is a CSI volume.
    pub(crate) is_csi: bool,
    /// `status.phase`.
    pub(crate) phase: String,
}

/// The claim of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaimReference {
    /// Namespace and name.
    pub(crate) key: Key,
    /// UID; empty if the volume is only reserved.
    pub(crate) uid: String,
}

/// A StorageClass.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClassFacts {
    /// Name.
    pub(crate) name: String,
    /// The provisioner of the class.
    pub(crate) provisioner: String,
    /// True if volumes are bound only when a pod needs them.
    pub(crate) waits_for_pod: bool,
    /// The reclaim policy of the class's volumes.
    pub(crate) reclaim_policy: String,
    /// The mount options of the class's volumes.
    pub(crate) mount_options: Vec<String>,
    /// The nodes for which the class provisions volumes. Without terms, these are all nodes.
    pub(crate) topologies: Vec<TopologySelectorTerm>,
    /// The creation time of the class, if the class is marked as default.
    pub(crate) default_since: Option<Option<Timestamp>>,
}

fn bytes(text: Option<&Text>) -> Option<f64> {
    let quantity: Quantity = text?.0.parse().ok()?;
    Some(quantity.value())
}

fn text(text: Option<&Text>) -> String {
    text.map(|text| text.0.clone()).unwrap_or_default()
}

fn mode(mode: Option<String>) -> String {
    mode.filter(|mode| !mode.is_empty())
        .unwrap_or_else(|| "Filesystem".to_owned())
}

impl ClaimFacts {
    /// Reads a claim.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(crate) fn of(item: &Item<Any>) -> Result<Self, Error> {
        Self::read(item.typed()?)
    }

    /// Reads a claim from its type.
    pub(crate) fn read(claim: PersistentVolumeClaim) -> Result<Self, Error> {
        let meta = claim.metadata;
        let spec = claim.spec.unwrap_or_default();
        let status = claim.status.unwrap_or_default();
        let annotations = meta.annotations.unwrap_or_default();
        let resources = spec.resources.unwrap_or_default();
        let requests = resources.requests.unwrap_or_default();
        let request = requests.get("storage");
        let selector = match spec.selector {
            Some(selector) => {
                let unreadable = |error: &dyn std::fmt::Display| Error::Invalid(error.to_string());
                let value = serde_json::to_value(selector).map_err(|error| unreadable(&error))?;
                let structured: StructuredSelector =
                    serde_json::from_value(value).map_err(|error| unreadable(&error))?;
                let selector = LabelSelector::try_from(structured);
                Some(selector.map_err(|error| unreadable(&error))?)
            }
            None => None,
        };
        let owners = meta.owner_references.unwrap_or_default();
        let owner = owners
            .into_iter()
            .find(|owner| owner.controller == Some(true));
        let capacity = status.capacity.unwrap_or_default();
        let status_modes = status.access_modes.unwrap_or_default();
        Ok(Self {
            key: Key::new(
                &meta.namespace.unwrap_or_default(),
                &meta.name.unwrap_or_default(),
            ),
            uid: meta.uid.unwrap_or_default(),
            version: meta.resource_version.unwrap_or_default(),
            deleting: meta.deletion_timestamp.is_some(),
            finalizers: meta.finalizers.unwrap_or_default(),
            owner: owner.map(|owner| owner.uid),
            named_class: annotations.get(CLASS).cloned().or(spec.storage_class_name),
            annotations,
            volume: spec.volume_name.unwrap_or_default(),
            modes: spec.access_modes.unwrap_or_default(),
            size: bytes(request).unwrap_or_default(),
            size_text: text(request),
            selector,
            volume_mode: mode(spec.volume_mode),
            attributes_class: spec.volume_attributes_class_name.unwrap_or_default(),
            has_source: spec.data_source.is_some() || spec.data_source_ref.is_some(),
            phase: status.phase.unwrap_or_default(),
            has_status: !status_modes.is_empty()
                || !capacity.is_empty()
                || status.current_volume_attributes_class_name.is_some(),
            status_modes,
            capacity: bytes(capacity.get("storage")),
        })
    }

    /// Returns the name of the class; empty for volumes without a class.
    pub(crate) fn class(&self) -> &str {
        self.named_class.as_deref().unwrap_or_default()
    }

    /// Returns true if the claim has been bound.
    pub(crate) fn is_bind_completed(&self) -> bool {
        self.annotations.contains_key(BIND_COMPLETED)
    }

    /// Returns true if a controller chose the claim's volume.
    pub(crate) fn is_bound_by_controller(&self) -> bool {
        self.annotations.contains_key(BOUND_BY_CONTROLLER)
    }

    /// Returns the node for which the scheduler requests a volume.
    pub(crate) fn selected_node(&self) -> Option<&str> {
        let node = self.annotations.get(SELECTED_NODE)?;
        Some(node.as_str()).filter(|node| !node.is_empty())
    }
}

impl VolumeFacts {
    /// Reads a volume.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(crate) fn of(item: &Item<Any>) -> Result<Self, Error> {
        Ok(Self::read(item.typed()?))
    }

    /// Reads a volume from its type.
    pub(crate) fn read(volume: PersistentVolume) -> Self {
        let meta = volume.metadata;
        let spec = volume.spec.unwrap_or_default();
        let annotations = meta.annotations.unwrap_or_default();
        let capacity = spec.capacity.unwrap_or_default();
        let size = capacity.get("storage");
        let claim = spec.claim_ref.map(|claim| ClaimReference {
            key: Key::new(
                &claim.namespace.unwrap_or_default(),
                &claim.name.unwrap_or_default(),
            ),
            uid: claim.uid.unwrap_or_default(),
        });
        let class = annotations.get(CLASS).cloned().or(spec.storage_class_name);
        let required = spec.node_affinity.and_then(|affinity| affinity.required);
        Self {
            name: meta.name.unwrap_or_default(),
            uid: meta.uid.unwrap_or_default(),
            version: meta.resource_version.unwrap_or_default(),
            deleting: meta.deletion_timestamp.is_some(),
            finalizers: meta.finalizers.unwrap_or_default(),
            labels: meta.labels.unwrap_or_default(),
            annotations,
            class: class.unwrap_or_default(),
            modes: spec.access_modes.unwrap_or_default(),
            size: bytes(size).unwrap_or_default(),
            size_text: text(size),
            volume_mode: mode(spec.volume_mode),
            attributes_class: spec.volume_attributes_class_name.unwrap_or_default(),
            reclaim_policy: spec.persistent_volume_reclaim_policy.unwrap_or_default(),
            claim,
            node_terms: required.map(|required| required.node_selector_terms),
            local_path: spec.local.map(|local| local.path),
            is_csi: spec.csi.is_some(),
            phase: volume
                .status
                .and_then(|status| status.phase)
                .unwrap_or_default(),
        }
    }

    /// Returns true if the volume is bound to the claim, or reserved for it.
    pub(crate) fn is_for(&self, claim: &ClaimFacts) -> bool {
        self.claim.as_ref().is_some_and(|reference| {
            reference.key == claim.key && (reference.uid.is_empty() || reference.uid == claim.uid)
        })
    }

    /// Returns true if a controller chose the volume's claim.
    pub(crate) fn is_bound_by_controller(&self) -> bool {
        self.annotations.contains_key(BOUND_BY_CONTROLLER)
    }
}

impl ClassFacts {
    /// Reads a class.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(crate) fn of(item: &Item<Any>) -> Result<Self, Error> {
        Ok(Self::read(item.typed()?))
    }

    /// Reads a class from its type.
    pub(crate) fn read(class: StorageClass) -> Self {
        let meta = class.metadata;
        let annotations = meta.annotations.unwrap_or_default();
        let is_default = DEFAULT_CLASS
            .iter()
            .any(|name| annotations.get(*name).is_some_and(|value| value == "true"));
        Self {
            name: meta.name.unwrap_or_default(),
            provisioner: class.provisioner,
            waits_for_pod: class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"),
            reclaim_policy: class.reclaim_policy.unwrap_or_else(|| "Delete".to_owned()),
            mount_options: class.mount_options.unwrap_or_default(),
            topologies: class.allowed_topologies.unwrap_or_default(),
            default_since: is_default.then(|| meta.creation_timestamp.map(|time| time.0)),
        }
    }
}
