//! The objects of a run that a follower watches.

use longshore_client::{Changes, Cluster, kinds};

use tokio::sync::mpsc;

use super::{Error, Follow, FollowOptions, QUEUE, event_loop::EventLoop, outage};
use crate::run::Run;

/// The watched pods and Jobs of a run. If they are watched before the run is created, its follower
/// misses none of them, even if a JobSet that restarts deletes them within milliseconds.
#[derive(Debug)]
pub struct Watched {
    cluster: Cluster,
    run: Run,
    pods: Changes<kinds::Pod>,
    jobs: Changes<kinds::Job>,
}

impl Watched {
    /// Lists and watches the pods and Jobs of a run, which does not have to exist yet. Waits up to
    /// a minute for a server that cannot be reached.
    ///
    /// # Errors
    /// The run's pods or Jobs cannot be listed.
    pub async fn open(cluster: &Cluster, run: &Run) -> Result<Self, Error> {
        let (pods, jobs) = (run.pods(cluster)?, run.jobs(cluster)?);
        let caches = || async { futures::try_join!(pods.cache(), jobs.cache()) };
        let (pods, jobs) = outage::retry(caches).await?;
        Ok(Self {
            cluster: cluster.clone(),
            run: run.clone(),
            pods: pods.subscribe(),
            jobs: jobs.subscribe(),
        })
    }

    /// Follows the run.
    ///
    /// # Errors
    /// The name of the run's namespace is invalid.
    pub fn follow(self, options: &FollowOptions) -> Result<Follow, Error> {
        let (sender, events) = mpsc::channel(QUEUE);
        let event_loop = EventLoop::new(&self.cluster, &self.run, options, sender)?;
        let liveness = event_loop.liveness();
        let worker = tokio::spawn(event_loop.run(self.pods, self.jobs));
        Ok(Follow {
            events,
            liveness,
            worker,
        })
    }
}
