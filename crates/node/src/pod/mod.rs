//! A pod's life on the node: one task for each pod.

mod guard;
mod record;
mod start;
mod status;
mod worker;

use std::{path::PathBuf, sync::Arc};

use longshore_client::Cluster;
use tokio::sync::watch;

use crate::{
    ApiAccess, FillVolumes, LastEnd, access, address::Addresses, devices::Devices, events::Events,
    hosts::Hosts, images::ImageEntrypoints, logs::LogStore, machine, remover::Remover,
    sandbox::Spawner, security::Powers, streams::Live,
};

pub(crate) use guard::run;
pub(crate) use worker::Message;

/// The folder of a pod's volumes, in its own.
pub(crate) const VOLUMES: &str = "volumes";
/// The folder of containers' working folders, in the pod's own.
pub(crate) const WORK: &str = "work";

/// What all pods of a node share.
pub(crate) struct Shared {
    pub(crate) cluster: Cluster,
    pub(crate) node: String,
    pub(crate) data: PathBuf,
    pub(crate) path_prepend: Option<PathBuf>,
    /// How pods reach the API.
    pub(crate) access: Option<ApiAccess>,
    pub(crate) machine: machine::Facts,
    pub(crate) devices: Devices,
    pub(crate) image_entrypoints: ImageEntrypoints,
    pub(crate) spawner: Spawner,
    /// What it may do to containers' processes.
    pub(crate) powers: Powers,
    pub(crate) addresses: Addresses,
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) logs: Arc<LogStore>,
    pub(crate) live: Live,
    pub(crate) events: Events,
    pub(crate) fill_volumes: Option<Arc<dyn FillVolumes>>,
    pub(crate) remover: Remover,
    /// Comes true when the agent stops.
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) last_end: Option<LastEnd>,
}

impl Shared {
    /// A pod's own folder.
    pub(crate) fn pod_folder(&self, uid: &str) -> PathBuf {
        self.data.join("pods").join(uid)
    }

    /// Removes the volumes of a pod that is over, and what else its containers could
    /// write to in its folder: as with the kubelet, no container starts again, and the
    /// object may stay for long.
    pub(crate) fn tear_down(&self, uid: &str) {
        let folder = self.pod_folder(uid);
        self.remover.remove(access::place(&folder));
        for name in [VOLUMES, WORK] {
            self.remover.remove(folder.join(name));
        }
    }
}
