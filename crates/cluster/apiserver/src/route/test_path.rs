//! The paths for tests, which Kubernetes does not have: fault injection,
//! snapshots and the clock.

/// A path below `/longshore.dev/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TestPath {
    /// All fault rules.
    Faults,
    /// A fault rule.
    Fault(String),
    /// Expires the watch history.
    Expire,
    /// All snapshots.
    Snapshots,
    /// A snapshot.
    Snapshot(String),
    /// Returns to a snapshot.
    Restore(String),
    /// The clock.
    Clock,
    /// Advances the clock.
    Advance,
    /// Waits until the controllers have no work.
    Settle,
}

impl TestPath {
    /// Parses a path below `/longshore.dev`.
    pub(super) fn parse(parts: &[&str]) -> Option<Self> {
        match parts {
            ["v1", "faults"] => Some(Self::Faults),
            ["v1", "faults", id] => Some(Self::Fault((*id).to_owned())),
            ["v1", "expire"] => Some(Self::Expire),
            ["v1", "snapshots"] => Some(Self::Snapshots),
            ["v1", "snapshots", id] => Some(Self::Snapshot((*id).to_owned())),
            ["v1", "snapshots", id, "restore"] => Some(Self::Restore((*id).to_owned())),
            ["v1", "clock"] => Some(Self::Clock),
            ["v1", "clock", "advance"] => Some(Self::Advance),
            ["v1", "clock", "settle"] => Some(Self::Settle),
            _ => None,
        }
    }
}
