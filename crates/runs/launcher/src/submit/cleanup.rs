//! Removes the objects of a failed submission.

use longshore_client::DeleteOptions;

use crate::queries;

use super::submission::{Submission, name_of};

impl Submission<'_> {
    /// Deletes the created objects. The bundle is kept for the next attempt if it has an owner.
    pub(super) async fn undo(&self) {
        let options = DeleteOptions::background();
        let ignore = |result: Result<(), longshore_client::Error>| {
            if let Err(error) = result {
                tracing::warn!(%error, "an object of a failed submission is left");
            }
        };
        if let Ok(view) = self.view() {
            for created in &self.workloads {
                ignore(view.delete(&created.name, &options).await);
            }
        }
        // The notifier owns the objects that it needs.
        if let Some(notifier) = &self.notifier
            && let Ok(view) = self.notifiers()
        {
            ignore(view.delete(&notifier.name, &options).await);
        }
        let namespace = &self.plan.namespace;
        if self.has_config
            && let Ok(secrets) = self.cluster.secrets().in_namespace(namespace)
        {
            ignore(secrets.delete(name_of(&self.plan.config), &options).await);
        }
        if let Some(service) = self.plan.service.as_ref().filter(|_| self.has_service)
            && let Ok(services) = self.cluster.services().in_namespace(namespace)
        {
            ignore(services.delete(name_of(service), &options).await);
        }
        if let Some(bundle) = &self.plan.bundle
            && let Ok(Some(found)) = queries::secret(self.cluster, namespace, name_of(bundle)).await
            && found.meta().owner_references.is_empty()
        {
            let options = DeleteOptions {
                uid: Some(found.uid().to_owned()),
                ..DeleteOptions::background()
            };
            ignore(found.delete(&options).await);
        }
    }
}
