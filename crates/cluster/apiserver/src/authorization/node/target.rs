//! Objects that pods and volumes use. Pure.

/// The kind of an object that pods use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Used {
    Secret,
    ConfigMap,
    /// A PersistentVolumeClaim.
    Claim,
    ResourceClaim,
    ServiceAccount,
}

/// An object that pods use.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Target {
    pub(super) kind: Used,
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
}

impl Target {
    pub(super) fn new(kind: Used, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}
