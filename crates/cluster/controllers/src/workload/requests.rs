//! The requests that both controllers send. The store keeps the responses.

use longshore_client::{Cluster, DeleteOptions, Error, Patch, View, kinds::Any};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    claim::Claims,
    kind::{Meta, Workload},
    store::Store,
};
use crate::{
    caches::Caches,
    concurrent::all,
    events::{Recorder, Severity},
    history::{self, NewRevision, Revision},
    pod_facts::PodFacts,
};

/// The views of a kind's objects, and the observed state.
pub(crate) struct Requests<W> {
    pub(crate) cluster: Cluster,
    workloads: View<Any>,
    revisions: View<Any>,
    events: Recorder,
    pub(crate) store: Mutex<Store<W>>,
}

impl<W: Workload> Requests<W> {
    /// Creates the views. Returns `None` if the server lacks a kind.
    pub(crate) fn new(cluster: Cluster, caches: &Caches, events: &Recorder) -> Option<Self> {
        let view = |kind| {
            let (kind, _) = caches.of("apps", kind)?;
            Some(cluster.view_of::<Any>(kind.clone()))
        };
        Some(Self {
            workloads: view(W::KIND.kind)?,
            revisions: view("ControllerRevision")?,
            cluster,
            events: events.named(W::KIND.component),
            store: Mutex::default(),
        })
    }

    /// Adopts and releases objects. The server must first confirm that the workload
    /// exists, because the cache may not show its deletion yet.
    pub(crate) async fn claim(&self, meta: &Meta, claims: &Claims) -> Result<(), Error> {
        if !claims.adopt.is_empty() || !claims.adopt_revisions.is_empty() {
            let view = self.workloads.clone().in_namespace(&meta.key.namespace)?;
            let fresh = view.fetch(&meta.key.name).await?;
            if fresh.uid() != meta.uid || fresh.meta().deletion_timestamp.is_some() {
                let (kind, key) = (W::KIND.kind, &meta.key);
                let problem = format!("{kind} {key:?} has been deleted: it adopts nothing");
                return Err(Error::Invalid(problem));
            }
        }
        let adopt = || json!([W::KIND.reference(meta)]);
        let release = || json!([{"$patch": "delete", "uid": meta.uid}]);
        let revisions = claims.adopt_revisions.iter().map(|one| (one, adopt()));
        let released = claims.release_revisions.iter().map(|one| (one, release()));
        for (revision, owners) in revisions.chain(released) {
            self.patch_revision_owners(revision, owners).await?;
        }
        let pods = claims.adopt.iter().map(|pod| (pod, adopt()));
        let released = claims.release.iter().map(|pod| (pod, release()));
        let patches = pods.chain(released).map(async |(pod, owners)| {
            let patch = json!({"metadata": {"uid": pod.uid, "ownerReferences": owners}});
            match self.patch_pod(pod, patch).await {
                // Another pod has the name, or the pod has no owners left.
                Err(error) if error.code() == Some(422) => Ok(()),
                done => done,
            }
        });
        all(patches.collect()).await
    }

    async fn patch_revision_owners(&self, revision: &Revision, owners: Value) -> Result<(), Error> {
        let patch = json!({"metadata": {"uid": revision.uid, "ownerReferences": owners}});
        let view = self
            .revisions
            .clone()
            .in_namespace(&revision.key.namespace)?;
        match view
            .patch(&revision.key.name, &Patch::strategic(patch))
            .await
        {
            Ok(item) => {
                self.store.lock().put_revision(Revision::of(&item)?);
                Ok(())
            }
            Err(error) if error.is_not_found() || error.code() == Some(422) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Patches a pod, if it exists.
    pub(crate) async fn patch_pod(&self, pod: &PodFacts, patch: Value) -> Result<(), Error> {
        let view = self.cluster.pods().in_namespace(&pod.key.namespace)?;
        match view.patch(&pod.key.name, &Patch::strategic(patch)).await {
            Ok(item) => {
                let pod = PodFacts::read(&item)?;
                self.store.lock().owned.put_pod_response(pod);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Creates a pod. Returns its name.
    pub(crate) async fn create_pod(&self, meta: &Meta, pod: &Value) -> Result<String, Error> {
        let view = self.cluster.pods().in_namespace(&meta.key.namespace)?;
        let item = view.create(pod).await?;
        self.store
            .lock()
            .owned
            .created(&meta.uid, PodFacts::read(&item)?);
        Ok(item.name().to_owned())
    }

    /// Deletes a pod, if it exists.
    pub(crate) async fn delete_pod(&self, pod: &PodFacts) -> Result<(), Error> {
        let options = DeleteOptions {
            uid: Some(pod.uid.clone()),
            ..DeleteOptions::default()
        };
        let view = self.cluster.pods().in_namespace(&pod.key.namespace)?;
        match view.delete(&pod.key.name, &options).await {
            Ok(()) => {
                self.store.lock().owned.mark_deleting(&pod.key, &pod.uid);
                Ok(())
            }
            // The pod was deleted, or another pod has its name.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Creates a revision. Returns it and the collision count.
    pub(crate) async fn create_revision(
        &self,
        meta: &Meta,
        data: &Value,
        number: i64,
        hash_label: &'static str,
        collisions: i64,
    ) -> Result<(Revision, i64), Error> {
        let new = NewRevision {
            parent: &meta.key,
            owner: W::KIND.reference(meta),
            annotations: json!(meta.annotations),
            hash_label,
            number,
            data,
            hashed: W::hashed(data),
        };
        let (revision, collisions) = history::create(&self.revisions, &new, collisions).await?;
        self.store.lock().put_revision(revision.clone());
        Ok((revision, collisions))
    }

    /// Changes the number of a revision.
    pub(crate) async fn renumber(
        &self,
        revision: &Revision,
        number: i64,
    ) -> Result<Revision, Error> {
        let revision = history::renumber(&self.revisions, revision, number).await?;
        self.store.lock().put_revision(revision.clone());
        Ok(revision)
    }

    /// Deletes a revision.
    pub(crate) async fn remove_revision(&self, revision: &Revision) -> Result<(), Error> {
        history::remove(&self.revisions, revision).await
    }

    /// Writes the status of a workload.
    pub(crate) async fn store_status(&self, meta: &Meta, status: Value) -> Result<(), Error> {
        let patch = Patch::merge(json!({
            "metadata": {"uid": meta.uid, "resourceVersion": meta.version},
            "status": status,
        }));
        let view = self.workloads.clone().in_namespace(&meta.key.namespace)?;
        match view.patch_status(&meta.key.name, &patch).await {
            Ok(item) => {
                let workload = W::of(&item)?;
                self.store.lock().owned.put_response(workload);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Records an event about a workload.
    pub(crate) fn event(&self, meta: &Meta, severity: Severity, reason: &str, message: &str) {
        let subject = W::KIND.subject(meta);
        self.events.record_event(subject, severity, reason, message);
    }
}
