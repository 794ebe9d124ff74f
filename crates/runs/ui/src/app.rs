//! The state that all requests share.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use longshore_client::Cluster;
use longshore_launcher::{explain::Explanation, run_outputs::LocalOutputs};
use tokio::sync::Semaphore;

use crate::{
    Options, RemoveRuns,
    access::{Session, Sessions},
    live::Feed,
    logs::Logs,
    pages::Frame,
};

/// The maximum number of explanations and lists of objects that are read at the same time.
const QUERIES: usize = 4;

/// The state that all requests share.
pub(crate) struct App {
    pub(crate) cluster: Cluster,
    pub(crate) cluster_name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) outputs: Option<LocalOutputs>,
    pub(crate) complete: Option<fn(&mut Explanation)>,
    pub(crate) removal: Arc<dyn RemoveRuns>,
    pub(crate) address: SocketAddr,
    /// The random path of the pages.
    pub(crate) base: String,
    pub(crate) feed: Feed,
    pub(crate) logs: Logs,
    pub(crate) queries: Semaphore,
    /// Retries, one after the other.
    pub(crate) retries: Semaphore,
    /// True if all objects of the cluster are shown.
    pub(crate) browse: bool,
    sessions: Mutex<Sessions>,
}

impl App {
    pub(crate) fn new(
        cluster: Cluster,
        options: Options,
        removal: Arc<dyn RemoveRuns>,
        address: SocketAddr,
        feed: Feed,
    ) -> Self {
        Self {
            logs: Logs::new(cluster.clone()),
            cluster,
            cluster_name: options.cluster,
            namespace: options.namespace,
            outputs: options.outputs,
            complete: options.complete,
            removal,
            address,
            base: crate::access::random_text(),
            feed,
            queries: Semaphore::new(QUERIES),
            retries: Semaphore::new(1),
            browse: options.browse,
            sessions: Mutex::default(),
        }
    }

    /// The links and sessions.
    pub(crate) fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Data for the frame of each page.
    pub(crate) fn frame<'a>(&'a self, session: &'a Session) -> Frame<'a> {
        Frame {
            base: &self.base,
            csrf: session.csrf(),
            cluster: &self.cluster_name,
            namespace: self.namespace.as_deref(),
            has_objects: self.browse,
        }
    }
}
