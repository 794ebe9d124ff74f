//! The paths of faults on demand, which Kubernetes does not have.

/// What comes under `/longshore.dev/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FaultPath {
    /// All rules.
    Faults,
    /// One rule.
    Fault(String),
    /// The watch history.
    Expire,
}

impl FaultPath {
    /// The path behind `/longshore.dev`.
    pub(super) fn parse(parts: &[&str]) -> Option<Self> {
        match parts {
            ["v1", "faults"] => Some(Self::Faults),
            ["v1", "faults", id] => Some(Self::Fault((*id).to_owned())),
            ["v1", "expire"] => Some(Self::Expire),
            _ => None,
        }
    }
}
