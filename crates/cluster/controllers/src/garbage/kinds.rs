//! The kinds that the garbage collector knows: built-in kinds, custom kinds, and kinds of
//! aggregated API servers.

use std::{collections::HashMap, sync::Arc};

use longshore_client::OwnerReference;
use longshore_model::{Gvk, KindInfo, kind::BUILTIN};

/// A known kind.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) kind: Arc<KindInfo>,
    /// True if an aggregated API server serves the kind.
    pub(super) is_aggregated: bool,
}

/// Kinds by group and name. A custom kind remains after its definition is deleted, because
/// its dependents must still be found and deleted.
#[derive(Debug)]
pub(super) struct Kinds {
    known: HashMap<(String, String), Known>,
}

impl Kinds {
    pub(super) fn builtin() -> Self {
        let mut kinds = Self {
            known: HashMap::new(),
        };
        for kind in BUILTIN.iter().filter(|kind| kind.gvk.kind != "Event") {
            kinds.add(&Arc::new(kind.clone()), false);
        }
        kinds
    }

    pub(super) fn add(&mut self, kind: &Arc<KindInfo>, is_aggregated: bool) {
        let known = Known {
            kind: kind.clone(),
            is_aggregated,
        };
        self.known.insert(key(&kind.gvk), known);
    }

    /// Removes a kind whose API server is no longer aggregated, so that the existence of its
    /// objects is unknown.
    pub(super) fn remove(&mut self, kind: &Arc<KindInfo>) {
        let key = key(&kind.gvk);
        let is_same = |known: &Known| Arc::ptr_eq(&known.kind, kind);
        if self.known.get(&key).is_some_and(is_same) {
            self.known.remove(&key);
        }
    }

    pub(super) fn find(&self, owner: &OwnerReference) -> Option<Known> {
        let gvk = Gvk::from_api_version(&owner.api_version, &owner.kind);
        self.known.get(&key(&gvk)).cloned()
    }

    /// Returns the kinds that dependents of an owner can have.
    pub(super) fn of_dependents(&self, owner: &KindInfo) -> Vec<Known> {
        let may = |known: &&Known| known.kind.is_namespaced() || !owner.is_namespaced();
        self.known.values().filter(may).cloned().collect()
    }
}

fn key(gvk: &Gvk) -> (String, String) {
    (gvk.group.to_string(), gvk.kind.to_string())
}

/// Returns true if an owner is of this kind, in any version.
pub(super) fn is_of(owner: &OwnerReference, kind: &KindInfo) -> bool {
    let gvk = Gvk::from_api_version(&owner.api_version, &owner.kind);
    gvk.group == kind.gvk.group && gvk.kind == kind.gvk.kind
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::kind::builtin;

    use super::*;

    #[test]
    fn a_kind_that_is_no_longer_aggregated_is_unknown() {
        let mut kinds = Kinds::builtin();
        let mut info = builtin("", "ConfigMap").unwrap().clone();
        info.gvk = Gvk::from_api_version("fish.example.com/v1", "Fish");
        let owner = OwnerReference {
            api_version: "fish.example.com/v1beta1".into(),
            kind: "Fish".into(),
            ..OwnerReference::default()
        };
        let (old, new) = (Arc::new(info.clone()), Arc::new(info));
        kinds.add(&old, true);
        assert!(kinds.find(&owner).unwrap().is_aggregated);
        kinds.add(&new, true);
        kinds.remove(&old);
        assert!(kinds.find(&owner).is_some());
        kinds.remove(&new);
        assert!(kinds.find(&owner).is_none());
    }
}
