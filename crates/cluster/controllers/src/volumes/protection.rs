//! The controllers that delay the deletion of claims that pods use, of volumes that are
//! bound, and of VolumeAttributesClasses that claims or volumes have.

use std::{collections::BTreeSet, sync::Arc};

use futures::future;
use longshore_client::{
    Change, Cluster, Error, Item, Patch, View,
    kinds::{Any, Pod},
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use super::{
    names::{PROTECTED_ATTRIBUTES, PROTECTED_CLAIM, PROTECTED_VOLUME},
    pod_volumes::claims_of,
};
use crate::{
    caches::Caches,
    key::Key,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controllers' name in the log.
const NAME: &str = "volume protection";
/// The number of workers.
const WORKERS: usize = 4;

/// A claim, a volume or a VolumeAttributesClass.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Work {
    Claim(Key),
    Volume(String),
    Attributes(String),
}

/// A change of a finalizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Add,
    /// Remove the finalizer if the object is not in use.
    Remove,
}

/// Returns the change of the finalizer that an object needs.
fn due(item: &Item<Any>, finalizer: &str) -> Option<Step> {
    let meta = item.meta();
    let has = meta.finalizers.iter().any(|own| own == finalizer);
    match (meta.deletion_timestamp.is_some(), has) {
        (true, true) => Some(Step::Remove),
        (false, false) => Some(Step::Add),
        _ => None,
    }
}

struct Protection {
    cluster: Cluster,
    caches: Arc<Caches>,
    claims: View<Any>,
    volumes: View<Any>,
    attributes: View<Any>,
    queue: Queue<Work>,
    /// The claims whose deletion waits for pods.
    waiting: Mutex<BTreeSet<Key>>,
    /// The VolumeAttributesClasses whose deletion waits for claims or volumes.
    waiting_attributes: Mutex<BTreeSet<String>>,
}

/// Runs the controllers until their cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>) {
    let kinds = (
        caches.of("", "PersistentVolumeClaim"),
        caches.of("", "PersistentVolume"),
        caches.of("storage.k8s.io", "VolumeAttributesClass"),
    );
    let (Some((claim, claims)), Some((volume, volumes)), Some((class, classes))) = kinds else {
        return;
    };
    let protection = Protection {
        claims: cluster.view_of::<Any>(claim.clone()),
        volumes: cluster.view_of::<Any>(volume.clone()),
        attributes: cluster.view_of::<Any>(class.clone()),
        cluster,
        caches: caches.clone(),
        queue: Queue::new(&caches.clock),
        waiting: Mutex::default(),
        waiting_attributes: Mutex::default(),
    };
    let classes = feed(NAME, classes, |key, change| match change {
        Change::Upsert(item) if due(item, PROTECTED_ATTRIBUTES).is_some() => {
            protection.queue.add(Work::Attributes(key.name));
        }
        Change::Upsert(_) => {}
        Change::Gone(_) => {
            protection.waiting_attributes.lock().remove(&key.name);
        }
    });
    let volumes = feed(NAME, volumes, |key, change| {
        protection.see_possible_user();
        if let Change::Upsert(item) = change
            && due(item, PROTECTED_VOLUME).is_some()
        {
            protection.queue.add(Work::Volume(key.name));
        }
    });
    let claims = feed(NAME, claims, |key, change| {
        protection.see_possible_user();
        match change {
            Change::Upsert(item) if due(item, PROTECTED_CLAIM).is_some() => {
                protection.queue.add(Work::Claim(key));
            }
            Change::Upsert(_) => {}
            Change::Gone(_) => {
                protection.waiting.lock().remove(&key);
            }
        }
    });
    let pods = feed(NAME, &caches.pods, |key, change| {
        // Claims are rarely deleted before their pods.
        let waiting = protection.waiting.lock();
        let is_shut_down = match change {
            Change::Gone(_) => true,
            Change::Upsert(item) => item.meta().deletion_timestamp.is_some(),
        };
        if waiting.is_empty() || !is_shut_down {
            return;
        }
        for claim in waiting.range(Key::new(&key.namespace, "")..) {
            if claim.namespace != key.namespace {
                break;
            }
            protection.queue.add(Work::Claim(claim.clone()));
        }
    });
    let feeds = future::join4(classes, volumes, claims, pods);
    let reconcile = |work| protection.reconcile(work);
    reconcile::run(NAME, WORKERS, &protection.queue, feeds, reconcile).await;
}

