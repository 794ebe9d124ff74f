//! Removes the logs of deleted pods when their owner is removed.

use std::{collections::HashSet, sync::Arc, time::Duration};

use longshore_client::{
    Cluster, Error, WatchEvent,
    kinds::{self, Any},
};
use longshore_model::{ObjectMeta, meta::OwnerReference};
use tokio::time::MissedTickBehavior;

use super::Index;

/// The delay after an error.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// The interval at which owners that are not watched, the disk space, and records that could not be
/// written are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The time to wait for further deleted pods, which are then checked together, because a Job
/// deletes all its pods at the same time.
const COLLECT_TIME: Duration = Duration::from_millis(50);

/// Removes the logs of deleted pods whose owner no longer exists, until the cluster ends. The logs
/// remain as long as the cluster does not answer.
pub(crate) async fn keep(cluster: Cluster, index: Arc<Index>) {
    let keeper = Keeper { cluster, index };
    while !keeper.cluster.is_closed() {
        if let Err(error) = keeper.watch_jobs().await {
            tracing::debug!(%error, "cannot watch the owners of kept logs; trying again");
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

struct Keeper {
    cluster: Cluster,
    index: Arc<Index>,
}

/// Returns true if the owner is a Job, whose removal is watched.
fn is_job(owner: &OwnerReference) -> bool {
    owner.kind == "Job" && owner.api_version.starts_with("batch/")
}

impl Keeper {
    /// Watches Jobs until the watch fails.
    async fn watch_jobs(&self) -> Result<(), Error> {
        // Done before the list, so that owners that are missing in the list were removed.
        let owners = self.work(|kept| kept.owners(false)).await;
        let jobs = self.cluster.jobs().list().await?;
        let uids: HashSet<String> = jobs.items.iter().map(|job| job.uid().to_owned()).collect();
        self.compare(&owners, &uids).await;
        let mut watch = self.cluster.jobs().watch_since(&jobs.version).await?;
        drop(jobs);
        // The first tick is immediate.
        let mut ticks = tokio::time::interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = watch.next(None) => match event? {
                    WatchEvent::Deleted(job) => self.removed(job.uid().to_owned()).await,
                    WatchEvent::Resync(_) => return Ok(()),
                    WatchEvent::Added(_) | WatchEvent::Modified(_) => {}
                },
                () = self.index.changed() => {
                    tokio::time::sleep(COLLECT_TIME).await;
                    self.check(true).await?;
                }
                _ = ticks.tick() => self.check(false).await?,
            }
        }
    }

    /// Removes the logs of Jobs that are not in a list.
    async fn compare(&self, owners: &[(String, OwnerReference)], uids: &HashSet<String>) {
        let gone = owners.iter().map(|(_, owner)| owner);
        for owner in gone.filter(|owner| is_job(owner) && !uids.contains(&owner.uid)) {
            self.removed(owner.uid.clone()).await;
        }
    }

    /// Checks the owners of deleted pods. If `new` is true, checks only the owners of pods that
    /// were deleted since the last check, otherwise also the owners that are not watched.
    async fn check(&self, new: bool) -> Result<(), Error> {
        self.resolve_owners().await?;
        let mut owners = self.work(|kept| kept.owners(true)).await;
        if !new {
            let all = self.work(|kept| kept.owners(false)).await;
            owners.extend(all.into_iter().filter(|(_, owner)| !is_job(owner)));
        }
        for (namespace, owner) in owners {
            let uid = owner.uid.clone();
            match self.find(&namespace, &owner).await? {
                Some(_) => self.work(move |kept| kept.owner_exists(&uid)).await,
                None => self.removed(uid).await,
            }
        }
        self.work(|kept| {
            kept.write_again();
            kept.enforce_limits();
        })
        .await;
        Ok(())
    }

    /// Finds the controllers of the Jobs of new pods. A JobSet removes its Jobs and creates them
    /// again when it restarts. The Jobs of a CronJob are separate runs.
    async fn resolve_owners(&self) -> Result<(), Error> {
        for (namespace, job) in self.work(Index::unresolved).await {
            let found = self.find(&namespace, &job).await?;
            let owner = found.and_then(|found| found.controller().cloned());
            let owner = owner.filter(|owner| owner.kind != "CronJob");
            self.work(move |kept| kept.resolve(&job.uid, owner.as_ref()))
                .await;
        }
        Ok(())
    }

    /// Returns the metadata of an owner, or `None` if it was removed.
    async fn find(
        &self,
        namespace: &str,
        owner: &OwnerReference,
    ) -> Result<Option<ObjectMeta>, Error> {
        let found = if is_job(owner) {
            let jobs = self.cluster.view::<kinds::Job>().in_namespace(namespace)?;
            jobs.find(&owner.name).await?.map(|job| job.meta().clone())
        } else {
            let (version, kind) = (&owner.api_version, &owner.kind);
            let view = match self.cluster.kind_in(version, kind).await {
                Ok(view) => view.in_namespace(namespace)?,
                // The kind was removed with its objects.
                Err(Error::Invalid(_)) => return Ok(None),
                Err(error) => return Err(error),
            };
            let found = longshore_client::View::<Any>::find(&view, &owner.name).await?;
            found.map(|found| found.meta().clone())
        };
        Ok(found.filter(|found| found.uid == owner.uid))
    }

    async fn removed(&self, owner: String) {
        self.work(move |kept| kept.owner_removed(&owner)).await;
    }

    /// Calls a function of the index, which may block, on a separate thread.
    async fn work<T: Default + Send + 'static>(
        &self,
        work: impl FnOnce(&Index) -> T + Send + 'static,
    ) -> T {
        let index = Arc::clone(&self.index);
        match tokio::task::spawn_blocking(move || work(&index)).await {
            Ok(done) => done,
            Err(error) => {
                tracing::error!(%error, "the work on kept logs failed");
                T::default()
            }
        }
    }
}
