//! Decides what to do with a claim or a volume. Pure.

use super::super::{
    facts::{ClaimFacts, VolumeFacts},
    matching::satisfies,
    names::PROVISIONED_BY,
    store::Store,
};
use crate::events::Severity::{self, Normal, Warning};

/// An event to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) severity: Severity,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Note {
    pub(crate) fn new(
        severity: Severity,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            reason,
            message: message.into(),
        }
    }
}

/// An action for a claim.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ClaimAction {
    /// Set the default class.
    SetClass(String),
    /// Bind the claim to the volume, or complete the binding.
    Bind(String),
    /// Leave the claim unbound, and record the reason.
    Wait(Option<Note>),
    /// Request a volume from the provisioner.
    Provision(String),
    /// Mark the claim as lost, because its volume is gone.
    Lose(Note),
}

/// An action for a volume.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum VolumeAction {
    /// Set the phase.
    Phase(&'static str),
    /// Reconcile the volume's claim, which completes the binding.
    Claim,
    /// The volume mode differs from the claim's volume mode.
    ModeMismatch,
    /// Mark the volume as released and apply the reclaim policy.
    Reclaim,
    /// Release the volume's claim, which is bound to another volume.
    Unbind,
}

/// The action that the reclaim policy requires for a released volume.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reclaim {
    /// Keep the volume, or leave its deletion to the provisioner.
    Keep,
    /// Mark the volume as failed, because it cannot be reclaimed.
    Fail(Note),
}

/// Decides what to do with a claim.
pub(crate) fn claim_action(claim: &ClaimFacts, store: &Store) -> ClaimAction {
    match claim.is_bind_completed() {
        true => bound_claim(claim, store),
        false if claim.volume.is_empty() => unbound_claim(claim, store),
        false => requesting_claim(claim, store),
    }
}

fn unbound_claim(claim: &ClaimFacts, store: &Store) -> ClaimAction {
    if let Some(volume) = store.best_volume(claim) {
        return ClaimAction::Bind(volume.name.clone());
    }
    if claim.named_class.is_none()
        && let Some(class) = store.default_class()
    {
        return ClaimAction::SetClass(class.name.clone());
    }
    if store.waits_for_pod(claim) && claim.selected_node().is_none() {
        return ClaimAction::Wait(Some(Note::new(
            Normal,
            "WaitForFirstConsumer",
            "waiting for first consumer to be created before binding",
        )));
    }
    let name = claim.class();
    if name.is_empty() {
        return ClaimAction::Wait(Some(Note::new(
            Normal,
            "FailedBinding",
            "no persistent volumes available for this claim and no storage class is set",
        )));
    }
    let failed = |message: String| Some(Note::new(Warning, "ProvisioningFailed", message));
    match store.class(name) {
        None => ClaimAction::Wait(failed(format!(
            "storageclass.storage.k8s.io {name:?} not found"
        ))),
        Some(class) if class.provisioner.starts_with("kubernetes.io/") => {
            ClaimAction::Wait(failed(format!(
                "no volume plugin matched name: {}",
                class.provisioner
            )))
        }
        Some(class) => ClaimAction::Provision(class.provisioner.clone()),
    }
}

/// Decides what to do with a claim that names its volume.
fn requesting_claim(claim: &ClaimFacts, store: &Store) -> ClaimAction {
    let Some(volume) = store.volume(&claim.volume) else {
        return ClaimAction::Wait(None);
    };
    if volume.claim.is_some() {
        if volume.is_for(claim) {
            return ClaimAction::Bind(volume.name.clone());
        }
        let message = format!(
            "volume {:?} already bound to a different claim.",
            volume.name
        );
        return ClaimAction::Wait(Some(Note::new(Warning, "FailedBinding", message)));
    }
    match satisfies(volume, claim) {
        Ok(()) => ClaimAction::Bind(volume.name.clone()),
        Err(problem) => {
            let message = format!(
                "Cannot bind to requested volume {:?}: {problem}",
                volume.name
            );
            ClaimAction::Wait(Some(Note::new(Warning, "VolumeMismatch", message)))
        }
    }
}

fn bound_claim(claim: &ClaimFacts, store: &Store) -> ClaimAction {
    let lost = |reason, message: &str| ClaimAction::Lose(Note::new(Warning, reason, message));
    if claim.volume.is_empty() {
        return lost(
            "ClaimLost",
            "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
        );
    }
    let Some(volume) = store.volume(&claim.volume) else {
        return lost(
            "ClaimLost",
            "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
        );
    };
    match &volume.claim {
        None => ClaimAction::Bind(volume.name.clone()),
        Some(reference) if reference.uid == claim.uid => ClaimAction::Bind(volume.name.clone()),
        Some(_) => lost(
            "ClaimMisbound",
            "Two claims are bound to the same volume, this one is bound incorrectly",
        ),
    }
}

