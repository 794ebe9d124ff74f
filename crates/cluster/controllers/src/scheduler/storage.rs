//! The claims of pods to schedule: which nodes the claims permit, and which volumes are reserved or
//! provisioned for them. Pure.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::{NodeSelectorTerm, TopologySelectorTerm};

use super::affinity;
use crate::{
    key::Key,
    volumes::{
        PodClaim,
        facts::{ClaimFacts, VolumeFacts},
        matching, not_owned,
        store::Store,
    },
};

/// The reason if a volume can only be used on other nodes.
const AFFINITY_CONFLICT: &str = "node(s) didn't match PersistentVolume's node affinity";
/// The reason if there is neither a volume nor a provisioner for a claim.
const NO_VOLUME: &str = "node(s) didn't find available persistent volumes to bind";
/// The reason if the volume of a claim does not exist.
const VOLUME_GONE: &str =
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
/// The reason if another pod uses a claim that permits only one.
const IN_USE: &str = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod";
/// The access mode of claims that only one pod can use.
const ONE_POD: &str = "ReadWriteOncePod";

/// The observed claims, volumes and classes.
#[derive(Debug, Default)]
pub(super) struct Storage {
    pub(super) store: Store,
    /// Volumes that are being reserved for claims, and for which the watch has not reported the
    /// change yet.
    reserved: HashMap<String, Key>,
}

/// The claims of one pod.
#[derive(Debug, Default)]
pub(super) struct Claims<'a> {
    bound: Vec<&'a ClaimFacts>,
    /// The claims whose volumes are chosen together with the node, from the smallest.
    delayed: Vec<&'a ClaimFacts>,
    /// True if another pod uses a claim that permits only one.
    in_use: bool,
}

/// The resource version and UID of an object to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) uid: String,
    pub(crate) version: String,
}

/// A volume to reserve for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub(crate) volume: String,
    pub(crate) volume_target: Target,
    pub(crate) claim: Key,
    pub(crate) claim_target: Target,
}

/// The volumes to reserve and to provision for a pod on its node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct VolumeRequests {
    pub(crate) reserve: Vec<Reservation>,
    /// The claims for which volumes are provisioned on the node.
    pub(crate) provision: Vec<(Key, Target)>,
}

/// The state of claims that were requested for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// All claims are bound to volumes of the node.
    Bound,
    /// Wait for the volumes.
    Waiting,
    /// A claim or volume was lost, so the node must be chosen again.
    Lost,
}

impl Storage {
    /// Stores a volume. The volume then contains its reservation.
    pub(super) fn put_volume(&mut self, volume: VolumeFacts) {
        self.reserved.remove(&volume.name);
        self.store.put_volume(volume);
    }

