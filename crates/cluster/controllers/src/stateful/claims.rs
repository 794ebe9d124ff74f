//! Decides the owner of a PersistentVolumeClaim by the retention policy. The garbage collector
//! deletes the claim with its owner.

use longshore_client::{Error, Item, kinds::Any};
use longshore_model::meta::OwnerReference;
use serde_json::{Value, json};

use super::{
    facts::StatefulSet,
    identity::{claim_owner, ordinal},
    names::split,
};
use crate::pod_facts::PodFacts;
use crate::workload::{Kind, Workload};

/// The fields of a PersistentVolumeClaim that the controller reads.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ClaimFacts {
    /// Name.
    pub(crate) name: String,
    /// Uid.
    pub(crate) uid: String,
    /// resourceVersion.
    pub(crate) version: String,
    /// True if the claim is being deleted.
    pub(crate) deleting: bool,
    /// The owners of the claim.
    pub(crate) owners: Vec<OwnerReference>,
}

impl ClaimFacts {
    /// Reads a claim.
    ///
    /// # Errors
    /// The metadata has an unexpected type.
    pub(super) fn of(item: &Item<Any>) -> Result<Self, Error> {
        let meta = item.checked_meta()?;
        Ok(Self {
            name: meta.name,
            uid: meta.uid,
            version: meta.resource_version,
            deleting: meta.deletion_timestamp.is_some(),
            owners: meta.owner_references,
        })
    }

    fn is_owned_by(&self, uid: &str) -> bool {
        self.owners.iter().any(|owner| owner.uid == uid)
    }
}

/// A pod of the set, with true in `surplus` if the set no longer has its ordinal. A pod that is not
/// created has no UID.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member<'a> {
    name: &'a str,
    uid: &'a str,
    surplus: bool,
}

impl<'a> Member<'a> {
    pub(super) fn of(set: &StatefulSet, pod: &'a PodFacts) -> Self {
        Self {
            name: &pod.key.name,
            uid: &pod.uid,
            surplus: !ordinal(pod).is_some_and(|ordinal| set.spec.has_ordinal(ordinal)),
        }
    }

    pub(super) fn not_created(name: &'a str) -> Self {
        Self {
            name,
            uid: "",
            surplus: false,
        }
    }

    pub(super) fn ordinal(&self) -> Option<u32> {
        split(self.name).map(|(_, ordinal)| ordinal)
    }

    fn is_named_by(&self, owner: &OwnerReference) -> bool {
        owner.api_version == "v1" && owner.kind == "Pod" && owner.name == self.name
    }
}

fn is_set(set: &StatefulSet, owner: &OwnerReference) -> bool {
    owner.api_version == Kind::API_VERSION
        && owner.kind == StatefulSet::KIND.kind
        && owner.name == set.meta.key.name
}

/// Returns true if a claim belongs to a previous pod of the same name, so that the pod must not be
/// created until the claim is deleted.
pub(super) fn is_stale(set: &StatefulSet, claim: &ClaimFacts, pod: Member<'_>) -> bool {
    set.spec.retention().1 && names_another_pod(claim, pod)
}

fn names_another_pod(claim: &ClaimFacts, pod: Member<'_>) -> bool {
    let mut owners = claim.owners.iter();
    let found = owners.find(|owner| pod.is_named_by(owner));
    found.is_some_and(|owner| owner.uid != pod.uid)
}

fn names_another_set(set: &StatefulSet, claim: &ClaimFacts) -> bool {
    let mut owners = claim.owners.iter();
    let found = owners.find(|owner| is_set(set, owner));
    found.is_some_and(|owner| owner.uid != set.meta.uid)
}

/// Returns true if the policy deletes claims, but another object controls this claim.
pub(super) fn has_other_controller(set: &StatefulSet, claim: &ClaimFacts, pod: Member<'_>) -> bool {
    set.spec.retention() != (false, false)
        && claim.owners.iter().any(|owner| {
            if is_set(set, owner) {
                owner.uid != set.meta.uid
            } else if pod.is_named_by(owner) {
                owner.uid != pod.uid
            } else {
                owner.controller == Some(true)
            }
        })
}

/// Returns true for the set and for the pod if they should own the claims of the pod.
fn wanted_owners(set: &StatefulSet, pod: Member<'_>) -> (bool, bool) {
    let (with_set, with_pod) = set.spec.retention();
    let scaled_down = with_pod && pod.surplus;
    (with_set && !scaled_down, scaled_down)
}

/// Returns true if the owners of a claim are right for the retention policy, or must not be
/// changed.
pub(super) fn is_current(set: &StatefulSet, claim: &ClaimFacts, pod: Member<'_>) -> bool {
    if names_another_set(set, claim) || names_another_pod(claim, pod) {
        return true;
    }
    let owned = (claim.is_owned_by(&set.meta.uid), claim.is_owned_by(pod.uid));
    if has_other_controller(set, claim, pod) {
        return owned == (false, false);
    }
    let plain = claim.owners.iter().any(|owner| {
        (owner.uid == set.meta.uid || owner.uid == pod.uid) && owner.controller != Some(true)
    });
    !plain && owned == wanted_owners(set, pod)
}

/// Returns the owners that a claim should have.
pub(super) fn owners(set: &StatefulSet, claim: &ClaimFacts, pod: Member<'_>) -> Vec<Value> {
    let others = claim.owners.iter();
    let others = others.filter(|owner| !is_set(set, owner) && !pod.is_named_by(owner));
    let mut owners: Vec<Value> = others.map(|owner| json!(owner)).collect();
    if has_other_controller(set, claim, pod) {
        return owners;
    }
    let (with_set, with_pod) = wanted_owners(set, pod);
    if with_set {
        let (name, uid) = (&set.meta.key.name, &set.meta.uid);
        owners.push(claim_owner(StatefulSet::KIND.kind, name, uid));
    }
    if with_pod {
        owners.push(claim_owner("Pod", pod.name, pod.uid));
    }
    owners
}
