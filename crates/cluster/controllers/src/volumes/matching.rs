//! Matches claims with volumes. Pure.

use super::facts::{ClaimFacts, VolumeFacts};

/// Returns true if the volume has all access modes of the claim.
fn has_modes(volume: &VolumeFacts, claim: &ClaimFacts) -> bool {
    claim.modes.iter().all(|mode| volume.modes.contains(mode))
}

/// Checks a volume that the claim names.
///
/// # Errors
/// The text of the event `VolumeMismatch`.
pub(crate) fn satisfies(volume: &VolumeFacts, claim: &ClaimFacts) -> Result<(), String> {
    let problem = if volume.deleting {
        return Err(format!(
            "the volume is marked for deletion {:?}",
            volume.name
        ));
    } else if volume.size < claim.size {
        "requested PV is too small"
    } else if volume.class != claim.class() {
        "storageClassName does not match"
    } else if volume.attributes_class != claim.attributes_class {
        "volumeAttributesClassName does not match"
    } else if volume.volume_mode != claim.volume_mode {
        "incompatible volumeMode"
    } else if !has_modes(volume, claim) {
        "incompatible accessMode"
    } else {
        return Ok(());
    };
    Err(problem.to_owned())
}

/// Returns true if the volume can be bound to the claim although neither names the other.
fn is_candidate(volume: &VolumeFacts, claim: &ClaimFacts) -> bool {
    volume.claim.is_none()
        && volume.phase == "Available"
        && has_modes(volume, claim)
        && volume.class == claim.class()
        && claim
            .selector
            .as_ref()
            .is_none_or(|selector| selector.matches(&volume.labels))
}

/// Returns the volume for a claim: the one that is reserved for the claim, otherwise the smallest
/// that matches. `fits_node` checks the node affinity, like the scheduler. If `only_reserved` is
/// true, the scheduler chooses among the other volumes.
pub(crate) fn find<'a>(
    claim: &ClaimFacts,
    volumes: impl Iterator<Item = &'a VolumeFacts>,
    fits_node: impl Fn(&VolumeFacts) -> bool,
    only_reserved: bool,
) -> Option<&'a VolumeFacts> {
    // Volumes with fewer access modes are preferred, as in Kubernetes.
    let rank = |volume: &VolumeFacts| (volume.modes.len(), volume.size);
    let mut best: Option<&VolumeFacts> = None;
    for volume in volumes {
        let is_fit = volume.size >= claim.size
            && volume.volume_mode == claim.volume_mode
            && volume.attributes_class == claim.attributes_class
            && !volume.deleting;
        if !is_fit || volume.claim.is_some() && !volume.is_for(claim) {
            continue;
        }
        if volume.is_for(claim) {
            return Some(volume).filter(|volume| fits_node(volume));
        }
        if !only_reserved
            && is_candidate(volume, claim)
            && fits_node(volume)
            && best.is_none_or(|best| rank(volume) < rank(best))
        {
            best = Some(volume);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::testing::*, *};

    fn chosen(claim: &ClaimFacts, volumes: &[VolumeFacts]) -> Option<String> {
        find(claim, volumes.iter(), |_| true, false).map(|volume| volume.name.clone())
    }

    #[test]
    fn the_smallest_matching_volume_is_chosen() {
        let volumes = [
            volume("large", json!({"capacity": {"storage": "5Gi"}})),
            volume("fit", json!({"capacity": {"storage": "2Gi"}})),
            volume("small", json!({"capacity": {"storage": "500Mi"}})),
        ];
        assert_eq!(chosen(&claim(json!({})), &volumes), Some("fit".into()));
        let huge = json!({"resources": {"requests": {"storage": "1Ti"}}});
        assert_eq!(chosen(&claim(huge), &volumes), None);
    }

    #[test]
    fn each_requirement_excludes_volumes() {
        let other = [
            json!({"storageClassName": "fast"}),
            json!({"accessModes": ["ReadOnlyMany"]}),
            json!({"volumeMode": "Block"}),
            json!({"claimRef": {"namespace": "default", "name": "other"}}),
            json!({"volumeAttributesClassName": "gold"}),
        ];
        for spec in other {
            let text = spec.to_string();
            assert_eq!(
                chosen(&claim(json!({})), &[volume("v", spec)]),
                None,
                "{text}"
            );
        }
        let mut bound = volume("v", json!({}));
        bound.phase = "Released".into();
        assert_eq!(chosen(&claim(json!({})), &[bound]), None);
        let mut deleting = volume("v", json!({}));
        deleting.deleting = true;
        assert_eq!(chosen(&claim(json!({})), &[deleting]), None);
        let selective = || claim(json!({"selector": {"matchLabels": {"disk": "fast"}}}));
        let mut labelled = volume("v", json!({}));
        assert_eq!(chosen(&selective(), &[labelled.clone()]), None);
        labelled.labels.insert("disk".into(), "fast".into());
        assert_eq!(chosen(&selective(), &[labelled]), Some("v".into()));
    }

    #[test]
    fn fewer_access_modes_come_before_size() {
        let both = json!({"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]});
        let volumes = [
            volume("both", both),
            volume("exact", json!({"capacity": {"storage": "9Gi"}})),
        ];
        assert_eq!(chosen(&claim(json!({})), &volumes), Some("exact".into()));
    }

    #[test]
    fn a_reserved_volume_comes_first_even_without_a_pod() {
        let reserved =
            json!({"claimRef": {"namespace": "default", "name": "c"}, "storageClassName": "x"});
        let volumes = [volume("free", json!({})), volume("reserved", reserved)];
        let claim = claim(json!({}));
        assert_eq!(chosen(&claim, &volumes), Some("reserved".into()));
        let found = find(&claim, volumes.iter(), |_| true, true);
        assert_eq!(found.map(|volume| &*volume.name), Some("reserved"));
        assert_eq!(find(&claim, volumes[..1].iter(), |_| true, true), None);
        assert_eq!(find(&claim, volumes.iter(), |_| false, false), None);
    }

    #[test]
    fn a_requested_volume_must_satisfy_the_claim() {
        let table = [
            (json!({}), Ok(())),
            (
                json!({"capacity": {"storage": "1Mi"}}),
                Err("requested PV is too small"),
            ),
            (
                json!({"storageClassName": "x"}),
                Err("storageClassName does not match"),
            ),
            (
                json!({"volumeMode": "Block"}),
                Err("incompatible volumeMode"),
            ),
            (
                json!({"accessModes": ["ReadOnlyMany"]}),
                Err("incompatible accessMode"),
            ),
        ];
        for (spec, expected) in table {
            let result = satisfies(&volume("v", spec), &claim(json!({})));
            assert_eq!(result, expected.map_err(str::to_owned));
        }
    }
}
