//! The snapshots that clients have taken over HTTP.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use longshore_engine::{Engine, Snapshot};
use serde::Serialize;

/// Maximum number of snapshots. They share memory with the cluster, but keep objects that the
/// cluster has deleted.
pub(crate) const MAX_SNAPSHOTS: usize = 100;

/// A snapshot, in the form that clients see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Taken {
    pub(crate) id: String,
    pub(crate) resource_version: String,
}

/// The snapshots by number.
#[derive(Debug, Default)]
pub(crate) struct Snapshots(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    last: u64,
    kept: BTreeMap<u64, (Snapshot, u64)>,
}

impl Snapshots {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a snapshot; `None` if the maximum number is reached.
    pub(crate) fn take(&self, engine: &Engine) -> Option<Taken> {
        let mut table = self.table();
        if table.kept.len() >= MAX_SNAPSHOTS {
            return None;
        }
        table.last = table.last.saturating_add(1);
        let (id, snapshot) = (table.last, engine.snapshot());
        let revision = snapshot.revision();
        table.kept.insert(id, (snapshot, revision));
        Some(taken(id, revision))
    }

    pub(crate) fn list(&self) -> Vec<Taken> {
        let table = self.table();
        let kept = table.kept.iter();
        kept.map(|(id, (_, revision))| taken(*id, *revision))
            .collect()
    }

    pub(crate) fn get(&self, id: &str) -> Option<Snapshot> {
        let table = self.table();
        let (snapshot, _) = table.kept.get(&id.parse().ok()?)?;
        Some(snapshot.clone())
    }

    pub(crate) fn remove(&self, id: &str) -> Option<()> {
        let mut table = self.table();
        table.kept.remove(&id.parse().ok()?).map(drop)
    }
}

fn taken(id: u64, revision: u64) -> Taken {
    Taken {
        id: id.to_string(),
        resource_version: revision.to_string(),
    }
}
