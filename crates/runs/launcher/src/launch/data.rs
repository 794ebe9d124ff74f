//! The data of a run, which is found before the plan is made.

use std::{path::Path, sync::Arc};

use super::LaunchError;
use crate::{
    config::{DataDelivery, DataInfo, DataSource, RunSpec, Workload},
    data::{
        BucketData, DataCache, DataError, Manifest, PodList, ScanOptions, Snapshot, list_bucket,
        scan,
    },
    store::{Remote, Store},
};

/// The data of a source, at the time of its preparation.
#[derive(Debug, Clone)]
pub struct PreparedData {
    /// The name of the first use of the data.
    pub name: String,
    /// The source.
    pub source: DataSource,
    pub(super) found: Found,
    /// The delivery to the pods, which is set when the data is delivered.
    pub(super) delivery: Option<DataDelivery>,
}

#[derive(Debug, Clone)]
pub(super) enum Found {
    Folder(Arc<Snapshot>),
    Bucket(Arc<BucketData>),
}

impl PreparedData {
    /// The sha256 of the data's manifest.
    #[must_use]
    pub fn sha256(&self) -> &str {
        match &self.found {
            Found::Folder(snapshot) => &snapshot.sha256,
            Found::Bucket(bucket) => &bucket.sha256,
        }
    }

    /// The files of the data.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        match &self.found {
            Found::Folder(snapshot) => &snapshot.manifest,
            Found::Bucket(bucket) => &bucket.manifest,
        }
    }

    /// The number of files that had to be read, and of excluded entries.
    #[must_use]
    pub fn read_and_excluded(&self) -> (u64, u64) {
        match &self.found {
            Found::Folder(snapshot) => (snapshot.read, snapshot.excluded),
            Found::Bucket(_) => (0, 0),
        }
    }
}

/// The location from which the pods of a cluster get data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place<'a> {
    /// A folder that the nodes can read.
    Cache(DataCache),
    /// A store, from which the pods download the data.
    Store(&'a Remote),
    /// Nowhere: the nodes do not share a folder, and the run does not have a store.
    Nowhere,
}

impl RunSpec {
    /// Finds the files of the data of all roles, and their sha256.
    ///
    /// # Errors
    /// [`LaunchError::Data`] contains the file or the bucket, and the problem.
    pub async fn prepare_data(
        &self,
        options: ScanOptions,
        settings: &[(String, String)],
    ) -> Result<Vec<PreparedData>, LaunchError> {
        let mut prepared = Vec::new();
        for data in self.data_sources() {
            let found = match &data.source {
                DataSource::Folder(path) => {
                    let (path, options) = (path.clone(), options.clone());
                    let scanned = tokio::task::spawn_blocking(move || scan(&path, &options)).await;
                    let snapshot = scanned.map_err(|_| DataError::Stopped)??;
                    Found::Folder(Arc::new(snapshot))
                }
                DataSource::Bucket(remote) => {
                    Found::Bucket(Arc::new(list_bucket(remote, settings).await?))
                }
            };
            prepared.push(PreparedData {
                name: data.name.clone(),
                source: data.source.clone(),
                found,
                delivery: None,
            });
        }
        let all = self.roles.iter().flat_map(|role| &role.data);
        for (data, pin) in all.filter_map(|data| Some((data, data.pin.as_ref()?))) {
            let found = prepared.iter().find(|known| known.source == data.source);
            if let Some(found) = found.filter(|found| found.sha256() != pin) {
                return Err(LaunchError::Pinned {
                    name: data.name.clone(),
                    found: found.sha256().to_owned(),
                    pin: pin.clone(),
                });
            }
        }
        Ok(prepared)
    }

    /// Patterns that exclude data from the bundle, if it is below the folder of the code.
    #[must_use]
    pub fn data_below(&self, folder: &Path) -> Vec<String> {
        let Ok(folder) = folder.canonicalize() else {
            return Vec::new();
        };
        let below = self.data_sources().into_iter().filter_map(|data| {
            let DataSource::Folder(path) = &data.source else {
                return None;
            };
            let path = path.canonicalize().ok()?;
            let path = path.strip_prefix(&folder).ok()?.to_str()?;
            // Data that is the folder of the code itself is not excluded, because the run needs its
            // code.
            (!path.is_empty()).then(|| format!("/{}/", literal(path)))
        });
        below.collect()
    }
}

/// A .gitignore pattern that matches only this path.
fn literal(path: &str) -> String {
    let mut pattern = String::new();
    for c in path.chars() {
        if "*?[]\\!# ".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Selects the location from which the pods of a cluster get data.
pub(super) fn place<'a>(root: Option<&Path>, store: Option<&'a Store>) -> Place<'a> {
    match (root, store) {
        (Some(root), _) => Place::Cache(DataCache::new(root)),
        (None, Some(Store::Folder(root))) => Place::Cache(DataCache::new(root.join("data"))),
        (None, Some(Store::Remote(remote))) => Place::Store(remote),
        (None, None) => Place::Nowhere,
    }
}

/// The delivery of the data to the pods, as delivered or as planned.
pub(super) fn infos(
    data: &[PreparedData],
    place: &Place<'_>,
    workload: &Workload,
) -> Result<Vec<DataInfo>, LaunchError> {
    let infos = data.iter().map(|data| {
        let is_fetched = !matches!(place, Place::Cache(_));
        if is_fetched && matches!(workload, Workload::Scheduled(_)) {
            return Err(LaunchError::ScheduledData {
                name: data.name.clone(),
            });
        }
        let planned = match (place, &data.found) {
            (Place::Cache(cache), _) => DataDelivery::Folder(cache.tree(data.sha256())),
            (Place::Nowhere, Found::Folder(_)) => {
                return Err(LaunchError::NoDataStore {
                    name: data.name.clone(),
                });
            }
            _ => DataDelivery::Fetched(PodList::NotSent),
        };
        Ok(DataInfo {
            source: data.source.clone(),
            sha256: data.sha256().to_owned(),
            delivery: data.delivery.clone().unwrap_or(planned),
        })
    });
    infos.collect()
}
