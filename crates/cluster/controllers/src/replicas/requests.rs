//! The controller's requests. The store keeps the responses.

use longshore_client::{Cluster, DeleteOptions, Error, Patch, View, kinds::Any};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{flavor::Flavor, plan::batches, set::Set, status::Status, store::Store};
use crate::{
    concurrent::all,
    events::{Recorder, Severity, Subject},
    pod_facts::PodFacts,
    refusal::{is_terminating, message},
};

pub(super) struct Requests {
    pub(super) flavor: &'static Flavor,
    pub(super) cluster: Cluster,
    /// The sets.
    pub(super) sets: View<Any>,
    pub(super) events: Recorder,
    pub(super) store: Mutex<Store>,
}

impl Requests {
    /// Adopts pods after the server has confirmed that the set exists, because the
    /// cache may not show its deletion yet.
    pub(super) async fn adopt(&self, set: &Set, pods: &[&PodFacts]) -> Result<(), Error> {
        let view = self.sets.clone().in_namespace(&set.key.namespace)?;
        let fresh = view.fetch(&set.key.name).await?;
        if fresh.uid() != set.uid || fresh.meta().deletion_timestamp.is_some() {
            let (kind, key) = (self.flavor.kind, &set.key);
            let problem = format!("{kind} {key:?} has been deleted: it adopts no pods");
            return Err(Error::Invalid(problem));
        }
        let adopt = pods.iter().map(|pod| {
            let patch = json!({"metadata": {
                "uid": pod.uid, "ownerReferences": [self.reference(set)],
            }});
            self.patch_pod(pod, patch)
        });
        all(adopt.collect()).await
    }

    pub(super) async fn release(&self, set: &Set, pod: &PodFacts) -> Result<(), Error> {
        let patch = json!({"metadata": {
            "uid": pod.uid, "ownerReferences": [{"$patch": "delete", "uid": set.uid}],
        }});
        match self.patch_pod(pod, patch).await {
            // Another pod has the name, or the pod has no owners left.
            Err(error) if error.code() == Some(422) => Ok(()),
            done => done,
        }
    }

    async fn patch_pod(&self, pod: &PodFacts, patch: Value) -> Result<(), Error> {
        let view = self.cluster.pods().in_namespace(&pod.key.namespace)?;
        match view.patch(&pod.key.name, &Patch::strategic(patch)).await {
            Ok(item) => {
                let pod = PodFacts::read(&item)?;
                self.store.lock().put_pod_response(pod);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn create(&self, set: &Set, count: usize) -> Result<(), Error> {
        let pod = self.pod(set);
        self.store.lock().begin_creating(&set.uid);
        let mut created = Ok(());
        for batch in batches(count) {
            created = all((0..batch).map(|_| self.create_one(set, &pod)).collect()).await;
            if created.is_err() {
                break;
            }
        }
        self.store.lock().end_creating(&set.uid);
        created
    }

    async fn create_one(&self, set: &Set, pod: &Value) -> Result<(), Error> {
        let view = self.cluster.pods().in_namespace(&set.key.namespace)?;
        match view.create(pod).await {
            Ok(item) => {
                self.store.lock().created(&set.uid, PodFacts::read(&item)?);
                let message = format!("Created pod: {}", item.name());
                self.record_event(set, Severity::Normal, "SuccessfulCreate", &message);
                Ok(())
            }
            Err(error) if is_terminating(&error) => Ok(()),
            Err(error) => {
                let message = format!("Error creating: {}", message(&error));
                self.record_event(set, Severity::Warning, "FailedCreate", &message);
                Err(error)
            }
        }
    }

    pub(super) async fn delete(&self, set: &Set, pods: &[&PodFacts]) -> Result<(), Error> {
        all(pods.iter().map(|pod| self.delete_one(set, pod)).collect()).await
    }

    async fn delete_one(&self, set: &Set, pod: &PodFacts) -> Result<(), Error> {
        let options = DeleteOptions {
            uid: Some(pod.uid.clone()),
            ..DeleteOptions::default()
        };
        let view = self.cluster.pods().in_namespace(&pod.key.namespace)?;
        match view.delete(&pod.key.name, &options).await {
            Ok(()) => {
                self.store.lock().mark_deleting(&pod.key, &pod.uid);
                let message = format!("Deleted pod: {}", pod.key.name);
                self.record_event(set, Severity::Normal, "SuccessfulDelete", &message);
                Ok(())
            }
            // The pod was deleted, or another pod has its name.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => {
                let message = format!("Error deleting: {}", message(&error));
                self.record_event(set, Severity::Warning, "FailedDelete", &message);
                Err(error)
            }
        }
    }

    pub(super) async fn store_status(&self, set: &Set, status: &Status) -> Result<(), Error> {
        if *status == set.status {
            return Ok(());
        }
        let patch = Patch::merge(json!({
            "metadata": {"uid": set.uid, "resourceVersion": set.version},
            "status": status.patch(),
        }));
        let view = self.sets.clone().in_namespace(&set.key.namespace)?;
        match view.patch_status(&set.key.name, &patch).await {
            Ok(item) => {
                let set = Set::of(self.flavor, &item)?;
                self.store.lock().put_response(set);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Builds a pod from the template.
    fn pod(&self, set: &Set) -> Value {
        let meta = &set.template["metadata"];
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "generateName": format!("{}-", set.key.name),
                "labels": meta["labels"],
                "annotations": meta["annotations"],
                "finalizers": meta["finalizers"],
                "ownerReferences": [self.reference(set)],
            },
            "spec": set.template["spec"],
        })
    }

    fn reference(&self, set: &Set) -> Value {
        json!({
            "apiVersion": self.flavor.api_version, "kind": self.flavor.kind,
            "name": set.key.name, "uid": set.uid,
            "controller": true, "blockOwnerDeletion": true,
        })
    }

    fn record_event(&self, set: &Set, severity: Severity, reason: &str, message: &str) {
        let subject = Subject {
            api_version: self.flavor.api_version.into(),
            kind: self.flavor.kind.into(),
            namespace: set.key.namespace.clone(),
            name: set.key.name.clone(),
            uid: set.uid.clone(),
        };
        self.events.record_event(subject, severity, reason, message);
    }
}