    /// Returns the claims of a pod. `is_used` returns true if another pod on a node uses a claim.
    ///
    /// # Errors
    /// Returns the reason why the pod cannot be scheduled on any node.
    pub(super) fn claims(
        &self,
        pod: &Key,
        uid: &str,
        claims: &[PodClaim],
        is_used: impl Fn(&str) -> bool,
    ) -> Result<Claims<'_>, String> {
        let mut found = Claims::default();
        let mut has_unbound = false;
        for used in claims {
            let name = &used.name;
            let claim = self.store.claim(&Key::new(&pod.namespace, name));
            let claim = claim.ok_or_else(|| match used.is_ephemeral {
                true => format!(
                    "waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}"
                ),
                false => format!("persistentvolumeclaim {name:?} not found"),
            })?;
            if claim.phase == "Lost" {
                return Err(format!(
                    "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {:?}",
                    claim.volume
                ));
            }
            if claim.deleting {
                return Err(format!("persistentvolumeclaim {name:?} is being deleted"));
            }
            if used.is_ephemeral && claim.owner.as_deref() != Some(uid) {
                return Err(not_owned(&pod.namespace, name, &pod.name));
            }
            found.in_use |= claim.modes.iter().any(|mode| mode == ONE_POD) && is_used(name);
            if is_bound(claim) {
                found.bound.push(claim);
            } else if claim.volume.is_empty() && self.store.waits_for_pod(claim) {
                found.delayed.push(claim);
            } else {
                has_unbound = true;
            }
        }
        if has_unbound {
            return Err("pod has unbound immediate PersistentVolumeClaims".to_owned());
        }
        found
            .delayed
            .sort_by(|one, other| one.size.total_cmp(&other.size));
        Ok(found)
    }

    /// Returns the reasons why the claims do not permit a node.
    pub(super) fn problems(
        &self,
        claims: &Claims<'_>,
        node: &str,
        labels: &BTreeMap<String, String>,
    ) -> Vec<String> {
        if claims.in_use {
            return vec![IN_USE.to_owned()];
        }
        let mut problems = Vec::new();
        for claim in &claims.bound {
            match self.store.volume(&claim.volume) {
                None => problems.push(VOLUME_GONE.to_owned()),
                Some(volume) if !fits(volume, labels) => {
                    problems.push(AFFINITY_CONFLICT.to_owned());
                }
                Some(_) => {}
            }
        }
        if self.requests(claims, node, labels).is_none() {
            problems.push(NO_VOLUME.to_owned());
        }
        problems.dedup();
        problems
    }

    /// Returns the volumes to reserve and to provision for a pod on a node. Returns `None` if a
    /// claim cannot have a volume on the node.
    pub(super) fn requests(
        &self,
        claims: &Claims<'_>,
        node: &str,
        labels: &BTreeMap<String, String>,
    ) -> Option<VolumeRequests> {
        let mut requests = VolumeRequests::default();
        for claim in &claims.delayed {
            if let Some(selected) = claim.selected_node() {
                if selected != node {
                    return None;
                }
                requests.provision.push((claim.key.clone(), target(claim)));
                continue;
            }
            let is_free = |volume: &&VolumeFacts| {
                let own = self.reserved.get(&volume.name);
                let mut taken = requests.reserve.iter();
                own.is_none_or(|key| *key == claim.key)
                    && !taken.any(|one| one.volume == volume.name)
            };
            let volumes = self.store.volumes().filter(is_free);
            let found = matching::find(claim, volumes, |volume| fits(volume, labels), false);
            if let Some(volume) = found {
                requests.reserve.push(Reservation {
                    volume: volume.name.clone(),
                    volume_target: Target {
                        uid: volume.uid.clone(),
                        version: volume.version.clone(),
                    },
                    claim: claim.key.clone(),
                    claim_target: target(claim),
                });
                continue;
            }
            let class = self.store.class(claim.class())?;
            if !self.store.can_provision(&class.name) || !permits(&class.topologies, labels) {
                return None;
            }
            requests.provision.push((claim.key.clone(), target(claim)));
        }
        Some(requests)
    }

    /// Remembers reservations until the watch reports them.
    pub(super) fn reserve(&mut self, requests: &VolumeRequests) {
        for one in &requests.reserve {
            self.reserved.insert(one.volume.clone(), one.claim.clone());
        }
    }

    /// Undoes reservations that failed.
    pub(super) fn release(&mut self, requests: &VolumeRequests) {
        for one in &requests.reserve {
            self.reserved.remove(&one.volume);
        }
    }

    /// Returns the progress of a pod's claims on its node.
    pub(super) fn progress(
        &self,
        namespace: &str,
        claims: &[PodClaim],
        node: &str,
        labels: &BTreeMap<String, String>,
    ) -> Progress {
        let mut progress = Progress::Bound;
        for used in claims {
            let Some(claim) = self.store.claim(&Key::new(namespace, &used.name)) else {
                return Progress::Lost;
            };
            if is_bound(claim) {
                let volume = self.store.volume(&claim.volume);
                match volume {
                    Some(volume) if fits(volume, labels) => continue,
                    _ => return Progress::Lost,
                }
            }
            let is_reserved = || {
                let mut volumes = self.store.volumes();
                self.reserved.values().any(|key| *key == claim.key)
                    || volumes.any(|volume| volume.is_for(claim))
            };
            let is_requested =
                claim.selected_node() == Some(node) || !claim.volume.is_empty() || is_reserved();
            if claim.deleting || !is_requested {
                return Progress::Lost;
            }
            progress = Progress::Waiting;
        }
        progress
    }
}

impl Claims<'_> {
    /// Returns true if volumes must be requested before the pod can be bound.
    pub(super) fn has_delayed(&self) -> bool {
        !self.delayed.is_empty()
    }
}