/// Decides what to do with a volume. `claim` is the claim that the volume refers to, if the claim
/// exists.
pub(crate) fn volume_action(volume: &VolumeFacts, claim: Option<&ClaimFacts>) -> VolumeAction {
    let Some(reference) = &volume.claim else {
        return VolumeAction::Phase("Available");
    };
    if reference.uid.is_empty() {
        return VolumeAction::Phase("Available");
    }
    let Some(claim) = claim.filter(|claim| claim.uid == reference.uid) else {
        return VolumeAction::Reclaim;
    };
    if claim.volume.is_empty() {
        return match claim.volume_mode == volume.volume_mode {
            true => VolumeAction::Claim,
            false => VolumeAction::ModeMismatch,
        };
    }
    if claim.volume == volume.name {
        return VolumeAction::Phase("Bound");
    }
    let is_provisioned = volume.annotations.contains_key(PROVISIONED_BY);
    match is_provisioned && volume.reclaim_policy == "Delete" {
        true => VolumeAction::Reclaim,
        false => VolumeAction::Unbind,
    }
}

/// Decides how a released volume is reclaimed. Provisioners delete their own volumes.
pub(crate) fn reclaim(volume: &VolumeFacts) -> Reclaim {
    let failed = |reason, message: String| Reclaim::Fail(Note::new(Warning, reason, message));
    match volume.reclaim_policy.as_str() {
        "Retain" => Reclaim::Keep,
        "Recycle" => failed(
            "VolumeFailedRecycle",
            "No recycler plugin found for the volume!".to_owned(),
        ),
        "Delete" => {
            let provisioner = volume.annotations.get(PROVISIONED_BY);
            if volume.is_csi || provisioner.is_some_and(|name| !name.starts_with("kubernetes.io/"))
            {
                return Reclaim::Keep;
            }
            failed(
                "VolumeFailedDelete",
                format!(
                    "error getting deleter volume plugin for volume {:?}: no deletable volume plugin matched",
                    volume.name
                ),
            )
        }
        _ => failed(
            "VolumeUnknownReclaimPolicy",
            "Volume has unrecognized PersistentVolumeReclaimPolicy".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::super::{names::*, testing::*},
        *,
    };

    fn store(volumes: Vec<VolumeFacts>) -> Store {
        let mut store = Store::default();
        volumes
            .into_iter()
            .for_each(|volume| store.put_volume(volume));
        store.put_class(class("now", json!({})));
        let late = json!({"volumeBindingMode": "WaitForFirstConsumer"});
        store.put_class(class("late", late));
        let none = json!({"provisioner": NO_PROVISIONER});
        store.put_class(class("none", none));
        store
    }

    fn reason(action: ClaimAction) -> &'static str {
        match action {
            ClaimAction::Wait(Some(note)) | ClaimAction::Lose(note) => note.reason,
            ClaimAction::Wait(None) => "silent",
            ClaimAction::Bind(_) => "bind",
            ClaimAction::Provision(_) => "provision",
            ClaimAction::SetClass(_) => "class",
        }
    }

    fn of_class(class: &str) -> ClaimFacts {
        claim(json!({"storageClassName": class}))
    }

    #[test]
    fn unbound_claims_wait_or_are_provisioned_by_their_class() {
        let store = store(vec![]);
        let table = [
            ("", "FailedBinding"),
            ("now", "provision"),
            ("late", "WaitForFirstConsumer"),
            ("none", "ProvisioningFailed"),
            ("missing", "ProvisioningFailed"),
        ];
        for (class, expected) in table {
            assert_eq!(
                reason(claim_action(&of_class(class), &store)),
                expected,
                "{class}"
            );
        }
        let mut selected = of_class("late");
        selected
            .annotations
            .insert(SELECTED_NODE.into(), "n".into());
        assert_eq!(
            claim_action(&selected, &store),
            ClaimAction::Provision("p".into())
        );
    }

    #[test]
    fn a_claim_without_a_class_gets_the_default_later() {
        let mut store = store(vec![]);
        let mut claim = claim(json!({}));
        claim.named_class = None;
        assert_eq!(reason(claim_action(&claim, &store)), "FailedBinding");
        let meta = json!({"name": "std", "annotations": {DEFAULT_CLASS[0]: "true"}});
        store.put_class(class("std", json!({"metadata": meta})));
        assert_eq!(
            claim_action(&claim, &store),
            ClaimAction::SetClass("std".into())
        );
    }

    #[test]
    fn existing_volumes_come_before_new_ones() {
        let volume = volume("v", json!({"storageClassName": "now"}));
        let store = store(vec![volume]);
        assert_eq!(
            claim_action(&of_class("now"), &store),
            ClaimAction::Bind("v".into())
        );
    }

    #[test]
    fn a_requested_volume_is_bound_or_refused() {
        let request = || claim(json!({"volumeName": "v"}));
        let action = |volume| claim_action(&request(), &store(vec![volume]));
        assert_eq!(reason(claim_action(&request(), &store(vec![]))), "silent");
        assert_eq!(reason(action(volume("v", json!({})))), "bind");
        let reference = |name: &str| json!({"claimRef": {"namespace": "default", "name": name}});
        assert_eq!(reason(action(volume("v", reference("c")))), "bind");
        assert_eq!(
            reason(action(volume("v", reference("other")))),
            "FailedBinding"
        );
        let small = json!({"capacity": {"storage": "1"}});
        assert_eq!(
            action(volume("v", small)),
            ClaimAction::Wait(Some(Note::new(
                Warning,
                "VolumeMismatch",
                "Cannot bind to requested volume \"v\": requested PV is too small"
            )))
        );
    }

    #[test]
    fn a_bound_claim_keeps_its_volume_or_is_lost() {
        let bound = |name: &str| {
            let mut claim = claim(json!({"volumeName": name}));
            claim
                .annotations
                .insert(BIND_COMPLETED.into(), "yes".into());
            claim
        };
        let of = |uid: &str| {
            volume(
                "v",
                json!({"claimRef": {"namespace": "default", "name": "c", "uid": uid}}),
            )
        };
        assert_eq!(
            reason(claim_action(&bound("v"), &store(vec![of("c1")]))),
            "bind"
        );
        assert_eq!(
            reason(claim_action(&bound("v"), &store(vec![of("c2")]))),
            "ClaimMisbound"
        );
        assert_eq!(
            reason(claim_action(&bound("v"), &store(vec![]))),
            "ClaimLost"
        );
        assert_eq!(
            reason(claim_action(&bound(""), &store(vec![]))),
            "ClaimLost"
        );
    }

    fn with_claim(more: Value) -> VolumeFacts {
        let mut spec = json!({"claimRef": {"namespace": "default", "name": "c", "uid": "c1"}});
        spec.as_object_mut()
            .into_iter()
            .zip(more.as_object())
            .for_each(|(spec, more)| spec.extend(more.clone()));
        volume("v", spec)
    }

    #[test]
    fn volumes_follow_their_claims() {
        let of = |name: &str| claim(json!({"volumeName": name}));
        let action = |volume: &VolumeFacts, claim: &ClaimFacts| volume_action(volume, Some(claim));
        let free = volume("v", json!({}));
        assert_eq!(volume_action(&free, None), VolumeAction::Phase("Available"));
        let reserved = volume(
            "v",
            json!({"claimRef": {"namespace": "default", "name": "c"}}),
        );
        assert_eq!(
            volume_action(&reserved, None),
            VolumeAction::Phase("Available")
        );
        let bound = with_claim(json!({}));
        assert_eq!(action(&bound, &of("v")), VolumeAction::Phase("Bound"));
        assert_eq!(action(&bound, &of("")), VolumeAction::Claim);
        let block = with_claim(json!({"volumeMode": "Block"}));
        assert_eq!(action(&block, &of("")), VolumeAction::ModeMismatch);
        assert_eq!(action(&bound, &of("w")), VolumeAction::Unbind);
        let mut made = with_claim(json!({"persistentVolumeReclaimPolicy": "Delete"}));
        made.annotations.insert(PROVISIONED_BY.into(), "p".into());
        assert_eq!(action(&made, &of("w")), VolumeAction::Reclaim);
        assert_eq!(volume_action(&bound, None), VolumeAction::Reclaim);
        let mut recreated = of("v");
        recreated.uid = "c2".into();
        assert_eq!(action(&bound, &recreated), VolumeAction::Reclaim);
    }

    #[test]
    fn the_reclaim_policy_decides_about_released_volumes() {
        let of = |policy: &str| with_claim(json!({"persistentVolumeReclaimPolicy": policy}));
        assert_eq!(reclaim(&of("Retain")), Reclaim::Keep);
        for (policy, expected) in [
            ("Recycle", "VolumeFailedRecycle"),
            ("Delete", "VolumeFailedDelete"),
        ] {
            assert!(matches!(reclaim(&of(policy)), Reclaim::Fail(note) if note.reason == expected));
        }
        let mut made = of("Delete");
        made.annotations.insert(PROVISIONED_BY.into(), "p".into());
        assert_eq!(reclaim(&made), Reclaim::Keep);
    }
}
