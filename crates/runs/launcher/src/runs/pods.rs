//! The pods of a run, kept up to date by a watch.

use std::time::Duration;

use longshore_client::{Cache, Changes, Cluster, Error, Item, kinds::Pod};

use super::Run;

/// The interval at which the pods are listed if the watch reports nothing, because the cluster may
/// not respond, or may refuse the watch.
const LIVENESS_INTERVAL: Duration = Duration::from_secs(2);
/// The interval at which the pods are listed without permission to watch.
const LIST_INTERVAL: Duration = Duration::from_secs(1);

/// The pods of a run as they change.
#[derive(Debug)]
pub struct WatchedPods {
    cluster: Cluster,
    run: Run,
    /// The watch. `None` without permission.
    watch: Option<(Cache<Pod>, Changes<Pod>)>,
    pods: Vec<Item<Pod>>,
}

impl WatchedPods {
    /// Lists the pods of a run, and watches them.
    ///
    /// # Errors
    /// The cluster returns an error or does not respond.
    pub async fn start(cluster: &Cluster, run: &Run) -> Result<Self, Error> {
        let watch = match run.pods(cluster)?.cache().await {
            Ok(cache) => Some((cache.clone(), cache.subscribe())),
            Err(error) if error.is_forbidden() => None,
            Err(error) => return Err(error),
        };
        let mut watched = Self {
            cluster: cluster.clone(),
            run: run.clone(),
            watch,
            pods: Vec::new(),
        };
        match &watched.watch {
            Some(_) => watched.take_changes(),
            None => watched.list().await?,
        }
        Ok(watched)
    }

    /// The pods at the last change or list.
    #[must_use]
    pub fn current(&self) -> &[Item<Pod>] {
        &self.pods
    }

    /// Waits for a change, at most a few seconds.
    ///
    /// # Errors
    /// The cluster does not respond, or it was closed.
    pub async fn changed(&mut self) -> Result<(), Error> {
        let interval = match self.watch {
            Some(_) => LIVENESS_INTERVAL,
            None => LIST_INTERVAL,
        };
        let change = async {
            match &mut self.watch {
                Some((_, changes)) => changes.next().await,
                None => std::future::pending().await,
            }
        };
        match tokio::time::timeout(interval, change).await {
            Ok(Some(_)) => self.take_changes(),
            Ok(None) | Err(_) => self.list().await?,
        }
        Ok(())
    }

    /// Lists the pods.
    ///
    /// # Errors
    /// The cluster does not respond, or it was closed.
    pub async fn list(&mut self) -> Result<(), Error> {
        self.pods = self.run.list_pods(&self.cluster).await?;
        Ok(())
    }

    /// The number of pods that have not ended.
    #[must_use]
    pub fn active(&self) -> usize {
        let pods = self.pods.iter();
        pods.filter(|pod| !has_ended(pod)).count()
    }

    /// The longest time that a pod which has not ended may take to end.
    #[must_use]
    pub fn longest_grace(&self) -> Duration {
        let active = self.pods.iter().filter(|pod| !has_ended(pod));
        let seconds = active.filter_map(|pod| {
            let of_deletion = pod.field(&["metadata", "deletionGracePeriodSeconds"]);
            let seconds = of_deletion.ok().flatten();
            seconds.or_else(|| {
                let own = pod.field(&["spec", "terminationGracePeriodSeconds"]);
                own.ok().flatten()
            })
        });
        Duration::from_secs(seconds.max().unwrap_or(0))
    }

    /// Waits until no pod is pending or running.
    ///
    /// # Errors
    /// The same as [`WatchedPods::changed`].
    pub async fn all_ended(&mut self) -> Result<(), Error> {
        while self.active() > 0 {
            self.changed().await?;
        }
        Ok(())
    }

    fn take_changes(&mut self) {
        let Some((cache, changes)) = &mut self.watch else {
            return;
        };
        while changes.try_next().is_some() {}
        self.pods = cache.items();
        self.pods.retain(|pod| self.run.has_pod(pod));
    }
}

fn has_ended(pod: &Item<Pod>) -> bool {
    let phase = pod.status_field::<String>(&["phase"]).unwrap_or_default();
    matches!(phase.as_str(), "Succeeded" | "Failed")
}
