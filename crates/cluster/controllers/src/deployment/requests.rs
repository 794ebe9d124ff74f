//! The controller's requests. The store keeps the responses.

use std::time::Duration;

use jiff::Timestamp;
use longshore_client::{DeleteOptions, Error, Patch, View, kinds::Any};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    facts::{Deployment, ReplicaSet},
    hash::is_same,
    object::{object, reference},
    plan::{self, NewSet},
    revision::REVISION,
    status::Status,
    store::Store,
};
use crate::{
    events::{Recorder, Severity, Subject},
    queue::Next,
    refusal::{is_terminating, message},
};

pub(super) struct Requests {
    pub(super) deployments: View<Any>,
    pub(super) sets: View<Any>,
    pub(super) events: Recorder,
    pub(super) store: Mutex<Store>,
}

impl Requests {
    /// Adopts and releases ReplicaSets. The server must first confirm that the
    /// Deployment exists, because the cache may not show its deletion yet.
    pub(super) async fn claim(
        &self,
        deployment: &Deployment,
        adopt: &[ReplicaSet],
        release: &[ReplicaSet],
    ) -> Result<(), Error> {
        if !adopt.is_empty() {
            let view = self
                .deployments
                .clone()
                .in_namespace(&deployment.key.namespace)?;
            let fresh = view.fetch(&deployment.key.name).await?;
            if fresh.uid() != deployment.uid || fresh.meta().deletion_timestamp.is_some() {
                let key = &deployment.key;
                let problem = format!("Deployment {key:?} has been deleted: it adopts nothing");
                return Err(Error::Invalid(problem));
            }
        }
        for set in adopt {
            let owners = json!([reference(deployment)]);
            self.patch_owners(set, owners).await?;
        }
        for set in release {
            let owners = json!([{"$patch": "delete", "uid": deployment.uid}]);
            match self.patch_owners(set, owners).await {
                Err(error) if error.code() == Some(422) => {}
                done => done?,
            }
        }
        Ok(())
    }

    async fn patch_owners(&self, set: &ReplicaSet, owners: Value) -> Result<(), Error> {
        let patch = json!({"metadata": {"uid": set.uid, "ownerReferences": owners}});
        let patch = Patch::strategic(patch);
        let view = self.sets.clone().in_namespace(&set.key.namespace)?;
        match view.patch(&set.key.name, &patch).await {
            Ok(item) => {
                self.store.lock().put_set_response(ReplicaSet::of(&item)?);
                Ok(())
            }
            Err(error) if error.is_not_found() => {
                self.store.lock().remove_set(&set.key, &set.uid);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn update(
        &self,
        deployment: &Deployment,
        old: &ReplicaSet,
        new: &ReplicaSet,
    ) -> Result<(), Error> {
        let patch = Patch::merge(json!({
            "metadata": {
                "uid": old.uid, "resourceVersion": old.version, "annotations": new.annotations,
            },
            "spec": {"replicas": new.replicas, "minReadySeconds": new.min_ready_seconds},
        }));
        let view = self.sets.clone().in_namespace(&old.key.namespace)?;
        let item = view.patch(&old.key.name, &patch).await?;
        self.store.lock().put_set_response(ReplicaSet::of(&item)?);
        self.record_scaling(deployment, &old.key.name, old.replicas, new.replicas);
        Ok(())
    }

    fn record_scaling(&self, deployment: &Deployment, set: &str, from: i64, to: i64) {
        if from != to {
            let direction = if from < to { "up" } else { "down" };
            let message = format!("Scaled {direction} replica set {set} from {from} to {to}");
            self.record_event(deployment, Severity::Normal, "ScalingReplicaSet", &message);
        }
    }

    pub(super) async fn create(
        &self,
        deployment: &Deployment,
        set: &NewSet,
        now: Timestamp,
    ) -> Result<Next, Error> {
        let view = self.sets.clone().in_namespace(&deployment.key.namespace)?;
        let found = match view.create(&object(deployment, set)).await {
            Ok(item) => {
                self.record_scaling(deployment, &set.name, 0, set.replicas);
                let status = plan::created(deployment, &set.name, now);
                let status = (status != deployment.status).then_some(status);
                let found = ReplicaSet::of(&item)?;
                self.store.lock().put_set(found);
                let revision = Some(set.revision.as_str());
                self.store_status(deployment, revision, status).await?;
                return Ok(Next::After(Duration::ZERO));
            }
            Err(error) if error.is_already_exists() => {
                ReplicaSet::of(&view.fetch(&set.name).await?)?
            }
            Err(error) if is_terminating(&error) => return Err(error),
            Err(error) => {
                let cause = message(&error);
                let message = format!("Failed to create new replica set \"{}\": {cause}", set.name);
                let status = plan::create_failed(deployment, &message, now);
                let status = (status != deployment.status).then_some(status);
                // The creation error takes precedence over an error of this
                // request.
                let _ = self.store_status(deployment, None, status).await;
                self.record_event(
                    deployment,
                    Severity::Warning,
                    "ReplicaSetCreateError",
                    &message,
                );
                return Err(error);
            }
        };
        if found.is_owned_by(&deployment.uid) && is_same(&found.template, &deployment.spec.template)
        {
            self.store.lock().put_set(found);
        } else {
            let mut status = deployment.status.clone();
            status.collision_count = Some(status.collision_count.unwrap_or(0) + 1);
            self.store_status(deployment, None, Some(status)).await?;
        }
        Ok(Next::After(Duration::ZERO))
    }

    pub(super) async fn delete(&self, set: &ReplicaSet) -> Result<(), Error> {
        let options = DeleteOptions {
            uid: Some(set.uid.clone()),
            ..DeleteOptions::background()
        };
        let view = self.sets.clone().in_namespace(&set.key.namespace)?;
        match view.delete(&set.key.name, &options).await {
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            done => done,
        }
    }

    /// Writes the revision and the status in a single request.
    pub(super) async fn store_status(
        &self,
        deployment: &Deployment,
        revision: Option<&str>,
        status: Option<Status>,
    ) -> Result<(), Error> {
        if revision.is_none() && status.is_none() {
            return Ok(());
        }
        let mut patch = json!({"metadata": {
            "uid": deployment.uid, "resourceVersion": deployment.version,
        }});
        if let Some(revision) = revision {
            patch["metadata"]["annotations"] = json!({REVISION: revision});
        }
        if let Some(status) = status {
            patch["status"] = status.patch();
        }
        let view = self.deployments.clone();
        let view = view.in_namespace(&deployment.key.namespace)?;
        let patch = Patch::merge(patch);
        match view.patch_status(&deployment.key.name, &patch).await {
            Ok(item) => {
                self.store.lock().put_response(Deployment::of(&item)?);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn record_event(
        &self,
        deployment: &Deployment,
        severity: Severity,
        reason: &str,
        message: &str,
    ) {
        let subject = Subject {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: deployment.key.namespace.clone(),
            name: deployment.key.name.clone(),
            uid: deployment.uid.clone(),
        };
        self.events.record_event(subject, severity, reason, message);
    }
}
