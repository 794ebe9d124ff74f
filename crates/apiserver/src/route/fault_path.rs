//! The fault injection paths, which Kubernetes does not have.

/// A path below `/longshore.dev/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FaultPath {
    /// All rules.
    Faults,
    /// One rule.
    Fault(String),
    /// Expires the watch history.
    Expire,
}

impl FaultPath {
    /// Parses a path below `/longshore.dev`.
    pub(super) fn parse(parts: &[&str]) -> Option<Self> {
        match parts {
            ["v1", "faults"] => Some(Self::Faults),
            ["v1", "faults", id] => Some(Self::Fault((*id).to_owned())),
            ["v1", "expire"] => Some(Self::Expire),
            _ => None,
        }
    }
}
