//! Delivers the data of a run before it is submitted.

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

use longshore_client::Cluster;

use super::{
    LaunchError, PackedRun,
    data::{Found, Place, place},
};
use crate::{
    config::{DATA_LIMIT, DataDelivery},
    data::{
        DataCache, DataError, DataGuard, DataOptions, DataProgress, KeptData, Placed, Snapshot,
        deliver, sign_bucket,
    },
    kept::{Limit, uses},
};

/// Delivered data.
#[derive(Debug, Default)]
#[must_use = "without it, another process may remove the data before the run is submitted"]
pub struct DeliveredData {
    /// For each data set, in order, the number of bytes that were copied, if it is known.
    pub added: Vec<Option<u64>>,
    guard: Option<DataGuard>,
}

impl DeliveredData {
    /// Permits the removal of unused data. Call it when the objects of the run exist, because they
    /// record that the run needs its data.
    pub fn submitted(self) {
        drop(self.guard);
    }
}

impl PackedRun<'_> {
    /// Delivers the data: copies missing contents to the folder of the cluster, or uploads them to
    /// the store. `cluster` is queried for the data in use if the folder is too large.
    ///
    /// # Errors
    /// [`LaunchError::Data`] contains the file or the store, and the failed operation.
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
        if let Place::Cache(cache) = place(self.data_root.as_deref(), self.store.as_ref())
            && !self.data.is_empty()
        {
            let sizes = self.data.iter().map(|data| data.manifest().bytes());
            make_room(&cache, cluster, sizes.fold(0, u64::saturating_add)).await?;
            let guard = tokio::task::spawn_blocking(move || cache.guard()).await;
            delivered.guard = Some(guard.map_err(|_| DataError::Stopped)??);
        }
        let mut deliveries = Vec::new();
        for data in &self.data {
            let (delivery, bytes) = match (
                place(self.data_root.as_deref(), self.store.as_ref()),
                &data.found,
            ) {
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
) -> Result<Placed, DataError> {
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
        let found = rustix::fs::statvfs(folder).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    });
    Limit::on_disk(DATA_LIMIT, disk.unwrap_or(u64::MAX), used).bytes
}
