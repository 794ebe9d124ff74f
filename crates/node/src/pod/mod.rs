//! A pod's life on the node: one task for each pod.

mod record;
mod start;
mod status;
mod worker;

use std::{path::PathBuf, sync::Arc};

use longshore_client::Cluster;
use tokio::sync::watch;

use crate::{
    ApiAccess, address::Addresses, events::Events, hosts::Hosts, logs::LogStore, machine,
    sandbox::Spawner, streams::Live,
};

pub(crate) use worker::{Message, run};

/// What all pods of a node share.
pub(crate) struct Shared {
    pub(crate) cluster: Cluster,
    pub(crate) node: String,
    pub(crate) data: PathBuf,
    pub(crate) path_prepend: Option<PathBuf>,
    /// How pods reach the API.
    pub(crate) access: Option<ApiAccess>,
    pub(crate) machine: machine::Facts,
    pub(crate) spawner: Spawner,
    pub(crate) addresses: Addresses,
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) logs: Arc<LogStore>,
    pub(crate) live: Live,
    pub(crate) events: Events,
    /// Comes true when the agent stops.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl Shared {
    /// A pod's own folder.
    pub(crate) fn pod_folder(&self, uid: &str) -> PathBuf {
        self.data.join("pods").join(uid)
    }
}
