//! The data of a run: found before the plan is made, and delivered before it is submitted.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use longshore_client::Cluster;

use super::{LaunchError, PackedRun};
use crate::{
    config::{DataDelivery, DataInfo, DataSource, RunSpec, Workload},
    data::{
        BucketData, DataCache, DataError, DataGuard, DataOptions, DataProgress, KeptData, Manifest,
        PodList, ScanOptions, Snapshot, deliver, list_bucket, scan, sign_bucket,
    },
    kept::{Limit, uses},
    store::Store,
};

/// The maximum size of the data that a cluster of this machine keeps: 100 GiB.
pub const DATA_LIMIT: u64 = 100 << 30;

/// The data of a source, at the time of its preparation.
#[derive(Debug, Clone)]
pub struct PreparedData {
    /// The name of its first use.
    pub name: String,
    /// The source.
    pub source: DataSource,
    found: Found,
    /// How the pods get it; set by the delivery.
    delivery: Option<DataDelivery>,
}

#[derive(Debug, Clone)]
enum Found {
    Folder(Arc<Snapshot>),
    Bucket(Arc<BucketData>),
}

impl PreparedData {
    /// The sha256 of its manifest.
    #[must_use]
    pub fn sha256(&self) -> &str {
        match &self.found {
            Found::Folder(snapshot) => &snapshot.sha256,
            Found::Bucket(bucket) => &bucket.sha256,
        }
    }

    /// Its files.
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

/// Delivered data.
#[derive(Debug, Default)]
#[must_use = "without it, another process may remove the data before the run is submitted"]
pub struct DeliveredData {
    /// For the data in their order, the number of bytes that were copied, where that is known.
    pub added: Vec<Option<u64>>,
    guard: Option<DataGuard>,
}

impl DeliveredData {
    /// Permits the removal of the data: the objects of the run exist, and say that it needs it.
    pub fn submitted(self) {
        drop(self.guard);
    }
}

/// Where the pods of a cluster find data.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place<'a> {
    /// In a folder that the nodes have.
    Cache(DataCache),
    /// In a store, from which they download it.
    Store(&'a crate::store::Remote),
    /// There is no store.
    Nowhere,
}

impl RunSpec {
    /// Finds the files of the data of all roles, and their sha256.
    ///
    /// # Errors
    /// [`LaunchError::Data`] names the file or the bucket, and what is wrong.
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
            // A run of the data itself still needs its code.
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

impl PackedRun<'_> {
    fn place(&self) -> Place<'_> {
        match (&self.data_root, &self.store) {
            (Some(root), _) => Place::Cache(DataCache::new(root)),
            (None, Some(Store::Folder(root))) => Place::Cache(DataCache::new(root.join("data"))),
            (None, Some(Store::Remote(remote))) => Place::Store(remote),
            (None, None) => Place::Nowhere,
        }
    }

