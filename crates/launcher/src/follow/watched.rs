//! The objects of a run that a follower watches.

use longshore_client::{Changes, Cluster, kinds};

use super::{Error, outage};
use crate::run::Run;

/// The pods and Jobs of a run, watched from a time on. If they are watched before the run is
/// created, its follower misses none of them, also if they are deleted within milliseconds, as a
/// JobSet does when it restarts.
#[derive(Debug)]
pub struct Watched {
    pub(super) pods: Changes<kinds::Pod>,
    pub(super) jobs: Changes<kinds::Job>,
}

impl Watched {
    /// Lists and watches the pods and Jobs of a run, which need not exist yet. Waits up to a
    /// minute for a server that cannot be reached.
    ///
    /// # Errors
    /// The run's pods or Jobs cannot be listed.
    pub async fn open(cluster: &Cluster, run: &Run) -> Result<Self, Error> {
        let (pods, jobs) = (run.pods(cluster)?, run.jobs(cluster)?);
        let caches = || async { futures::try_join!(pods.cache(), jobs.cache()) };
        let (pods, jobs) = outage::retry(caches).await?;
        Ok(Self {
            pods: pods.subscribe(),
            jobs: jobs.subscribe(),
        })
    }
}
