//! Provides pods of the embedded cluster with ready copies of their code.

use longshore::launcher::{kept::Kept, names};
use longshore_embedded::{FillVolumes, NewVolume};

/// The cluster's ready copies.
#[derive(Debug)]
pub(crate) struct ReadyCode(pub(crate) Kept);

impl FillVolumes for ReadyCode {
    fn fill(&self, volume: &NewVolume<'_>) {
        let bundle = volume.annotations.get(names::BUNDLE);
        let Some(sha256) = bundle.filter(|_| volume.name == names::HOME_VOLUME) else {
            return;
        };
        if self.0.give(sha256, volume.path) {
            tracing::info!(sha256, "a pod has got a ready copy of its code");
        }
    }
}
