//! The explanation that was noted on a Job when it was stopped.

use super::Explanation;
use crate::{evidence::JobEvidence, names};

impl JobEvidence {
    /// The explanation that was noted on it when it was stopped.
    #[must_use]
    pub fn note(&self) -> Option<Explanation> {
        let text = self.metadata.annotations.get(names::WHY)?;
        serde_json::from_str(text).ok()
    }
}
