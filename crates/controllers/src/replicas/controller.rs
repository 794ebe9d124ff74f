//! The loop: watches sets and pods, carries decisions out.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use longshore_client::{
    Change, Cluster, DeleteOptions, Error, Item, Patch, View,
    kinds::{Any, Pod},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    claim::claim,
    counts,
    facts::PodFacts,
    flavor::Flavor,
    plan::{Scale, batches, scale},
    set::Set,
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

/// Requests under way at a time, for one set.
const CONCURRENCY: usize = 16;
/// Sets worked on at a time.
const WORKERS: usize = 5;

struct Controller {
    flavor: &'static Flavor,
    cluster: Cluster,
    sets: View<Any>,
    events: Recorder,
    store: Mutex<Store>,
    queue: Queue<Key>,
}

/// Runs the controller of a kind until its cluster is closed.
pub(crate) async fn run(
    flavor: &'static Flavor,
    cluster: Cluster,
    caches: Arc<Caches>,
    events: Recorder,
) {
    let Some((kind, cache)) = caches.of(flavor.group, flavor.kind) else {
        return;
    };
    let controller = Controller {
        flavor,
        sets: cluster.view_of(Any::new(kind.clone())),
        cluster,
        events: events.named(flavor.component),
        store: Mutex::default(),
        queue: Queue::new(),
    };
    let mut sets = cache.subscribe();
    let mut pods = caches.pods.subscribe();
    // Everything there is goes in before the first decision is made.
    while let Some(change) = sets.try_next() {
        controller.set_changed(&change);
    }
    while let Some(change) = pods.try_next() {
        controller.pod_changed(&change);
    }
    let watch = async {
        loop {
            tokio::select! {
                Some(change) = sets.next() => controller.set_changed(&change),
                Some(change) = pods.next() => controller.pod_changed(&change),
                else => return,
            }
        }
    };
    let reconcile = |key| controller.reconcile(key);
    let work = controller.queue.work(flavor.what, WORKERS, reconcile);
    tokio::select! {
        () = watch => {}
        () = work => {}
    }
}

impl Controller {
    fn set_changed(&self, change: &Change<Any>) {
        let key = Key::of(change.item());
        guard::change(self.flavor.what, &key.clone(), || {
            match change {
                Change::Upsert(item) => match Set::of(self.flavor, item) {
                    Ok(set) => self.store.lock().put_set(set),
                    Err(error) => tracing::warn!(?key, %error, "a set of pods cannot be read"),
                },
                Change::Gone(item) => self.store.lock().remove_set(&key, item.uid()),
            }
            self.queue.add(key);
        });
    }

    fn pod_changed(&self, change: &Change<Pod>) {
        let key = Key::of(change.item());
        guard::change(self.flavor.what, &key.clone(), || {
            let concerned = match change {
                Change::Upsert(item) if self.is_ours(item) => match facts(item) {
                    Ok(pod) => self.store.lock().put_pod(pod),
                    Err(error) => {
                        tracing::warn!(?key, %error, "a pod cannot be read");
                        return;
                    }
                },
                Change::Upsert(item) | Change::Gone(item) => {
                    self.store.lock().remove_pod(&key, item.uid())
                }
            };
            concerned.into_iter().for_each(|set| self.queue.add(set));
        });
    }