/// The fields of a pod that decide about its use of a claim.
#[derive(Debug, Deserialize)]
struct RawPod {
    spec: RawSpec,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSpec {
    #[serde(default)]
    node_name: String,
    #[serde(default)]
    volumes: Vec<k8s_openapi::api::core::v1::Volume>,
}

/// Returns true if a pod on a node uses a claim. `owner` is the controller of the claim.
fn uses(pod: &Item<Pod>, claim: &str, owner: Option<&str>) -> Result<bool, Error> {
    let spec = pod.typed::<RawPod>()?.spec;
    if spec.node_name.is_empty() {
        return Ok(false);
    }
    let meta = pod.meta();
    let grace: Option<i64> = pod.field(&["metadata", "deletionGracePeriodSeconds"])?;
    let is_shut_down = meta.deletion_timestamp.is_some() && grace == Some(0);
    let claims = claims_of(pod.name(), &spec.volumes);
    Ok(claims.iter().any(|used| {
        used.name == claim && (!used.is_ephemeral || !is_shut_down && owner == Some(pod.uid()))
    }))
}

/// The fields that name a VolumeAttributesClass.
const CLASS_OF_CLAIM: [&[&str]; 3] = [
    &["spec", "volumeAttributesClassName"],
    &["status", "currentVolumeAttributesClassName"],
    &[
        "status",
        "modifyVolumeStatus",
        "targetVolumeAttributesClassName",
    ],
];
const CLASS_OF_VOLUME: [&[&str]; 1] = [&["spec", "volumeAttributesClassName"]];

/// Returns true if one of the fields names a VolumeAttributesClass.
fn has_class(item: &Item<Any>, fields: &[&[&str]], class: &str) -> Result<bool, Error> {
    for field in fields {
        let name: Option<String> = item.field(field)?;
        if name.as_deref() == Some(class) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Protection {
    /// Queues waiting VolumeAttributesClasses, because a changed claim or volume may no longer use
    /// them.
    fn see_possible_user(&self) {
        for name in &*self.waiting_attributes.lock() {
            self.queue.add(Work::Attributes(name.clone()));
        }
    }

    async fn reconcile(&self, work: Work) -> Result<Next, Error> {
        let done = match &work {
            Work::Claim(key) => self.reconcile_claim(key).await,
            Work::Volume(name) => self.reconcile_volume(name).await,
            Work::Attributes(name) => self.reconcile_attributes(name).await,
        };
        match done {
            Err(error) if error.is_not_found() => Ok(Next::Done),
            Err(error) => Err(error),
            Ok(()) => Ok(Next::Done),
        }
    }

    async fn reconcile_claim(&self, key: &Key) -> Result<(), Error> {
        let cache = self.caches.of("", "PersistentVolumeClaim");
        let item = cache.and_then(|(_, cache)| cache.get(Some(&key.namespace), &key.name));
        let Some(item) = item else {
            return Ok(());
        };
        let view = self.claims.clone().in_namespace(&key.namespace)?;
        match due(&item, PROTECTED_CLAIM) {
            None => Ok(()),
            Some(Step::Add) => set(&view, &item, PROTECTED_CLAIM, true).await,
            Some(Step::Remove) => {
                // Done before the list, so that the deletion of a pod in the meantime is noticed.
                self.waiting.lock().insert(key.clone());
                let pods = self.cluster.pods().in_namespace(&key.namespace)?;
                let pods = pods.list().await?.items;
                let owner = item.meta().controller().map(|owner| &*owner.uid);
                for pod in &pods {
                    if uses(pod, &key.name, owner)? {
                        return Ok(());
                    }
                }
                set(&view, &item, PROTECTED_CLAIM, false).await
            }
        }
    }

    async fn reconcile_volume(&self, name: &str) -> Result<(), Error> {
        let cache = self.caches.of("", "PersistentVolume");
        let Some(item) = cache.and_then(|(_, cache)| cache.get(None, name)) else {
            return Ok(());
        };
        match due(&item, PROTECTED_VOLUME) {
            Some(Step::Add) => set(&self.volumes, &item, PROTECTED_VOLUME, true).await,
            Some(Step::Remove) => {
                let phase: Option<String> = item.field(&["status", "phase"])?;
                match phase.as_deref() {
                    Some("Bound") => Ok(()),
                    _ => set(&self.volumes, &item, PROTECTED_VOLUME, false).await,
                }
            }
            None => Ok(()),
        }
    }
}

impl Protection {
    async fn reconcile_attributes(&self, name: &str) -> Result<(), Error> {
        let cache = self.caches.of("storage.k8s.io", "VolumeAttributesClass");
        let Some(item) = cache.and_then(|(_, cache)| cache.get(None, name)) else {
            return Ok(());
        };
        match due(&item, PROTECTED_ATTRIBUTES) {
            Some(Step::Add) => set(&self.attributes, &item, PROTECTED_ATTRIBUTES, true).await,
            Some(Step::Remove) => {
                // Done before the lists, so that a change in the meantime is noticed.
                self.waiting_attributes.lock().insert(name.to_owned());
                let claims = self.claims.list().await?.items;
                let volumes = self.volumes.list().await?.items;
                let users = (claims.iter().map(|claim| (claim, &CLASS_OF_CLAIM[..])))
                    .chain(volumes.iter().map(|volume| (volume, &CLASS_OF_VOLUME[..])));
                for (user, fields) in users {
                    if has_class(user, fields, name)? {
                        return Ok(());
                    }
                }
                set(&self.attributes, &item, PROTECTED_ATTRIBUTES, false).await
            }
            None => Ok(()),
        }
    }
}

/// Adds or removes a finalizer, unless the object has changed.
async fn set(
    view: &View<Any>,
    item: &Item<Any>,
    finalizer: &str,
    wanted: bool,
) -> Result<(), Error> {
    let mut finalizers = item.meta().finalizers.clone();
    finalizers.retain(|own| own != finalizer);
    if wanted {
        finalizers.push(finalizer.into());
    }
    let patch = Patch::merge(json!({"metadata": {
        "uid": item.uid(), "resourceVersion": item.version(), "finalizers": finalizers,
    }}));
    view.patch(item.name(), &patch).await.map(drop)
}
