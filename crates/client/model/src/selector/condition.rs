//! The conditions in the requirements of a label selector.

/// The condition that a requirement imposes on a label.
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
    /// The disjunction of two conditions; `None` if a single condition cannot
    /// express it.
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
