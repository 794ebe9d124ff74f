//! The controller's requests. The store keeps the responses.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use k8s_openapi::api::batch::v1 as batch;
use longshore_client::{Cluster, DeleteOptions, Error, Item, Patch, Propagation, kinds::Pod};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    claim::Claims,
    facts::PodFacts,
    names,
    plan::{Plan, Removal},
    pods::{self, NewPod},
    store::Store,
};
use crate::{
    concurrent::all,
    events::{Recorder, Severity, Subject},
    key::Key,
};

pub(super) struct Requests {
    pub(super) cluster: Cluster,
    pub(super) events: Recorder,
    pub(super) store: Mutex<Store>,
}

impl Requests {
    /// Creates and deletes pods.
    pub(super) async fn act(&self, job: &batch::Job, plan: &Plan) -> Result<(), Error> {
        let stop = AtomicBool::new(false);
        let create = plan.create.iter().map(|new| async {
            // After an error, the remaining requests would most likely also fail.
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.create(job, *new)
                .await
                .inspect_err(|_| stop.store(true, Ordering::Relaxed))
        });
        let created = all(create.collect()).await;
        let delete = plan.delete.iter().map(|removal| self.delete(job, removal));
        created.and(all(delete.collect()).await)
    }

    async fn create(&self, job: &batch::Job, new: NewPod) -> Result<(), Error> {
        let subject = subject(job);
        let name = pods::name(&subject.name, new.index, &pods::suffix());
        let pod = pods::build(job, new, name.clone());
        let key = Key::new(&subject.namespace, &name);
        self.store
            .lock()
            .expect(&subject.uid, key.clone(), Instant::now());
        let view = self.cluster.pods().in_namespace(&subject.namespace)?;
        let outcome = view.create(&pod).await.and_then(|item| facts(&item));
        match outcome {
            Ok(facts) => {
                self.store.lock().created(&subject.uid, facts);
                let message = format!("Created pod: {name}");
                self.events
                    .record_event(subject, Severity::Normal, "SuccessfulCreate", &message);
                Ok(())
            }
            Err(error) => {
                // If the server rejected the request, the pod does not exist. After
                // any other error, this is unknown until the watch reports the pod.
                if error.status().is_some_and(|status| status.code < 500) {
                    self.store.lock().not_created(&subject.uid, &key);
                }
                let message = format!("Error creating: {error}");
                self.events
                    .record_event(subject, Severity::Warning, "FailedCreate", &message);
                Err(error)
            }
        }
    }

    async fn delete(&self, job: &batch::Job, removal: &Removal) -> Result<(), Error> {
        let pod = &removal.pod;
        if removal.uncounted && pod.tracked {
            self.release(pod).await?;
        }
        let options = DeleteOptions {
            uid: Some(pod.uid.clone()),
            ..DeleteOptions::default()
        };
        let view = self.cluster.pods().in_namespace(&pod.namespace)?;
        match view.delete(&pod.name, &options).await {
            Ok(()) => {
                self.store
                    .lock()
                    .mark_deleting(&Key::new(&pod.namespace, &pod.name), &pod.uid);
                let message = format!("Deleted pod: {}", pod.name);
                self.events.record_event(
                    subject(job),
                    Severity::Normal,
                    "SuccessfulDelete",
                    &message,
                );
                Ok(())
            }
            // Another pod has the name, so this one no longer exists.
            Err(error) if error.is_conflict() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Adopts and releases pods. The server must first confirm that the Job exists,
    /// because the cache may not show its deletion yet.
    pub(super) async fn claim(
        &self,
        key: &Key,
        job: &batch::Job,
        claims: &Claims,
    ) -> Result<(), Error> {
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        if !claims.adopt.is_empty() {
            let view = self.cluster.jobs().in_namespace(&key.namespace)?;
            let fresh = view.fetch(&key.name).await?;
            if fresh.uid() != uid || fresh.meta().deletion_timestamp.is_some() {
                let problem = format!("Job {key:?} has been deleted: it adopts nothing");
                return Err(Error::Invalid(problem));
            }
        }
        let adopt = json!({
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": key.name, "uid": uid,
                "controller": true, "blockOwnerDeletion": true,
            }],
            "finalizers": [names::FINALIZER],
        });
        let release = json!({
            "ownerReferences": [{"$patch": "delete", "uid": uid}],
            "$deleteFromPrimitiveList/finalizers": [names::FINALIZER],
        });
        let adopted = claims.adopt.iter().map(|pod| (pod, &adopt));
        let released = claims.release.iter().map(|pod| (pod, &release));
        let patches = adopted.chain(released);
        all(patches
            .map(|(pod, metadata)| self.patch_owner(pod, metadata.clone()))
            .collect())
        .await
    }

