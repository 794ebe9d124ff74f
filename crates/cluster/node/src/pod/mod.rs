//! The lifecycle of a pod on the node. Each pod has a task.

mod earlier;
mod guard;
mod messages;
mod processes;
mod record;
mod resize;
mod start;
mod status;
mod termination;
mod worker;

use std::{net::Ipv4Addr, path::PathBuf, sync::Arc};

use k8s_openapi::api::core::v1::Pod;
use longshore_client::Cluster;
use longshore_clock::Clock;
use longshore_services::{HostPorts, Services};
use tokio::sync::watch;

use crate::{
    ApiAccess, CollectFiles, FillVolumes, LastEnd,
    address::Addresses,
    allocations::Allocations,
    cgroups::Cgroups,
    data_folder,
    devices::Devices,
    dns::ClusterDns,
    events::Events,
    host_ports::AdmittedPorts,
    hosts::Hosts,
    images::{ImageEntrypoints, ImageUsers},
    logs::LogStore,
    machine,
    remover::Remover,
    sandbox::Spawner,
    security::AgentPrivileges,
    streams::RunningContainers,
    usage::UsageMeter,
};

pub(crate) use earlier::EarlierPods;
pub(crate) use guard::run;
pub(crate) use worker::Message;

/// The directory of a pod's volumes in the pod's directory.
pub(crate) const VOLUMES_DIR: &str = "volumes";
/// The directory of the containers' working directories in the pod's directory.
pub(crate) const WORK_DIR: &str = "work";
/// The directory of the containers' termination messages in the pod's directory.
const MESSAGES_DIR: &str = "messages";

/// Returns true if the end of a pod was reported.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    status::Phase::of(pod).is_terminal()
}

/// State that all pods of a node share. The nodes of one machine share the values in an `Arc`, and
/// the values whose clones share their state.
pub(crate) struct Shared {
    pub(crate) cluster: Cluster,
    /// The name of the node.
    pub(crate) node: String,
    /// The address of the node.
    pub(crate) address: Ipv4Addr,
    pub(crate) data: PathBuf,
    pub(crate) path_prepend: Option<PathBuf>,
    /// The address of the API for pods.
    pub(crate) access: Option<ApiAccess>,
    pub(crate) machine: machine::MachineInfo,
    pub(crate) devices: Devices,
    pub(crate) image_entrypoints: Arc<ImageEntrypoints>,
    pub(crate) image_users: Arc<ImageUsers>,
    pub(crate) spawner: Arc<Spawner>,
    /// Enforces the limits of pods.
    pub(crate) cgroups: Cgroups,
    /// The CPU and memory that are allocated to pods.
    pub(crate) allocations: Allocations,
    /// The privileges of the agent over containers' processes.
    pub(crate) agent_privileges: Arc<AgentPrivileges>,
    pub(crate) addresses: Arc<Addresses>,
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) services: Services,
    /// Ports of the node that are forwarded to pods.
    pub(crate) host_ports: HostPorts,
    /// Ports of the node that pods have requested.
    pub(crate) admitted_ports: AdmittedPorts,
    /// The cluster's DNS server.
    pub(crate) dns: Option<ClusterDns>,
    pub(crate) logs: Arc<LogStore>,
    pub(crate) running_containers: Arc<RunningContainers>,
    pub(crate) events: Events,
    pub(crate) usage: Arc<UsageMeter>,
    pub(crate) fill_volumes: Option<Arc<dyn FillVolumes>>,
    pub(crate) collect_files: Option<Arc<dyn CollectFiles>>,
    pub(crate) remover: Arc<Remover>,
    /// Becomes true when the agent stops.
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) last_end: Option<LastEnd>,
    /// The pods that ended with an earlier agent.
    pub(crate) earlier: Arc<EarlierPods>,
    /// The clock of the cluster.
    pub(crate) clock: Clock,
}

impl Shared {
    /// Returns a pod's directory.
    pub(crate) fn pod_folder(&self, uid: &str) -> PathBuf {
        self.data.join(data_folder::PODS).join(uid)
    }

    /// Returns the empty directory at which each container mounts its new root, in its own
    /// mount namespace.
    pub(crate) fn mount_base(&self) -> PathBuf {
        self.data.join(data_folder::MOUNT_BASE)
    }

    /// Removes all files of a deleted pod. If that takes long, the rest is removed later.
    pub(crate) fn remove_files(&self, uid: &str) {
        self.logs.remove_pod(uid);
        self.remover.remove(self.pod_folder(uid));
    }

    /// Removes the volumes and other writable files of a completed pod. As with the kubelet, its
    /// containers do not start again, but its object may exist for a long time.
    pub(crate) fn tear_down(&self, uid: &str) {
        let folder = self.pod_folder(uid);
        for name in [VOLUMES_DIR, WORK_DIR, MESSAGES_DIR] {
            self.remover.remove(folder.join(name));
        }
    }
}
