//! The loop: watches Deployments, ReplicaSets and pods, carries plans out.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use longshore_client::{
    Change, Cluster, DeleteOptions, Error, Item, Patch, View,
    kinds::{Any, Pod},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    facts::{Deployment, ReplicaSet},
    hash::is_same,
    plan::{self, NewSet, Observed, plan},
    revision::REVISION,
    status::Status,
    store::Store,
};
use crate::{
    caches::Caches,
    events::{Recorder, Severity, Subject},
    guard,
    key::Key,
    queue::{Next, Queue, is_terminating},
};

/// Deployments worked on at a time.
const WORKERS: usize = 5;

struct Controller {
    deployments: View<Any>,
    sets: View<Any>,
    events: Recorder,
    store: Mutex<Store>,
    queue: Queue<Key>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, events: Recorder) {
    let deployments = caches.of("apps", "Deployment");
    let Some((deployments, sets)) = deployments.zip(caches.of("apps", "ReplicaSet")) else {
        return;
    };
    let view = |kind: &Arc<_>| cluster.view_of(Any::new(Arc::clone(kind)));
    let controller = Controller {
        deployments: view(&deployments.0),
        sets: view(&sets.0),
        events: events.named("deployment-controller"),
        store: Mutex::default(),
        queue: Queue::new(),
    };
    let mut deployments = deployments.1.subscribe();
    let mut sets = sets.1.subscribe();
    let mut pods = caches.pods.subscribe();
    // Everything there is goes in before the first decision is made.
    while let Some(change) = deployments.try_next() {
        controller.changed(&change);
    }
    while let Some(change) = sets.try_next() {
        controller.set_changed(&change);
    }
    while let Some(change) = pods.try_next() {
        controller.pod_changed(&change);
    }
    let watch = async {
        loop {
            tokio::select! {
                Some(change) = deployments.next() => controller.changed(&change),
                Some(change) = sets.next() => controller.set_changed(&change),
                Some(change) = pods.next() => controller.pod_changed(&change),
                else => return,
            }
        }
    };
    let reconcile = |key| controller.reconcile(key);
    let work = controller.queue.work("deployment", WORKERS, reconcile);
    tokio::select! {
        () = watch => {}
        () = work => {}
    }
}

impl Controller {
    fn changed(&self, change: &Change<Any>) {
        let key = Key::of(change.item());
        guard::change("deployment", &key.clone(), || {
            match change {
                Change::Upsert(item) => match Deployment::of(item) {
                    Ok(deployment) => self.store.lock().put(deployment),
                    Err(error) => tracing::warn!(?key, %error, "a Deployment cannot be read"),
                },
                Change::Gone(item) => self.store.lock().remove(&key, item.uid()),
            }
            self.queue.add(key);
        });
    }

    fn set_changed(&self, change: &Change<Any>) {
        let key = Key::of(change.item());
        guard::change("deployment", &key.clone(), || {
            let concerned = match change {
                Change::Upsert(item) => match ReplicaSet::of(item) {
                    Ok(set) => self.store.lock().put_set(set),
                    Err(error) => {
                        tracing::warn!(?key, %error, "a ReplicaSet cannot be read");
                        return;
                    }
                },
                Change::Gone(item) => self.store.lock().remove_set(&key, item.uid()),
            };
            concerned.into_iter().for_each(|key| self.queue.add(key));
        });
    }

