//! Stores the changes of workloads, pods and revisions, and queues the affected
//! workloads.

use futures::future;
use longshore_client::{
    Cache, Change,
    kinds::{Any, Pod},
};
use longshore_model::meta::ObjectMeta;

use super::{
    kind::{Kind, Workload},
    requests::Requests,
};
use crate::{
    caches::Caches, history::Revision, key::Key, pod_facts::PodFacts, queue::Queue, reconcile::feed,
};

/// Stores all objects of the caches, then their changes until the cluster is closed.
pub(crate) fn feeds<'a, W: Workload>(
    requests: &'a Requests<W>,
    queue: &'a Queue<Key>,
    workloads: &Cache<Any>,
    revisions: &Cache<Any>,
    caches: &Caches,
) -> impl Future<Output = ()> + use<'a, W> {
    let what = W::KIND.what;
    let add = |keys: Vec<Key>| keys.into_iter().for_each(|key| queue.add(key));
    let workloads = feed(what, workloads, move |key, change: &Change<Any>| {
        match change {
            Change::Upsert(item) => match W::of(item) {
                Ok(workload) => requests.store.lock().owned.put(workload),
                Err(error) => tracing::warn!(what, ?key, %error, "cannot read an object"),
            },
            Change::Gone(item) => requests.store.lock().owned.remove(&key, item.uid()),
        }
        queue.add(key);
    });
    let revisions = feed(what, revisions, move |key, change: &Change<Any>| {
        let affected = match change {
            Change::Upsert(item) if is_ours::<W>(item.meta()) => match Revision::of(item) {
                Ok(revision) => requests.store.lock().put_revision(revision),
                Err(error) => {
                    tracing::warn!(what, ?key, %error, "cannot read a ControllerRevision");
                    return;
                }
            },
            Change::Upsert(item) | Change::Gone(item) => {
                requests.store.lock().remove_revision(&key, item.uid())
            }
        };
        add(affected);
    });
    let pods = feed(what, &caches.pods, move |key, change: &Change<Pod>| {
        let affected = match change {
            Change::Upsert(item) if is_ours::<W>(item.meta()) => match PodFacts::read(item) {
                Ok(pod) => requests.store.lock().owned.put_pod(pod),
                Err(error) => {
                    tracing::warn!(what, ?key, %error, "cannot read a pod");
                    return;
                }
            },
            Change::Upsert(item) | Change::Gone(item) => {
                requests.store.lock().owned.remove_pod(&key, item.uid())
            }
        };
        add(affected);
    });
    async move {
        future::join3(workloads, revisions, pods).await;
    }
}

/// Returns true if an object has no controller or a controller of this kind.
fn is_ours<W: Workload>(meta: &ObjectMeta) -> bool {
    let owner = meta.controller();
    owner.is_none_or(|owner| owner.kind == W::KIND.kind && owner.api_version == Kind::API_VERSION)
}
