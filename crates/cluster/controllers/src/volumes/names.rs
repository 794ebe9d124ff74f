//! Names of annotations and finalizers, and the words of phases.

/// Set on a claim whose binding is complete.
pub(crate) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Set on a claim or volume that a controller bound instead of a user.
pub(crate) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// Names the provisioner of a volume.
pub(crate) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// Names the provisioner that a claim waits for.
pub(crate) const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// The old name of [`PROVISIONER`].
pub(crate) const OLD_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// Names the node for which the scheduler requests a volume.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The old form of `spec.storageClassName`.
pub(crate) const CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// The annotations of a default class. The first one is the current name.
pub(crate) const DEFAULT_CLASS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
/// The finalizer of claims that pods use.
pub(crate) const PROTECTED_CLAIM: &str = "kubernetes.io/pvc-protection";
/// The finalizer of volumes that are bound.
pub(crate) const PROTECTED_VOLUME: &str = "kubernetes.io/pv-protection";
/// The finalizer of VolumeAttributesClasses that claims or volumes have.
pub(crate) const PROTECTED_ATTRIBUTES: &str = "kubernetes.io/vac-protection";
/// The provisioner of classes without dynamic provisioning.
pub(crate) const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
