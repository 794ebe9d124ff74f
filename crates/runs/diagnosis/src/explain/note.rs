//! The explanation that a client recorded on a Job when it stopped the Job.

use super::Explanation;
use crate::{evidence::JobEvidence, names};

impl JobEvidence {
    /// The explanation that a client recorded on the Job when it stopped the Job.
    pub(crate) fn note(&self) -> Option<Explanation> {
        let text = self.metadata.annotations.get(names::WHY)?;
        serde_json::from_str(text).ok()
    }
}
