//! The node authorizer: decides which requests nodes may send, like Kubernetes' node authorizer. A
//! node may read the Secrets, ConfigMaps, claims, volumes and accounts of pods that are bound to
//! it, and write its own Node, Lease and CSINode. Roles may allow further requests.

mod feed;
mod graph;
mod pod;
mod rules;
mod target;
#[cfg(test)]
mod tests;
mod volume;

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use longshore_engine::{Engine, ReadVersion};
use longshore_model::KindInfo;
use serde::Deserialize;

pub(crate) use pod::claim_of;
pub(super) use rules::Verdict;

use self::{
    feed::Feed,
    rules::Related,
    target::{Target, Used},
    volume::Volume,
};
use super::attributes::Attributes;

/// Decides about the requests of nodes.
pub(super) struct NodeAuthorizer {
    engine: Engine,
    /// The kinds that the feed reads.
    kinds: Vec<Arc<KindInfo>>,
    feed: Mutex<Feed>,
    /// The last change that the feed has read.
    seen: AtomicU64,
}

impl NodeAuthorizer {
    pub(super) fn new(engine: Engine) -> Self {
        let feed = Feed::new(&engine);
        Self {
            kinds: feed.kinds(),
            feed: Mutex::new(feed),
            seen: AtomicU64::new(0),
            engine,
        }
    }

    /// Decides whether a node may send a request.
    pub(super) fn decide(&self, node: &str, request: &Attributes) -> Verdict {
        rules::decide(node, request, |related, namespace, name| {
            self.is_related(node, related, (namespace, name))
        })
    }

    /// Returns true if changes of pods and volumes have to be read before a decision about a
    /// request.
    pub(super) fn is_behind(&self, request: &Attributes) -> bool {
        rules::needs_graph(request) && self.seen.load(Ordering::Acquire) < self.last_change()
    }

    /// Reads the changes of pods and volumes.
    pub(super) fn catch_up(&self) {
        drop(self.current());
    }

    fn last_change(&self) -> u64 {
        // Zero means that the feed has not been read yet.
        self.engine.last_change(&self.kinds).max(1)
    }

    /// The feed, with all changes until now.
    fn current(&self) -> MutexGuard<'_, Feed> {
        let mut feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
        // Read before the changes: a change in between is read again, which has no effect.
        let last_change = self.last_change();
        if self.seen.load(Ordering::Acquire) < last_change && feed.catch_up(&self.engine) {
            self.seen.store(last_change, Ordering::Release);
        }
        feed
    }

    fn is_related(&self, node: &str, related: Related, (namespace, name): (&str, &str)) -> bool {
        let used = match related {
            Related::Secret => Used::Secret,
            Related::ConfigMap => Used::ConfigMap,
            Related::Claim => Used::Claim,
            Related::ResourceClaim => Used::ResourceClaim,
            Related::ServiceAccount => Used::ServiceAccount,
            Related::Volume => return namespace.is_empty() && self.has_volume(node, name),
            Related::Pod => return self.names_node("", "pods", (namespace, name), node),
            Related::Attachment => {
                let group = "storage.k8s.io";
                return self.names_node(group, "volumeattachments", (namespace, name), node);
            }
            Related::Slice => {
                let group = "resource.k8s.io";
                return self.names_node(group, "resourceslices", (namespace, name), node);
            }
            Related::CertificateRequest => {
                let group = "certificates.k8s.io";
                return self.names_node(group, "podcertificaterequests", (namespace, name), node);
            }
        };
        self.current()
            .graph
            .is_used(node, &Target::new(used, namespace, name))
    }

    /// Returns true if a volume is bound to a claim of a pod of the node.
    fn has_volume(&self, node: &str, name: &str) -> bool {
        let Some(json) = self.read("", "persistentvolumes", ("", name)) else {
            return false;
        };
        match Volume::read(&json) {
            Some(Volume { claim, .. }) => self.current().graph.is_used(node, &claim),
            None => false,
        }
    }

    /// Returns true if an object has the node in `spec.nodeName`.
    fn names_node(&self, group: &str, plural: &str, place: (&str, &str), node: &str) -> bool {
        #[derive(Deserialize)]
        struct Facts {
            spec: Spec,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Spec {
            node_name: Option<String>,
        }
        let Some(json) = self.read(group, plural, place) else {
            return false;
        };
        let facts: Result<Facts, _> = serde_json::from_slice(&json);
        facts.is_ok_and(|facts| facts.spec.node_name.as_deref() == Some(node))
    }

    /// The JSON of an object.
    fn read(
        &self,
        group: &str,
        plural: &str,
        (namespace, name): (&str, &str),
    ) -> Option<bytes::Bytes> {
        let kind = self.engine.find(group, "v1", plural)?;
        if kind.is_namespaced() == namespace.is_empty() {
            return None;
        }
        let found = self
            .engine
            .get(&kind, Some(namespace), name, ReadVersion::Latest);
        Some(found.ok()?.bytes().clone())
    }
}
