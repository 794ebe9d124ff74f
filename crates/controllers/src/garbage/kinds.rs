//! The kinds that the garbage collector knows: the built-in kinds and the custom
//! ones.

use std::{collections::HashMap, sync::Arc};

use longshore_client::OwnerReference;
use longshore_model::{Gvk, KindInfo, kind::BUILTIN};

/// Kinds by group and name. A kind remains after its definition is deleted, because
/// its dependents must still be found and deleted.
#[derive(Debug)]
pub(super) struct Kinds {
    known: HashMap<(String, String), Arc<KindInfo>>,
}

impl Kinds {
    pub(super) fn builtin() -> Self {
        let mut kinds = Self {
            known: HashMap::new(),
        };
        for kind in BUILTIN.iter().filter(|kind| kind.gvk.kind != "Event") {
            kinds.add(&Arc::new(kind.clone()));
        }
        kinds
    }

    pub(super) fn add(&mut self, kind: &Arc<KindInfo>) {
        let key = (kind.gvk.group.to_string(), kind.gvk.kind.to_string());
        self.known.insert(key, kind.clone());
    }

    pub(super) fn find(&self, owner: &OwnerReference) -> Option<Arc<KindInfo>> {
        let gvk = Gvk::from_api_version(&owner.api_version, &owner.kind);
        let key = (gvk.group.to_string(), gvk.kind.to_string());
        self.known.get(&key).cloned()
    }

    /// Returns the kinds that dependents of an owner can have.
    pub(super) fn of_dependents(&self, owner: &KindInfo) -> Vec<Arc<KindInfo>> {
        let may = |kind: &&Arc<KindInfo>| kind.is_namespaced() || !owner.is_namespaced();
        self.known.values().filter(may).cloned().collect()
    }
}

/// Whether an owner is of this kind, in any version.
pub(super) fn is_of(owner: &OwnerReference, kind: &KindInfo) -> bool {
    let gvk = Gvk::from_api_version(&owner.api_version, &owner.kind);
    gvk.group == kind.gvk.group && gvk.kind == kind.gvk.kind
}
