//! Waits until enough tasks exist.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{Resolver, pod_feeds::PodFeeds};
use crate::{
    error::Error,
    missing::{is_complete, missing},
    tasks::{Assembly, Selected, Tasks, assemble},
};

impl Resolver {
    /// Waits until each role has the number of tasks in `needed`, and returns all
    /// tasks that exist then. It keeps waiting for pods that the policy refuses.
    ///
    /// # Errors
    /// [`Error::Missing`] after `limit`, with the missing tasks and the reasons.
    /// For other errors see [`Resolver::tasks`].
    ///
    /// ```
    /// # longshore_embedded::example_with_pods(async |cluster| {
    /// # use longshore_resolver::Resolver;
    /// use std::{collections::BTreeMap, time::Duration};
    /// let resolver = Resolver::new(cluster).with_mapping([("worker", vec!["app=none".parse()?])]);
    /// let needed = BTreeMap::from([("worker".to_owned(), 4)]);
    /// let error = resolver.wait(&needed, Duration::from_millis(50)).await.unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "timed out after 0.05 s waiting for tasks: worker: 0 of 4; no pod matches"
    /// );
    /// # Ok(()) });
    /// ```
    pub async fn wait(
        &self,
        needed: &BTreeMap<String, usize>,
        limit: Duration,
    ) -> Result<Tasks, Error> {
        let start = Instant::now();
        let assembly = self.assembly_for_waiting();
        let mut feeds = PodFeeds::open(self).await?;
        loop {
            let selected = feeds.selected();
            let missing = missing(&selected, needed, &assembly);
            if missing.is_empty() {
                return complete_tasks(selected, &assembly);
            }
            let left = limit.saturating_sub(start.elapsed());
            match tokio::time::timeout(left, feeds.changed()).await {
                Ok(changed) => changed?,
                Err(_) => {
                    return Err(Error::Missing {
                        missing,
                        waited: limit,
                    });
                }
            }
        }
    }

    /// Returns how pods become tasks while the resolver waits.
    pub(super) fn assembly_for_waiting(&self) -> Assembly {
        Assembly {
            policy: self.assembly.policy.for_waiting(),
            ..self.assembly.clone()
        }
    }
}

/// Assembles the pods that have everything a task needs.
pub(super) fn complete_tasks(
    mut selected: Vec<Selected<'_>>,
    assembly: &Assembly,
) -> Result<Tasks, Error> {
    for pods in selected.iter_mut().flat_map(|selected| &mut selected.pods) {
        pods.retain(|pod| is_complete(pod, assembly));
    }
    Ok(assemble(&selected, assembly)?)
}
