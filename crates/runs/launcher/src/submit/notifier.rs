//! The objects that notify about a run. They are created before the run, so that a client that is
//! killed later leaves no run without them.

use longshore_client::{
    Kind as _, Patch, View,
    k8s_openapi::{api::batch::v1, apimachinery::pkg::apis::meta::v1::OwnerReference},
    kinds::Any,
};
use serde_json::json;

use super::{
    SubmitError,
    submission::{Created, Submission},
};
use crate::plan::PlannedObject;

impl Submission<'_> {
    /// Creates the notifier of the run: its Job or CronJob, which owns the other objects. Returns
    /// this Job even if an object that it owns was not created.
    pub(super) async fn create_notifier(&self) -> (Option<Created>, Result<(), SubmitError>) {
        let Some((workload, others)) = self.plan.notifier.split_last() else {
            return (None, Ok(()));
        };
        let mut first = workload.clone();
        if !others.is_empty() {
            // The Job is suspended, so that no pod starts before its dependencies exist.
            first.suspend();
        }
        let created = match self.create_object(&first).await {
            Ok(created) => created,
            Err(source) => return (None, Err(failed(workload, source))),
        };
        let completed = match others {
            [] => Ok(()),
            others => self.complete_notifier(workload, &created, others).await,
        };
        (Some(created), completed)
    }

    /// Creates the objects that the notifier needs, and starts it.
    async fn complete_notifier(
        &self,
        workload: &PlannedObject,
        created: &Created,
        others: &[PlannedObject],
    ) -> Result<(), SubmitError> {
        let owner = OwnerReference {
            api_version: workload.api_version().to_owned(),
            kind: workload.kind().to_owned(),
            name: created.name.clone(),
            uid: created.uid.clone(),
            ..OwnerReference::default()
        };
        let others = others.iter().map(async |object| {
            let mut owned = object.clone();
            owned.own(owner.clone());
            let created = self.create_object(&owned).await;
            created.map_err(|source| failed(object, source))
        });
        futures::future::try_join_all(others).await?;
        let resume = Patch::merge(json!({"spec": {"suspend": false}}));
        let started = self.notifiers()?.patch(&created.name, &resume).await;
        started.map_err(|source| failed(workload, source))?;
        Ok(())
    }

    /// The view of the notifier's Job or CronJob.
    pub(super) fn notifiers(&self) -> Result<View<Any>, SubmitError> {
        let kind = match self.plan.notifier.last() {
            Some(PlannedObject::CronJob(_)) => v1::CronJob::info(),
            _ => v1::Job::info(),
        };
        let view = self.cluster.view_of(kind);
        Ok(view.in_namespace(&self.plan.namespace)?)
    }
}

fn failed(object: &PlannedObject, source: longshore_client::Error) -> SubmitError {
    SubmitError::Create {
        what: format!("{} {}", object.kind(), object.name()),
        source,
    }
}