    fn pod_changed(&self, change: &Change<Pod>) {
        let key = Key::of(change.item());
        guard::change("deployment", &key.clone(), || {
            let item = change.item();
            let set = match change {
                Change::Upsert(item) => running(item),
                Change::Gone(_) => None,
            };
            let waiting = self.store.lock().put_pod(&key, item.uid(), set);
            waiting.into_iter().for_each(|key| self.queue.add(key));
        });
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Error> {
        let Some(snapshot) = self.store.lock().snapshot(&key) else {
            return Ok(Next::Done);
        };
        let deployment = &*snapshot.deployment;
        if !snapshot.adopt.is_empty() || !snapshot.release.is_empty() {
            self.claim(deployment, &snapshot.adopt, &snapshot.release)
                .await?;
            return Ok(Next::After(Duration::ZERO));
        }
        let plan = plan(Observed {
            deployment,
            sets: snapshot.owned,
            running: &snapshot.running,
            now: Timestamp::now(),
        });
        for (old, new) in &plan.update {
            self.update(deployment, old, new).await?;
        }
        if let Some(set) = &plan.create {
            return self.create(deployment, set).await;
        }
        for set in &plan.delete {
            self.delete(set).await?;
        }
        self.store_status(deployment, plan.revision.as_deref(), plan.status)
            .await?;
        Ok(plan.again.map_or(Next::Done, Next::After))
    }

    /// Adopts and releases ReplicaSets. The server must say first that the
    /// Deployment still lives: the cache may not know of its deletion.
    async fn claim(
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
                self.store.lock().renew_set(ReplicaSet::of(&item)?);
                Ok(())
            }
            Err(error) if error.is_not_found() => {
                self.store.lock().remove_set(&set.key, &set.uid);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn update(
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
        self.store.lock().renew_set(ReplicaSet::of(&item)?);
        self.tell_scaled(deployment, &old.key.name, old.replicas, new.replicas);
        Ok(())
    }

    fn tell_scaled(&self, deployment: &Deployment, set: &str, from: i64, to: i64) {
        if from != to {
            let direction = if from < to { "up" } else { "down" };
            let message = format!("Scaled {direction} replica set {set} from {from} to {to}");
            self.tell(deployment, Severity::Normal, "ScalingReplicaSet", &message);
        }
    }

    async fn create(&self, deployment: &Deployment, set: &NewSet) -> Result<Next, Error> {
        let view = self.sets.clone().in_namespace(&deployment.key.namespace)?;
        let now = Timestamp::now();
        let found = match view.create(&object(deployment, set)).await {
            Ok(item) => {
                self.tell_scaled(deployment, &set.name, 0, set.replicas);
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
                let cause = match error.status() {
                    Some(status) => status.message.clone(),
                    None => error.to_string(),
                };
                let message = format!("Failed to create new replica set \"{}\": {cause}", set.name);
                let status = plan::refused(deployment, &message, now);
                let status = (status != deployment.status).then_some(status);
                // The refusal is what matters.
                let _ = self.store_status(deployment, None, status).await;
                self.tell(
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

    async fn delete(&self, set: &ReplicaSet) -> Result<(), Error> {
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

    /// Writes the revision and the status, in one request.
    async fn store_status(
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
                self.store.lock().renew(Deployment::of(&item)?);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn tell(&self, deployment: &Deployment, severity: Severity, reason: &str, message: &str) {
        let subject = Subject {
            api_version: "apps/v1",
            kind: "Deployment",
            namespace: deployment.key.namespace.clone(),
            name: deployment.key.name.clone(),
            uid: deployment.uid.clone(),
        };
        self.events.tell(subject, severity, reason, message);
    }
}

/// The ReplicaSet of a pod that has not ended: its name and uid.
fn running(item: &Item<Pod>) -> Option<(String, String)> {
    let owner = item.meta().controller();
    let owner = owner.filter(|owner| owner.kind == "ReplicaSet")?;
    let phase: Option<String> = item.field(&["status", "phase"]).ok().flatten();
    let ended = matches!(phase.as_deref(), Some("Succeeded" | "Failed"));
    (!ended).then(|| (owner.name.clone(), owner.uid.clone()))
}

fn reference(deployment: &Deployment) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "name": deployment.key.name, "uid": deployment.uid,
        "controller": true, "blockOwnerDeletion": true,
    })
}

fn object(deployment: &Deployment, set: &NewSet) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": set.name,
            "labels": set.template["metadata"]["labels"],
            "annotations": set.annotations,
            "ownerReferences": [reference(deployment)],
        },
        "spec": {
            "replicas": set.replicas,
            "minReadySeconds": deployment.spec.min_ready_seconds,
            "selector": set.selector,
            "template": set.template,
        },
    })
}