    async fn patch_owner(&self, pod: &PodFacts, metadata: Value) -> Result<(), Error> {
        let mut metadata = metadata;
        metadata["uid"] = pod.uid.as_str().into();
        let view = self.cluster.pods().in_namespace(&pod.namespace)?;
        let patch = Patch::strategic(json!({"metadata": metadata}));
        match view.patch(&pod.name, &patch).await {
            Ok(item) => {
                let facts = facts(&item)?;
                self.store.lock().put_pod_response(facts);
                Ok(())
            }
            // The pod is gone, or another one has its name.
            Err(error) if error.is_not_found() || error.code() == Some(422) => {
                let key = Key::new(&pod.namespace, &pod.name);
                self.store.lock().remove_pod(&key, &pod.uid);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Removes the finalizer.
    pub(super) async fn release(&self, pod: &PodFacts) -> Result<(), Error> {
        let view = self.cluster.pods().in_namespace(&pod.namespace)?;
        let patch = Patch::strategic(json!({"metadata": {
            "uid": pod.uid,
            "$deleteFromPrimitiveList/finalizers": [names::FINALIZER],
        }}));
        let key = Key::new(&pod.namespace, &pod.name);
        match view.patch(&pod.name, &patch).await {
            Ok(item) => {
                let facts = facts(&item)?;
                let mut store = self.store.lock();
                store.put_pod_response(facts);
                store.mark_released(&key, &pod.uid);
                Ok(())
            }
            // A conflict is an error, because a pod that still exists must not
            // count as deleted.
            Err(error) if error.is_not_found() => {
                self.store.lock().remove_pod(&key, &pod.uid);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the status if it has changed. If the Job no longer exists, returns
    /// its pods that have the finalizer.
    pub(super) async fn store_status(
        &self,
        key: &Key,
        job: &batch::Job,
        plan: &Plan,
    ) -> Result<Option<Vec<Key>>, Error> {
        let subject = subject(job);
        if job.status.as_ref() != Some(&plan.status) {
            let mut updated = job.clone();
            updated.status = Some(plan.status.clone());
            let view = self.cluster.jobs().in_namespace(&key.namespace)?;
            match view.replace_status(&key.name, &updated).await {
                Ok(item) => self.store.lock().put_job_response(key, item.object()?),
                Err(error) if error.is_not_found() => {
                    return Ok(Some(self.store.lock().remove_job(key, &subject.uid)));
                }
                Err(error) => return Err(error),
            }
        }
        self.store.lock().keep_failures(&subject.uid, plan.failures);
        for notice in &plan.notices {
            self.events.record_event(
                subject.clone(),
                notice.severity,
                &notice.reason,
                &notice.message,
            );
        }
        Ok(None)
    }

    /// Deletes a Job whose TTL has expired, after its pods.
    pub(super) async fn expire(&self, key: &Key, job: &batch::Job) -> Result<(), Error> {
        if job.metadata.deletion_timestamp.is_none() {
            let options = DeleteOptions {
                propagation: Some(Propagation::Foreground),
                uid: job.metadata.uid.clone(),
                ..DeleteOptions::default()
            };
            self.cluster
                .jobs()
                .in_namespace(&key.namespace)?
                .delete(&key.name, &options)
                .await?;
        }
        Ok(())
    }
}

fn facts(item: &Item<Pod>) -> Result<PodFacts, Error> {
    item.typed().map(PodFacts::of)
}

fn subject(job: &batch::Job) -> Subject {
    let meta = &job.metadata;
    Subject {
        api_version: "batch/v1".into(),
        kind: "Job".into(),
        namespace: meta.namespace.clone().unwrap_or_default(),
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
    }
}
