//! The conditions of a label selector's requirements.

/// What one requirement asks of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

impl Condition {
    /// What holds where this or the other does; `None` for what cannot be said.
    pub(super) fn or(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::In(own), Self::In(others)) => {
                let new = others.iter().filter(|value| !own.contains(value));
                Some(Self::In(own.iter().chain(new).cloned().collect()))
            }
            (own, other) => (own == other).then(|| own.clone()),
        }
    }
}
