//! What an embedded cluster shall be like.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use longshore_node::{FillVolumes, ImageEntrypoint, LogLimits};

/// Options of [`EmbeddedCluster::start`](crate::EmbeddedCluster::start). The
/// default is an ephemeral cluster in process, with a node, without sockets.
#[derive(Debug, Clone)]
pub struct Options {
    /// Keeps all objects in memory; nothing survives a stop.
    pub ephemeral: bool,
    /// The folder of the instance; locked while the cluster runs. `None`: a
    /// temporary folder, removed by the stop.
    pub data_dir: Option<PathBuf>,
    /// Where to serve TLS; must be a loopback address. Port 0 takes the port
    /// the instance had before, if it is free, or else any free one. `None`:
    /// no socket.
    pub listen: Option<SocketAddr>,
    /// Where to write the kubeconfig, besides the instance's folder. Only with
    /// `listen`.
    pub kubeconfig: Option<PathBuf>,
    /// Whether controllers act on what is stored. Without them, and without
    /// `node`, it is an API server alone: for tests of one's own controllers.
    pub controllers: bool,
    /// Whether a node runs pods, as local processes.
    pub node: bool,
    /// Whether faults on demand can be had over HTTP, at
    /// `/longshore.dev/v1/faults` of the endpoint: for tests of programs in
    /// other languages. [`EmbeddedCluster::faults`] is there without it.
    ///
    /// [`EmbeddedCluster::faults`]: crate::EmbeddedCluster::faults
    pub faults: bool,
    /// A folder that comes first in the `PATH` of pods: that of the program
    /// `longshore`.
    pub program_dir: Option<PathBuf>,
    /// How much the node keeps of each container's log.
    pub log_limits: LogLimits,
    /// What containers run that name neither a command nor args, by their image.
    pub image_entrypoints: Vec<ImageEntrypoint>,
    /// Where the node finds the kernel's files about GPUs: `/`, or in a test a
    /// folder that looks like it.
    pub device_root: PathBuf,
    /// Fills new volumes of pods.
    pub fill_volumes: Option<Arc<dyn FillVolumes>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ephemeral: true,
            data_dir: None,
            listen: None,
            kubeconfig: None,
            controllers: true,
            node: true,
            faults: false,
            program_dir: None,
            log_limits: LogLimits::default(),
            image_entrypoints: Vec::new(),
            device_root: PathBuf::from("/"),
            fill_volumes: None,
        }
    }
}

impl Options {
    /// The API server alone, in memory: what [`start_server`] starts.
    ///
    /// [`start_server`]: crate::start_server
    #[must_use]
    pub fn server() -> Self {
        Self {
            controllers: false,
            node: false,
            ..Self::default()
        }
    }
}
