//! Deletes objects whose owners no longer exist. Before it deletes an object or
//! removes a finalizer, it asks the server, because a stale cache must not cause a
//! deletion.

use std::sync::Arc;

use longshore_client::{
    Cache, Change, Cluster, Error, Kind, Object, OwnerReference, Propagation, View, kinds::Any,
};
use longshore_clock::Clock;
use longshore_model::KindInfo;
use parking_lot::Mutex;
use serde_json::json;

use super::{
    graph::{Action, FOREGROUND, Graph, Node, ORPHAN, OwnerState, decide, unblocking_owners},
    kinds::{self, Kinds, Known},
    metadata::{change, delete, remove_owners, slim},
};
use crate::{
    events::{Recorder, Severity, Subject},
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "garbage";
/// The number of workers.
const WORKERS: usize = 8;

pub(super) struct Collector {
    cluster: Cluster,
    graph: Mutex<Graph>,
    kinds: Mutex<Kinds>,
    queue: Queue<String>,
    recorder: Recorder,
}

impl Collector {
    /// The clock of the delays.
    pub(super) fn clock(&self) -> &Clock {
        self.queue.clock()
    }

    pub(super) fn new(cluster: Cluster, clock: &Clock, recorder: Recorder) -> Self {
        Self {
            recorder,
            cluster,
            graph: Mutex::default(),
            kinds: Mutex::new(Kinds::builtin()),
            queue: Queue::new(clock),
        }
    }

    pub(super) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Processes the queue until the feeds end.
    pub(super) async fn work(&self, feeds: impl Future) {
        let reconcile = async |uid: String| self.reconcile(&uid).await;
        reconcile::run(NAME, WORKERS, &self.queue, feeds, reconcile).await;
    }

    /// Like [`Collector::feed`], for a built-in kind.
    pub(super) async fn feed_builtin<K: Kind>(&self, cache: &Cache<K>) {
        let gvk = &K::info().gvk;
        if let Some(info) = longshore_model::kind::builtin(&gvk.group, &gvk.kind) {
            self.feed(&Arc::new(info.clone()), cache).await;
        }
    }

    /// Observes the objects of a kind until the cache is closed.
    pub(super) async fn feed<K: Object>(&self, kind: &Arc<KindInfo>, cache: &Cache<K>) {
        let note = |_, change: &Change<K>| {
            // An aggregated API server may serve objects without UIDs, which own nothing.
            if change.item().uid().is_empty() {
                return;
            }
            let affected = match change {
                Change::Upsert(item) => self.graph.lock().put(Node {
                    kind: kind.clone(),
                    meta: slim(item),
                }),
                Change::Gone(item) => self.graph.lock().remove(item.uid()),
            };
            affected.into_iter().for_each(|uid| self.queue.add(uid));
        };
        feed(NAME, cache, note).await;
    }

    /// Adds a served kind, so that owners of this kind can be looked up.
    pub(super) fn learn(&self, kind: &Arc<KindInfo>, is_aggregated: bool) {
        self.kinds.lock().add(kind, is_aggregated);
        let has_such = |node: &Node| {
            let mut owners = node.meta.owner_references.iter();
            owners.any(|owner| kinds::is_of(owner, kind))
        };
        let affected = self.graph.lock().uids(has_such);
        affected.into_iter().for_each(|uid| self.queue.add(uid));
    }

    /// Removes a kind whose owners can no longer be looked up. Their dependents are kept.
    pub(super) fn unlearn(&self, kind: &Arc<KindInfo>) {
        self.kinds.lock().remove(kind);
    }

    /// Removes all objects of a kind that is no longer served.
    pub(super) fn forget(&self, kind: &Arc<KindInfo>) {
        let affected: Vec<String> = {
            let mut graph = self.graph.lock();
            let gone = graph.uids(|node| Arc::ptr_eq(&node.kind, kind));
            gone.iter().flat_map(|uid| graph.remove(uid)).collect()
        };
        affected.into_iter().for_each(|uid| self.queue.add(uid));
    }

    pub(super) fn view(
        &self,
        kind: &Arc<KindInfo>,
        namespace: Option<&str>,
    ) -> Result<View<Any>, Error> {
        let view = self.cluster.view_of::<Any>(kind.clone());
        match namespace {
            Some(namespace) if kind.is_namespaced() => view.in_namespace(namespace),
            _ => Ok(view),
        }
    }

    async fn reconcile(&self, uid: &str) -> Result<Next, Error> {
        let Some(known) = self.graph.lock().get(uid).cloned() else {
            return Ok(Next::Done);
        };
        if !known.is_deleting() && self.is_kept(&known) {
            return Ok(Next::Done);
        }
        let view = self.view(&known.kind, known.meta.namespace.as_deref())?;
        let live = view
            .find(&known.meta.name)
            .await?
            .filter(|item| item.uid() == uid);
        let Some(live) = live else {
            return Ok(Next::Done);
        };
        let node = Node {
            kind: known.kind.clone(),
            meta: slim(&live),
        };
        if node.is_orphaning() {
            self.orphan(&node).await?;
            return self.remove_finalizer(&view, &node, ORPHAN).await;
        }
        if node.awaits_dependents() {
            let blocking: Vec<(String, bool)> = {
                let graph = self.graph.lock();
                let blocking = graph.blocking(uid).into_iter();
                blocking
                    .map(|node| (node.meta.uid.clone(), node.awaits_dependents()))
                    .collect()
            };
            if blocking.is_empty() {
                return self.remove_finalizer(&view, &node, FOREGROUND).await;
            }
            // Dependents that wait themselves are reconciled when the objects that
            // they wait for are deleted.
            let affected = blocking.into_iter().filter(|(_, waits)| !waits);
            affected.for_each(|(uid, _)| self.queue.add(uid));
            return Ok(Next::Done);
        }
        self.report_owners_elsewhere(&node);
        self.collect(&view, &node).await
    }

    /// Records an event for each owner that exists, but in another namespace.
    fn report_owners_elsewhere(&self, node: &Node) {
        let graph = self.graph.lock();
        let owners = node.meta.owner_references.iter();
        let elsewhere = owners.filter(|owner| {
            let found = graph.get(&owner.uid);
            found.is_some_and(|found| !found.is_in_reach_of(node))
        });
        let namespace = node.meta.namespace.clone().unwrap_or_default();
        for owner in elsewhere {
            let OwnerReference {
                api_version,
                kind,
                name,
                uid,
                ..
            } = owner;
            let message = format!(
                "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}] does not exist in namespace {namespace:?}"
            );
            let subject = Subject {
                api_version: node.kind.api_version().into(),
                kind: node.kind.gvk.kind.to_string().into(),
                namespace: namespace.clone(),
                name: node.meta.name.clone(),
                uid: node.meta.uid.clone(),
            };
            let reason = "OwnerRefInvalidNamespace";
            self.recorder
                .record_event(subject, Severity::Warning, reason, &message);
        }
    }

    /// Returns true if the graph alone shows that the object must be kept.
    fn is_kept(&self, node: &Node) -> bool {
        let (graph, kinds) = (self.graph.lock(), self.kinds.lock());
        node.meta.owner_references.iter().all(|owner| {
            kinds.find(owner).is_none()
                || graph
                    .get(&owner.uid)
                    .is_some_and(|found| !found.is_deleting() && found.is_owner_of(node, owner))
        })
    }

    async fn collect(&self, view: &View<Any>, node: &Node) -> Result<Next, Error> {
        let mut states = Vec::new();
        for owner in &node.meta.owner_references {
            states.push(self.owner_state(node, owner).await?);
        }
        let uid = &node.meta.uid;
        let dependents = self.graph.lock().state_of_dependents(uid);
        match decide(node, &states, dependents) {
            Action::Keep => {}
            Action::RemoveOwners(owners) => remove_owners(view, &node.meta, &owners).await?,
            Action::Delete(propagation) => delete(view, &node.meta, propagation).await?,
            Action::BreakCycle => {
                let owners = json!(unblocking_owners(&node.meta));
                if let Some(changed) = change(view, &node.meta, "ownerReferences", owners).await? {
                    delete(view, &changed, Propagation::Foreground).await?;
                }
            }
        }
        Ok(Next::Done)
    }

    /// Asks the server for an owner. An owner that cannot be looked up counts as
    /// existing, because keeping an object is safer than deleting it.
    async fn owner_state(&self, node: &Node, owner: &OwnerReference) -> Result<OwnerState, Error> {
        let known = self.kinds.lock().find(owner);
        let Some(Known {
            kind,
            is_aggregated,
        }) = known
        else {
            return Ok(OwnerState::Solid);
        };
        let namespace = node.meta.namespace.as_deref();
        if kind.is_namespaced() && namespace.is_none() {
            return Ok(OwnerState::Solid);
        }
        let found = self.view(&kind, namespace)?.find(&owner.name).await?;
        let Some(found) = found.filter(|item| item.uid() == owner.uid) else {
            let is_certain = !is_aggregated || self.is_served(&kind).await?;
            return Ok(match is_certain {
                true => OwnerState::Absent,
                false => OwnerState::Solid,
            });
        };
        let found = Node {
            kind,
            meta: slim(&found),
        };
        let waits = found.awaits_dependents() && owner.block_owner_deletion == Some(true);
        Ok(if waits {
            OwnerState::Waiting
        } else {
            OwnerState::Solid
        })
    }

    /// Returns true if an aggregated API server serves a kind. Without its APIService, every object
    /// is reported as not found.
    async fn is_served(&self, kind: &KindInfo) -> Result<bool, Error> {
        match self.cluster.proxy().get(kind.api_path(), &[]).await {
            Ok(document) => {
                let mut resources = document["resources"].as_array().into_iter().flatten();
                Ok(resources.any(|resource| resource["name"] == kind.plural.as_ref()))
            }
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes the owner from all its dependents. The dependents are listed,
    /// because the watch may not have reported all of them yet.
    async fn orphan(&self, owner: &Node) -> Result<(), Error> {
        let uids = [owner.meta.uid.clone()];
        let namespace = owner.meta.namespace.as_deref();
        let kinds = self.kinds.lock().of_dependents(&owner.kind);
        for Known {
            kind,
            is_aggregated,
        } in kinds
        {
            let items = match self.view(&kind, namespace)?.list().await {
                Ok(list) => list.items,
                // The definition of a custom kind was deleted in the meantime,
                // together with its objects.
                Err(error) if error.is_not_found() => continue,
                // An aggregated API server that does not respond delays only owners of its own
                // objects.
                Err(_) if is_aggregated && !self.has_dependents(&uids[0], &kind) => continue,
                Err(error) => return Err(error),
            };
            for item in items {
                let mut owners = item.meta().owner_references.iter();
                if owners.any(|owner| owner.uid == uids[0]) {
                    let view = self.view(&kind, item.namespace())?;
                    remove_owners(&view, item.meta(), &uids).await?;
                }
            }
        }
        Ok(())
    }

    /// Returns true if an owner has known dependents of a kind.
    fn has_dependents(&self, owner: &str, kind: &Arc<KindInfo>) -> bool {
        let graph = self.graph.lock();
        let mut dependents = graph.dependents(owner);
        dependents.any(|node| Arc::ptr_eq(&node.kind, kind))
    }

    async fn remove_finalizer(
        &self,
        view: &View<Any>,
        node: &Node,
        finalizer: &str,
    ) -> Result<Next, Error> {
        let left: Vec<&String> = node
            .meta
            .finalizers
            .iter()
            .filter(|name| *name != finalizer)
            .collect();
        change(view, &node.meta, "finalizers", json!(left)).await?;
        Ok(Next::Done)
    }
}