/// Returns true if a claim can be mounted. The node waits for the phase, which is set last.
fn is_bound(claim: &ClaimFacts) -> bool {
    !claim.volume.is_empty() && claim.is_bind_completed() && claim.phase == "Bound"
}

fn target(claim: &ClaimFacts) -> Target {
    Target {
        uid: claim.uid.clone(),
        version: claim.version.clone(),
    }
}

/// Returns true if a volume can be used on a node with these labels.
fn fits(volume: &VolumeFacts, labels: &BTreeMap<String, String>) -> bool {
    let meets = |term: &NodeSelectorTerm| affinity::meets(term, "", labels);
    let terms = volume.node_terms.as_ref();
    terms.is_none_or(|terms| terms.iter().any(meets))
}

/// Returns true if a class provisions volumes for a node with these labels.
fn permits(terms: &[TopologySelectorTerm], labels: &BTreeMap<String, String>) -> bool {
    let holds = |term: &TopologySelectorTerm| {
        let requirements = term.match_label_expressions.as_deref().unwrap_or_default();
        let mut requirements = requirements.iter();
        requirements.all(|one| {
            let value = labels.get(&one.key);
            value.is_some_and(|value| one.values.contains(value))
        })
    };
    terms.is_empty() || terms.iter().any(holds)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::volumes::{names::*, testing};

    fn storage(volumes: Vec<VolumeFacts>, claim: ClaimFacts) -> Storage {
        let mut storage = Storage::default();
        let class = |name: &str, provisioner: &str, mode: &str| {
            testing::class(
                name,
                json!({"provisioner": provisioner, "volumeBindingMode": mode}),
            )
        };
        let store = &mut storage.store;
        store.put_class(class("now", "p", "Immediate"));
        store.put_class(class("late", "p", "WaitForFirstConsumer"));
        store.put_class(class("static", NO_PROVISIONER, "WaitForFirstConsumer"));
        store.put_claim(claim);
        volumes
            .into_iter()
            .for_each(|volume| storage.put_volume(volume));
        storage
    }

    fn labels() -> BTreeMap<String, String> {
        [("kubernetes.io/hostname".to_owned(), "n".to_owned())].into()
    }

    fn uses(name: &str, is_ephemeral: bool) -> Vec<PodClaim> {
        vec![PodClaim {
            name: name.into(),
            is_ephemeral,
        }]
    }

    fn refusal(storage: &Storage, used: &[PodClaim]) -> String {
        let claims = storage.claims(&Key::new("default", "p"), "u", used, |_| false);
        claims.err().unwrap_or_default()
    }

    fn on_node(storage: &Storage) -> Result<VolumeRequests, Vec<String>> {
        let used = uses("c", false);
        let claims = storage.claims(&Key::new("default", "p"), "u", &used, |_| false);
        let claims = claims.map_err(|error| vec![error])?;
        let problems = storage.problems(&claims, "n", &labels());
        match storage.requests(&claims, "n", &labels()) {
            Some(requests) if problems.is_empty() => Ok(requests),
            _ => Err(problems),
        }
    }

    fn of_class(name: &str) -> ClaimFacts {
        testing::claim(json!({"storageClassName": name}))
    }

    fn bound(claim: ClaimFacts) -> ClaimFacts {
        let mut claim = claim;
        claim.volume = "v".into();
        claim.phase = "Bound".into();
        claim
            .annotations
            .insert(BIND_COMPLETED.into(), "yes".into());
        claim
    }

    fn on_host(host: &str, more: Value) -> VolumeFacts {
        let mut spec = json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}]}]}}});
        spec.as_object_mut()
            .into_iter()
            .zip(more.as_object())
            .for_each(|(spec, more)| spec.extend(more.clone()));
        testing::volume("v", spec)
    }

    #[test]
    fn claims_can_make_a_pod_unschedulable() {
        let now = storage(vec![], of_class("now"));
        assert_eq!(
            refusal(&now, &uses("c", false)),
            "pod has unbound immediate PersistentVolumeClaims"
        );
        assert_eq!(
            refusal(&now, &uses("d", false)),
            "persistentvolumeclaim \"d\" not found"
        );
        assert_eq!(
            refusal(&now, &uses("p-v", true)),
            "waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-v\""
        );
        assert_eq!(
            refusal(&now, &uses("c", true)),
            "PVC default/c was not created for pod default/p (pod is not owner)"
        );
        let mut deleting = of_class("late");
        deleting.deleting = true;
        assert_eq!(
            refusal(&storage(vec![], deleting), &uses("c", false)),
            "persistentvolumeclaim \"c\" is being deleted"
        );
        let mut lost = bound(of_class("late"));
        lost.phase = "Lost".into();
        assert_eq!(
            refusal(&storage(vec![], lost), &uses("c", false)),
            "persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"v\""
        );
    }

    #[test]
    fn bound_claims_must_fit_the_node() {
        let on = |volumes| on_node(&storage(volumes, bound(of_class("now"))));
        assert_eq!(on(vec![]), Err(vec![VOLUME_GONE.to_owned()]));
        assert_eq!(
            on(vec![on_host("m", json!({}))]),
            Err(vec![AFFINITY_CONFLICT.to_owned()])
        );
        assert_eq!(
            on(vec![on_host("n", json!({}))]),
            Ok(VolumeRequests::default())
        );
    }

    #[test]
    fn delayed_claims_reserve_a_volume_or_have_one_provisioned() {
        let existing = || on_host("n", json!({"storageClassName": "static"}));
        let chosen = on_node(&storage(vec![existing()], of_class("static")));
        let chosen = chosen.map(|requests| requests.reserve[0].volume.clone());
        assert_eq!(chosen, Ok("v".into()));
        let elsewhere = on_host("m", json!({"storageClassName": "static"}));
        assert_eq!(
            on_node(&storage(vec![elsewhere], of_class("static"))),
            Err(vec![NO_VOLUME.to_owned()])
        );
        let provisioned = on_node(&storage(vec![], of_class("late")));
        let provisioned = provisioned.map(|requests| requests.provision[0].0.clone());
        assert_eq!(provisioned, Ok(Key::new("default", "c")));
        let mut selected = of_class("late");
        selected
            .annotations
            .insert(SELECTED_NODE.into(), "m".into());
        assert!(on_node(&storage(vec![], selected)).is_err());
    }

    #[test]
    fn a_volume_is_reserved_once() {
        let existing = on_host("n", json!({"storageClassName": "static"}));
        let mut storage = storage(vec![existing.clone()], of_class("static"));
        let mut requests = on_node(&storage).unwrap_or_default();
        requests.reserve[0].claim = Key::new("default", "other");
        storage.reserve(&requests);
        assert!(on_node(&storage).is_err());
        storage.put_volume(existing);
        assert!(on_node(&storage).is_ok());
    }

    #[test]
    fn only_one_pod_uses_a_claim_for_one_pod() {
        let mut claim = bound(of_class("now"));
        claim.modes = vec![ONE_POD.into()];
        let storage = storage(vec![on_host("n", json!({}))], claim);
        let used = uses("c", false);
        for (is_used, expected) in [(true, vec![IN_USE.to_owned()]), (false, vec![])] {
            let claims = storage.claims(&Key::new("default", "p"), "u", &used, |_| is_used);
            let problems = claims.map(|claims| storage.problems(&claims, "n", &labels()));
            assert_eq!(problems, Ok(expected));
        }
    }

    #[test]
    fn requested_volumes_are_awaited() {
        let progress = |claim, volumes| {
            let storage = storage(volumes, claim);
            storage.progress("default", &uses("c", false), "n", &labels())
        };
        let mut requested = of_class("late");
        assert_eq!(progress(requested.clone(), vec![]), Progress::Lost);
        requested
            .annotations
            .insert(SELECTED_NODE.into(), "n".into());
        assert_eq!(progress(requested.clone(), vec![]), Progress::Waiting);
        let done = bound(requested);
        assert_eq!(
            progress(done.clone(), vec![on_host("n", json!({}))]),
            Progress::Bound
        );
        assert_eq!(
            progress(done, vec![on_host("m", json!({}))]),
            Progress::Lost
        );
        let reserved = on_host(
            "n",
            json!({"claimRef": {"namespace": "default", "name": "c"}}),
        );
        assert_eq!(
            progress(of_class("static"), vec![reserved]),
            Progress::Waiting
        );
    }
}
