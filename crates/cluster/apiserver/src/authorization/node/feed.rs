//! Keeps the relations of nodes up to date: reads the changes of pods and volumes since the last
//! request that needed them. If no node sends requests, changes are not read.

use std::sync::Arc;

use longshore_builtin::PodReferences;
use longshore_engine::{Engine, Error, Object, Watch, WatchEvent, WatchRequest, WatchStart};
use longshore_model::KindInfo;

use super::{graph::Graph, pod::PodUse, volume::Volume};

/// Number of times that the objects of a kind are read again if changes were compacted meanwhile.
const MAX_ATTEMPTS: usize = 3;

/// The pods and volumes of a cluster, read until their last known changes.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) graph: Graph,
    sources: Vec<Source>,
}

/// The objects of a kind.
#[derive(Debug)]
struct Source {
    kind: Arc<KindInfo>,
    /// `None` before the first read, and after an error.
    watch: Option<Watch>,
    /// Removes all objects of the kind.
    clear: fn(&mut Graph),
    /// Records the last state of an object. The flag is true if the object still exists.
    record: fn(&mut Graph, &Object, bool),
}

impl Feed {
    pub(super) fn new(engine: &Engine) -> Self {
        let source = |plural: &str, clear, record| {
            Some(Source {
                kind: engine.find("", "v1", plural)?,
                watch: None,
                clear,
                record,
            })
        };
        let pods = source("pods", Graph::clear_pods, record_pod);
        let volumes = source("persistentvolumes", Graph::clear_volumes, record_volume);
        Self {
            graph: Graph::default(),
            sources: pods.into_iter().chain(volumes).collect(),
        }
    }

    /// The kinds whose changes are read.
    pub(super) fn kinds(&self) -> Vec<Arc<KindInfo>> {
        let kinds = self.sources.iter().map(|source| source.kind.clone());
        kinds.collect()
    }

    /// Reads all changes until now. Returns false if they cannot be read: then no objects of this
    /// kind are known.
    pub(super) fn catch_up(&mut self, engine: &Engine) -> bool {
        let mut is_current = true;
        for source in &mut self.sources {
            is_current &= source.catch_up(engine, &mut self.graph);
        }
        is_current
    }
}

impl Source {
    fn catch_up(&mut self, engine: &Engine, graph: &mut Graph) -> bool {
        for _ in 0..MAX_ATTEMPTS {
            match self.read(engine, graph) {
                Ok(()) => return true,
                Err(error) => {
                    tracing::debug!(%error, kind = %self.kind.gvk.kind, "read again for the node authorizer");
                    self.watch = None;
                }
            }
        }
        tracing::error!(kind = %self.kind.gvk.kind, "the node authorizer cannot read the objects");
        (self.clear)(graph);
        false
    }

    fn read(&mut self, engine: &Engine, graph: &mut Graph) -> Result<(), Error> {
        let watch = match &mut self.watch {
            Some(watch) => watch,
            None => {
                (self.clear)(graph);
                let request = WatchRequest::of(self.kind.clone(), WatchStart::Latest);
                self.watch.insert(engine.watch(&request)?)
            }
        };
        while let Some(event) = watch.try_next()? {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    (self.record)(graph, &object, true);
                }
                WatchEvent::Deleted(object) => (self.record)(graph, &object, false),
                // These events are only sent on request.
                _ => {}
            }
        }
        Ok(())
    }
}

fn record_pod(graph: &mut Graph, pod: &Object, exists: bool) {
    let namespace = pod.namespace().unwrap_or_default();
    let used = || match serde_json::from_slice::<PodReferences>(pod.bytes()) {
        Ok(facts) => PodUse::of(&facts, namespace, pod.name()),
        Err(error) => {
            tracing::error!(%error, pod = pod.name(), "a stored pod cannot be read: its node gets no permissions");
            None
        }
    };
    graph.set_pod(namespace, pod.name(), exists.then(used).flatten());
}

fn record_volume(graph: &mut Graph, volume: &Object, exists: bool) {
    let read = || Volume::read(volume.bytes());
    graph.set_volume(volume.name(), exists.then(read).flatten());
}
