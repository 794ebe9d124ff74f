//! Waits until enough tasks are there.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{Resolver, live::Live};
use crate::{
    error::Error,
    missing::{is_there, missing},
    tasks::{Assembly, Selected, Tasks, assemble},
};

impl Resolver {
    /// Waits until each role has as many tasks as `needed` says, and gives all
    /// that are there then. Who is refused by the policy is waited for.
    ///
    /// # Errors
    /// [`Error::Missing`] after `limit`: who is missing and why. Others as
    /// [`Resolver::tasks`].
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
    ///     "not all tasks were there within 0.05 s: worker: 0 of 4; no pod matches"
    /// );
    /// # Ok(()) });
    /// ```
    pub async fn wait(
        &self,
        needed: &BTreeMap<String, usize>,
        limit: Duration,
    ) -> Result<Tasks, Error> {
        let begin = Instant::now();
        let how = self.patient();
        let mut live = Live::open(self).await?;
        loop {
            let selected = live.selected();
            let missing = missing(&selected, needed, &how);
            if missing.is_empty() {
                return there(selected, &how);
            }
            let left = limit.saturating_sub(begin.elapsed());
            match tokio::time::timeout(left, live.changed()).await {
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

    /// How it makes tasks while pods come and go.
    pub(super) fn patient(&self) -> Assembly {
        Assembly {
            policy: self.assembly.policy.patient(),
            ..self.assembly.clone()
        }
    }
}

/// The tasks of those who are there in full.
pub(super) fn there(mut selected: Vec<Selected<'_>>, how: &Assembly) -> Result<Tasks, Error> {
    for pods in selected.iter_mut().flat_map(|selected| &mut selected.pods) {
        pods.retain(|pod| is_there(pod, how));
    }
    Ok(assemble(&selected, how)?)
}