    /// How the pods get the data: as delivered, or as planned.
    pub(super) fn data_infos(&self) -> Result<Vec<DataInfo>, LaunchError> {
        let infos = self.data.iter().map(|data| {
            let place = self.place();
            let is_fetched = !matches!(place, Place::Cache(_));
            if is_fetched && matches!(self.spec.workload, Workload::Scheduled(_)) {
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

    /// Delivers the data: copies missing contents to the folder of the cluster, or uploads them
    /// to the store. `cluster` is asked for the data in use if the folder is too large.
    ///
    /// # Errors
    /// [`LaunchError::Data`] names the file or the store, and what failed.
    pub async fn deliver_data(
        &mut self,
        cluster: &Cluster,
        options: &DataOptions,
        stop: &Arc<AtomicBool>,
    ) -> Result<DeliveredData, LaunchError> {
        let options = DataOptions {
            validity: self.spec.url_validity(),
            ..options.clone()
        };
        let mut delivered = DeliveredData::default();
        if let Place::Cache(cache) = self.place()
            && !self.data.is_empty()
        {
            let sizes = self.data.iter().map(|data| data.manifest().bytes());
            make_room(&cache, cluster, sizes.fold(0, u64::saturating_add)).await?;
            let guard = tokio::task::spawn_blocking(move || cache.guard()).await;
            delivered.guard = Some(guard.map_err(|_| DataError::Stopped)??);
        }
        let mut deliveries = Vec::new();
        for data in &self.data {
            let (delivery, bytes) = match (self.place(), &data.found) {
                (Place::Cache(cache), found) => {
                    let placed = match found {
                        Found::Folder(snapshot) => {
                            copy(cache.clone(), Arc::clone(snapshot), &options, stop).await?
                        }
                        Found::Bucket(bucket) => cache.place_bucket(bucket, &options).await?,
                    };
                    (DataDelivery::Folder(placed.path), Some(placed.added))
                }
                (Place::Store(remote), Found::Folder(snapshot)) => {
                    let list = deliver(snapshot, remote, &options).await?;
                    (DataDelivery::Fetched(list), None)
                }
                (Place::Store(remote), Found::Bucket(bucket)) => {
                    let list = sign_bucket(bucket, Some(remote), &options).await?;
                    (DataDelivery::Fetched(list), None)
                }
                (Place::Nowhere, Found::Bucket(bucket)) => {
                    let list = sign_bucket(bucket, None, &options).await?;
                    (DataDelivery::Fetched(list), None)
                }
                (Place::Nowhere, Found::Folder(_)) => {
                    return Err(LaunchError::NoDataStore {
                        name: data.name.clone(),
                    });
                }
            };
            delivered.added.push(bytes);
            deliveries.push(delivery);
        }
        for (data, delivery) in self.data.iter_mut().zip(deliveries) {
            data.delivery = Some(delivery);
        }
        Ok(delivered)
    }
}

async fn copy(
    cache: DataCache,
    snapshot: Arc<Snapshot>,
    options: &DataOptions,
    stop: &Arc<AtomicBool>,
) -> Result<crate::data::Placed, DataError> {
    let progress: Arc<dyn Fn(DataProgress) + Send + Sync> = Arc::clone(&options.progress);
    let stop = Arc::clone(stop);
    let work = move || cache.place_snapshot(&snapshot, progress.as_ref(), &stop);
    let placed = tokio::task::spawn_blocking(work).await;
    placed.map_err(|_| DataError::Stopped)?
}

/// Removes the least recently used data of a cache that would become too large.
async fn make_room(cache: &DataCache, cluster: &Cluster, bytes: u64) -> Result<(), LaunchError> {
    let own = cache.clone();
    let used = tokio::task::spawn_blocking(move || own.bytes()).await;
    let used = used.map_err(|_| DataError::Stopped)?;
    let limit = limit(cache.root(), used).saturating_sub(bytes);
    if used <= limit {
        return Ok(());
    }
    let own = cache.clone();
    let alone = tokio::task::spawn_blocking(move || own.alone()).await;
    let Some(alone) = alone.map_err(|_| DataError::Stopped)?? else {
        return Ok(());
    };
    let uses = uses(cluster).await?;
    let own = cache.clone();
    let work = move || {
        let now = std::time::SystemTime::now();
        let is_used = |data: &KeptData| uses.is_needed(&data.sha256);
        alone.remove(&own.over_limit(limit, now, is_used)?)
    };
    let removed = tokio::task::spawn_blocking(work).await;
    let (removed, freed) = removed.map_err(|_| DataError::Stopped)??;
    if !removed.is_empty() {
        tracing::info!(count = removed.len(), freed, "removed unused data");
    }
    Ok(())
}

fn limit(root: &Path, used: u64) -> u64 {
    let disk = root.ancestors().find_map(|folder: &Path| {
        let found = rustix::fs::statvfs(&PathBuf::from(folder)).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    });
    Limit::on_disk(DATA_LIMIT, disk.unwrap_or(u64::MAX), used).bytes
}
