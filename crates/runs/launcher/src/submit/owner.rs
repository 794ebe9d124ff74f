//! The owner of a run's objects, with which they are deleted.

use longshore_client::{Patch, kinds::Secret};
use serde_json::json;

use super::{
    SubmitError,
    submission::{Submission, name_of},
};

impl Submission<'_> {
    /// Makes the first Job the owner of the other objects.
    pub(super) async fn own(&self) -> Result<(), SubmitError> {
        let Some((first, others)) = self.workloads.split_first() else {
            return Ok(());
        };
        let kind = self.plan.workload.kind();
        let owner = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.gvk.kind,
            "name": first.name,
            "uid": first.uid,
        });
        // A strategic merge adds an owner to the existing owners of a shared bundle.
        let patch = Patch::strategic(json!({"metadata": {"ownerReferences": [owner]}}));
        let namespace = &self.plan.namespace;
        let secrets = self.cluster.secrets().in_namespace(namespace)?;
        let services = self.cluster.services().in_namespace(namespace)?;
        let own_secret = async |object: Option<&Secret>| match object {
            Some(object) => secrets.patch(name_of(object), &patch).await.map(drop),
            None => Ok(()),
        };
        let own_service = async || match &self.plan.service {
            Some(object) => services.patch(name_of(object), &patch).await.map(drop),
            None => Ok(()),
        };
        let view = self.view()?;
        let own_jobs = others.iter().map(|other| view.patch(&other.name, &patch));
        let own_jobs = futures::future::try_join_all(own_jobs);
        let notifiers = self.notifiers()?;
        let own_notifier = async || match &self.notifier {
            Some(notifier) => notifiers.patch(&notifier.name, &patch).await.map(drop),
            None => Ok(()),
        };
        let (bundle, config, service, jobs, notifier) = futures::join!(
            own_secret(self.plan.bundle.as_ref()),
            own_secret(Some(&self.plan.config)),
            own_service(),
            own_jobs,
            own_notifier(),
        );
        match bundle {
            // The run that owned the bundle was removed in the meantime.
            Err(error) if error.is_not_found() => {
                self.put_bundle().await?;
                own_secret(self.plan.bundle.as_ref()).await?;
            }
            result => result?,
        }
        config?;
        service?;
        jobs?;
        notifier?;
        Ok(())
    }
}
