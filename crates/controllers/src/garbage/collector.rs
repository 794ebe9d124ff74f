//! Deletes what has lost its owners. Before anything is deleted or kept alive by
//! a finalizer, the server itself is asked: a cache that lags must not cost an
//! object.

use std::sync::Arc;

use longshore_client::{
    Cache, Change, Cluster, Error, Kind, OwnerReference, Propagation, View, kinds::Any,
};
use longshore_model::KindInfo;
use parking_lot::Mutex;
use serde_json::json;

use super::{
    graph::{FOREGROUND, Fate, Graph, Node, ORPHAN, OwnerState, fate, unblocking_owners},
    kinds::{self, Kinds},
    metadata::{change, delete, slim, strip},
};
use crate::{
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "garbage";
/// Objects worked on at a time.
const WORKERS: usize = 8;

pub(super) struct Collector {
    cluster: Cluster,
    graph: Mutex<Graph>,
    kinds: Mutex<Kinds>,
    queue: Queue<String>,
}

impl Collector {
    pub(super) fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            graph: Mutex::default(),
            kinds: Mutex::new(Kinds::builtin()),
            queue: Queue::new(),
        }
    }

    /// Looks at what is queued, until the feeds end.
    pub(super) async fn work(&self, feeds: impl Future) {
        let reconcile = async |uid: String| self.reconcile(&uid).await;
        reconcile::run(NAME, WORKERS, &self.queue, feeds, reconcile).await;
    }

    /// As [`Collector::feed`], of a built-in kind.
    pub(super) async fn feed_builtin<K: Kind + Default>(&self, cache: &Cache<K>) {
        let kind = K::default();
        let gvk = &kind.info().gvk;
        if let Some(info) = longshore_model::kind::builtin(&gvk.group, &gvk.kind) {
            self.feed(&Arc::new(info.clone()), cache).await;
        }
    }

    /// Learns of the objects of a kind, for as long as the cache lives.
    pub(super) async fn feed<K: Kind>(&self, kind: &Arc<KindInfo>, cache: &Cache<K>) {
        let note = |_, change: &Change<K>| {
            let look = match change {
                Change::Upsert(item) => self.graph.lock().put(Node {
                    kind: kind.clone(),
                    meta: slim(item),
                }),
                Change::Gone(item) => self.graph.lock().remove(item.uid()),
            };
            look.into_iter().for_each(|uid| self.queue.add(uid));
        };
        feed(NAME, cache, note).await;
    }

    /// A kind is served now: what it owns can be looked at.
    pub(super) fn learn(&self, kind: &Arc<KindInfo>) {
        self.kinds.lock().add(kind);
        let has_such = |node: &Node| {
            let mut owners = node.meta.owner_references.iter();
            owners.any(|owner| kinds::is_of(owner, kind))
        };
        let look = self.graph.lock().uids(has_such);
        look.into_iter().for_each(|uid| self.queue.add(uid));
    }

    /// A kind is served no longer, and all its objects are gone.
    pub(super) fn forget(&self, kind: &Arc<KindInfo>) {
        let look: Vec<String> = {
            let mut graph = self.graph.lock();
            let gone = graph.uids(|node| Arc::ptr_eq(&node.kind, kind));
            gone.iter().flat_map(|uid| graph.remove(uid)).collect()
        };
        look.into_iter().for_each(|uid| self.queue.add(uid));
    }

    pub(super) fn view(
        &self,
        kind: &Arc<KindInfo>,
        namespace: Option<&str>,
    ) -> Result<View<Any>, Error> {
        let view = self.cluster.view_of(Any::new(kind.clone()));
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
            return self.take_finalizer_off(&view, &node, ORPHAN).await;
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
                return self.take_finalizer_off(&view, &node, FOREGROUND).await;
            }
            // Those that wait themselves are looked at when what they wait for goes.
            let look = blocking.into_iter().filter(|(_, waits)| !waits);
            look.for_each(|(uid, _)| self.queue.add(uid));
            return Ok(Next::Done);
        }
        self.collect(&view, &node).await
    }

    /// Whether the graph alone says that the object stays.
    fn is_kept(&self, node: &Node) -> bool {
        let (graph, kinds) = (self.graph.lock(), self.kinds.lock());
        node.meta.owner_references.iter().all(|owner| {
            kinds.find(owner).is_none()
                || graph
                    .get(&owner.uid)
                    .is_some_and(|node| !node.is_deleting())
        })
    }

    async fn collect(&self, view: &View<Any>, node: &Node) -> Result<Next, Error> {
        let mut states = Vec::new();
        for owner in &node.meta.owner_references {
            states.push(self.owner_state(node, owner).await?);
        }
        let uid = &node.meta.uid;
        let dependents = self.graph.lock().state_of_dependents(uid);
        match fate(node, &states, dependents) {
            Fate::Keep => {}
            Fate::Strip(owners) => strip(view, &node.meta, &owners).await?,
            Fate::Delete(propagation) => delete(view, &node.meta, propagation).await?,
            Fate::BreakCircle => {
                let owners = json!(unblocking_owners(&node.meta));
                if let Some(changed) = change(view, &node.meta, "ownerReferences", owners).await? {
                    delete(view, &changed, Propagation::Foreground).await?;
                }
            }
        }
        Ok(Next::Done)
    }

    /// Asks the server for an owner. What cannot be asked for counts as there:
    /// better an object too many than one too few.
    async fn owner_state(&self, node: &Node, owner: &OwnerReference) -> Result<OwnerState, Error> {
        let Some(kind) = self.kinds.lock().find(owner) else {
            return Ok(OwnerState::Solid);
        };
        let namespace = node.meta.namespace.as_deref();
        if kind.is_namespaced() && namespace.is_none() {
            return Ok(OwnerState::Solid);
        }
        let found = self.view(&kind, namespace)?.find(&owner.name).await?;
        let Some(found) = found.filter(|item| item.uid() == owner.uid) else {
            return Ok(OwnerState::Gone);
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

    /// Takes the owner out of all its dependents. They are listed anew: one
    /// that the watch has not shown yet would be deleted later.
    async fn orphan(&self, owner: &Node) -> Result<(), Error> {
        let uids = [owner.meta.uid.clone()];
        let namespace = owner.meta.namespace.as_deref();
        let kinds = self.kinds.lock().of_dependents(&owner.kind);
        for kind in kinds {
            let items = match self.view(&kind, namespace)?.list().await {
                Ok(list) => list.items,
                // A custom kind that was deleted in between, and its objects with it.
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error),
            };
            for item in items {
                let mut owners = item.meta().owner_references.iter();
                if owners.any(|owner| owner.uid == uids[0]) {
                    let view = self.view(&kind, item.namespace())?;
                    strip(&view, item.meta(), &uids).await?;
                }
            }
        }
        Ok(())
    }

    async fn take_finalizer_off(
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
