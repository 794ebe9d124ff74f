//! Claims and volumes as subjects of events.

use super::facts::{ClaimFacts, VolumeFacts};
use crate::events::Subject;

/// A claim.
pub(crate) fn claim_subject(claim: &ClaimFacts) -> Subject {
    Subject {
        api_version: "v1".into(),
        kind: "PersistentVolumeClaim".into(),
        namespace: claim.key.namespace.clone(),
        name: claim.key.name.clone(),
        uid: claim.uid.clone(),
    }
}

/// A volume, which has no namespace.
pub(crate) fn volume_subject(volume: &VolumeFacts) -> Subject {
    Subject {
        api_version: "v1".into(),
        kind: "PersistentVolume".into(),
        namespace: String::new(),
        name: volume.name.clone(),
        uid: volume.uid.clone(),
    }
}
