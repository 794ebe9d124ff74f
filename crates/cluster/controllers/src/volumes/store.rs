//! The observed claims, volumes and classes, and responses of the server that the
//! watch has not reported yet. Pure.

use std::collections::{BTreeMap, HashMap};

use super::{
    facts::{ClaimFacts, ClassFacts, VolumeFacts},
    matching,
    names::NO_PROVISIONER,
};
use crate::key::Key;

/// The observed claims, volumes and classes.
#[derive(Debug, Default)]
pub(crate) struct Store {
    claims: HashMap<Key, ClaimFacts>,
    volumes: BTreeMap<String, VolumeFacts>,
    classes: BTreeMap<String, ClassFacts>,
}

fn is_older(new: &str, known: &str) -> bool {
    let version = |text: &str| text.parse::<u64>().ok();
    version(new)
        .zip(version(known))
        .is_some_and(|(new, known)| new < known)
}

impl Store {
    /// Stores a claim. An older version is ignored.
    pub(crate) fn put_claim(&mut self, claim: ClaimFacts) {
        let known = self.claims.get(&claim.key);
        if !known.is_some_and(|known| is_older(&claim.version, &known.version)) {
            self.claims.insert(claim.key.clone(), claim);
        }
    }

    /// Stores a claim from a response. It is ignored if the claim has been deleted
    /// in the meantime.
    pub(crate) fn put_claim_response(&mut self, claim: ClaimFacts) {
        let known = self.claims.get(&claim.key);
        if known.is_some_and(|known| known.uid == claim.uid) {
            self.put_claim(claim);
        }
    }

    /// Removes a claim.
    pub(crate) fn remove_claim(&mut self, key: &Key, uid: &str) {
        if self.claims.get(key).is_some_and(|known| known.uid == uid) {
            self.claims.remove(key);
        }
    }

    /// Stores a volume. An older version is ignored.
    pub(crate) fn put_volume(&mut self, volume: VolumeFacts) {
        let known = self.volumes.get(&volume.name);
        if !known.is_some_and(|known| is_older(&volume.version, &known.version)) {
            self.volumes.insert(volume.name.clone(), volume);
        }
    }

    /// Stores a volume from a response. It is ignored if the volume has been
    /// deleted in the meantime.
    pub(crate) fn put_volume_response(&mut self, volume: VolumeFacts) {
        let known = self.volumes.get(&volume.name);
        if known.is_some_and(|known| known.uid == volume.uid) {
            self.put_volume(volume);
        }
    }

    /// Removes a volume.
    pub(crate) fn remove_volume(&mut self, name: &str, uid: &str) {
        if self.volumes.get(name).is_some_and(|known| known.uid == uid) {
            self.volumes.remove(name);
        }
    }

    /// Stores a class. Returns true if the class has changed.
    pub(crate) fn put_class(&mut self, class: ClassFacts) -> bool {
        let is_new = self.classes.get(&class.name) != Some(&class);
        self.classes.insert(class.name.clone(), class);
        is_new
    }

    /// Removes a class.
    pub(crate) fn remove_class(&mut self, name: &str) {
        self.classes.remove(name);
    }

    /// Returns a claim.
    pub(crate) fn claim(&self, key: &Key) -> Option<&ClaimFacts> {
        self.claims.get(key)
    }

    /// Returns a volume.
    pub(crate) fn volume(&self, name: &str) -> Option<&VolumeFacts> {
        self.volumes.get(name)
    }

    /// Returns a class.
    pub(crate) fn class(&self, name: &str) -> Option<&ClassFacts> {
        self.classes.get(name)
    }

    /// Returns all volumes.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = &VolumeFacts> {
        self.volumes.values()
    }

    /// Returns the sorted keys of the claims that are not bound.
    pub(crate) fn unbound_claims(&self) -> Vec<Key> {
        let claims = self.claims.values();
        let unbound = claims.filter(|claim| !claim.is_bind_completed());
        let mut keys: Vec<Key> = unbound.map(|claim| claim.key.clone()).collect();
        keys.sort();
        keys
    }

    /// Returns the names of the volumes that are bound to a claim or reserved for it.
    pub(crate) fn volumes_of(&self, claim: &Key) -> Vec<String> {
        let volumes = self.volumes.values();
        let theirs = volumes.filter(|volume| {
            let reference = volume.claim.as_ref();
            reference.is_some_and(|reference| reference.key == *claim)
        });
        theirs.map(|volume| volume.name.clone()).collect()
    }

    /// Returns the default class, which is the newest one if there are several. Classes of the same
    /// second are ordered by name.
    pub(crate) fn default_class(&self) -> Option<&ClassFacts> {
        let classes = self.classes.values().rev();
        classes
            .filter(|class| class.default_since.is_some())
            .max_by_key(|class| class.default_since)
    }

    /// Returns true if the volume of a claim is chosen when a pod is scheduled.
    pub(crate) fn waits_for_pod(&self, claim: &ClaimFacts) -> bool {
        self.class(claim.class())
            .is_some_and(|class| class.waits_for_pod)
    }

    /// Returns true if a class can provision volumes.
    pub(crate) fn can_provision(&self, class: &str) -> bool {
        self.class(class).is_some_and(|class| {
            !class.provisioner.is_empty() && class.provisioner != NO_PROVISIONER
        })
    }

    /// Returns the volume that the binding controller chooses for a claim.
    pub(crate) fn best_volume(&self, claim: &ClaimFacts) -> Option<&VolumeFacts> {
        let only_reserved = self.waits_for_pod(claim) && claim.selected_node().is_none();
        matching::find(claim, self.volumes(), |_| true, only_reserved)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::testing::*, *};

    #[test]
    fn the_newest_default_class_wins() {
        let default = |name: &str, created: &str| {
            let meta = json!({"name": name, "creationTimestamp": created, "annotations":
                {"storageclass.kubernetes.io/is-default-class": "true"}});
            class(name, json!({"metadata": meta}))
        };
        let mut store = Store::default();
        assert!(store.default_class().is_none());
        store.put_class(class("plain", json!({})));
        assert!(store.default_class().is_none());
        store.put_class(default("old", "2026-01-01T00:00:00Z"));
        store.put_class(default("z", "2026-01-02T00:00:00Z"));
        store.put_class(default("new", "2026-01-02T00:00:00Z"));
        assert_eq!(store.default_class().map(|class| &*class.name), Some("new"));
    }

    #[test]
    fn older_versions_and_responses_about_deleted_objects_are_ignored() {
        let mut store = Store::default();
        let old = claim(json!({}));
        let mut new = old.clone();
        new.version = "7".into();
        new.volume = "v".into();
        store.put_claim_response(new.clone());
        assert_eq!(store.claim(&old.key), None);
        store.put_claim(new.clone());
        store.put_claim(old.clone());
        assert_eq!(store.claim(&old.key), Some(&new));
        store.remove_claim(&old.key, "another uid");
        assert!(store.claim(&old.key).is_some());
        store.remove_claim(&old.key, "c1");
        assert!(store.claim(&old.key).is_none());
    }
}