    /// Whether a pod has no controller, or one of this kind.
    fn is_ours(&self, item: &Item<Pod>) -> bool {
        let owner = item.meta().controller();
        owner.is_none_or(|owner| {
            owner.kind == self.flavor.kind && owner.api_version == self.flavor.api_version
        })
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Error> {
        let Some(snapshot) = self.store.lock().snapshot(&key) else {
            return Ok(Next::Done);
        };
        let set = &*snapshot.set;
        let claims = claim(set, &snapshot.pods);
        let mut changed = Ok(());
        if !claims.adopt.is_empty() {
            changed = self.adopt(set, &claims.adopt).await;
        }
        for pod in &claims.release {
            changed = changed.and(self.release(set, pod).await);
        }
        changed?;
        let mut active = claims.owned;
        active.extend(claims.adopt);
        let related = if active.len() > set.replicas {
            self.store.lock().related(set)
        } else {
            Vec::new()
        };
        let related: Vec<&PodFacts> = related.iter().collect();
        let now = Timestamp::now();
        let scaled = match scale(set, &active, &related, now) {
            Scale::Keep => Ok(()),
            Scale::Create(count) => self.create(set, count).await,
            Scale::Delete(pods) => self.delete(set, &pods).await,
        };
        let failure = scaled.as_ref().err().map(message);
        let status = counts::status(
            self.flavor,
            set,
            &active,
            claims.terminating,
            failure.as_deref(),
            now,
        );
        self.store_status(set, &status).await?;
        scaled?;
        let wait = counts::next_check(set, &active, now);
        Ok(wait.map_or(Next::Done, |wait| {
            Next::After(wait + Duration::from_millis(1))
        }))
    }

    /// Adopts pods, once the server has said that the set still lives: the
    /// cache may not know of its deletion.
    async fn adopt(&self, set: &Set, pods: &[&PodFacts]) -> Result<(), Error> {
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

    async fn release(&self, set: &Set, pod: &PodFacts) -> Result<(), Error> {
        let patch = json!({"metadata": {
            "uid": pod.uid, "ownerReferences": [{"$patch": "delete", "uid": set.uid}],
        }});
        match self.patch_pod(pod, patch).await {
            // Another pod of that name, or none of its owners left.
            Err(error) if error.code() == Some(422) => Ok(()),
            done => done,
        }
    }

    async fn patch_pod(&self, pod: &PodFacts, patch: Value) -> Result<(), Error> {
        let view = self.cluster.pods().in_namespace(&pod.namespace)?;
        match view.patch(&pod.name, &Patch::strategic(patch)).await {
            Ok(item) => {
                let pod = facts(&item)?;
                self.store.lock().renew_pod(pod);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, set: &Set, count: usize) -> Result<(), Error> {
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
                self.store.lock().created(&set.uid, facts(&item)?);
                let message = format!("Created pod: {}", item.name());
                self.tell(set, Severity::Normal, "SuccessfulCreate", &message);
                Ok(())
            }
            Err(error) if is_terminating(&error) => Ok(()),
            Err(error) => {
                let message = format!("Error creating: {}", message(&error));
                self.tell(set, Severity::Warning, "FailedCreate", &message);
                Err(error)
            }
        }
    }

    async fn delete(&self, set: &Set, pods: &[&PodFacts]) -> Result<(), Error> {
        all(pods.iter().map(|pod| self.delete_one(set, pod)).collect()).await
    }

    async fn delete_one(&self, set: &Set, pod: &PodFacts) -> Result<(), Error> {
        let options = DeleteOptions {
            uid: Some(pod.uid.clone()),
            ..DeleteOptions::default()
        };
        let key = Key::new(&pod.namespace, &pod.name);
        let view = self.cluster.pods().in_namespace(&pod.namespace)?;
        match view.delete(&pod.name, &options).await {
            Ok(()) => {
                self.store.lock().mark_deleting(&key, &pod.uid);
                let message = format!("Deleted pod: {}", pod.name);
                self.tell(set, Severity::Normal, "SuccessfulDelete", &message);
                Ok(())
            }
            // It has gone, or another has its name.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => {
                let message = format!("Error deleting: {}", message(&error));
                self.tell(set, Severity::Warning, "FailedDelete", &message);
                Err(error)
            }
        }
    }

    async fn store_status(&self, set: &Set, status: &Status) -> Result<(), Error> {
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
                self.store.lock().renew_set(set);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A pod of the template.
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

    fn tell(&self, set: &Set, severity: Severity, reason: &str, message: &str) {
        let subject = Subject {
            api_version: self.flavor.api_version,
            kind: self.flavor.kind,
            namespace: set.key.namespace.clone(),
            name: set.key.name.clone(),
            uid: set.uid.clone(),
        };
        self.events.tell(subject, severity, reason, message);
    }
}

/// What the server said, without the request that it was said to.
fn message(error: &Error) -> String {
    match error.status() {
        Some(status) => status.message.clone(),
        None => error.to_string(),
    }
}

/// Runs requests, so many at a time; all of them, whichever fail. Returns the
/// first error.
async fn all(requests: Vec<impl Future<Output = Result<(), Error>>>) -> Result<(), Error> {
    let results = stream::iter(requests).buffer_unordered(CONCURRENCY);
    results
        .fold(Ok(()), async |outcome: Result<(), Error>, result| {
            outcome.and(result)
        })
        .await
}

fn facts(item: &Item<Pod>) -> Result<PodFacts, Error> {
    item.typed::<core::Pod>().map(PodFacts::of)
}
