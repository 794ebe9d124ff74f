//! Removes CustomResourceDefinitions some time after their deletion.

use std::time::Duration;

use super::Engine;
use crate::{
    custom::{DEFINITION_GROUP, DEFINITION_KIND},
    machine::{begin_cleanup, deferred_cleanups},
};

/// The delay after an error of the store.
const ERROR_DELAY: Duration = Duration::from_secs(1);

impl Engine {
    /// Keeps each CustomResourceDefinition for `delay` after it was deleted, then deletes its
    /// objects and the definition. On Kubernetes, a controller does this. Clients that delete a
    /// definition and then wait for its removal, with a watch that begins with the current objects,
    /// first see it with its `deletionTimestamp`. Without this method, both happen in the request
    /// that deletes the definition. Runs until it is dropped.
    pub async fn end_definitions(&self, delay: Duration) {
        let state = self.state();
        let Some(id) = state.kinds.builtin_id(DEFINITION_GROUP, DEFINITION_KIND) else {
            return;
        };
        let mut changes = state.kinds.entry(id).revisions.subscribe();
        drop(state);
        let deferred = self.submit(false, |tx| {
            tx.defer_cleanup();
            Ok(())
        });
        if let Err(error) = deferred.await {
            tracing::warn!(%error, "CustomResourceDefinitions end at once when they are deleted");
            return;
        }
        loop {
            changes.borrow_and_update();
            let deferred = deferred_cleanups(&self.state());
            if deferred.is_empty() {
                if changes.changed().await.is_err() {
                    return;
                }
                continue;
            }
            tokio::time::sleep(delay).await;
            let begun = self.submit(false, |tx| {
                begin_cleanup(tx, deferred);
                Ok(())
            });
            if let Err(error) = begun.await {
                tracing::warn!(%error, "cannot end a deleted CustomResourceDefinition");
                tokio::time::sleep(ERROR_DELAY).await;
            }
        }
    }

    /// Returns true if the cleanup of a deleted definition was deferred.
    pub(crate) fn has_deferred_cleanup(&self) -> bool {
        !deferred_cleanups(&self.state()).is_empty()
    }
}
