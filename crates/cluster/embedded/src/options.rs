//! The options of an embedded cluster.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use longshore_apiserver::AuthorizationMode;
use longshore_clock::Clock;
use longshore_engine::Snapshot;
use longshore_node::{CollectFiles, FillVolumes, ImageEntrypoint, ImageUser, LogLimits};

use crate::AuditOptions;

/// The options of [`EmbeddedCluster::start`](crate::EmbeddedCluster::start). The
/// default is an ephemeral cluster in this process, with one node and without
/// sockets.
#[derive(Debug, Clone)]
pub struct Options {
    /// Keep all objects in memory. They are lost when the cluster stops.
    pub ephemeral: bool,
    /// The folder of the instance, locked while the cluster runs. `None` uses a
    /// temporary folder, which is removed when the cluster stops.
    pub data_dir: Option<PathBuf>,
    /// The address to serve TLS on. It must be a loopback address. Port 0 uses the instance's
    /// previous port if it is free, otherwise any free port. With `None`, the cluster opens no
    /// sockets.
    pub listen: Option<SocketAddr>,
    /// An additional path for the kubeconfig, which is always written to the
    /// instance's folder. Requires `listen`.
    pub kubeconfig: Option<PathBuf>,
    /// Start with the objects of another cluster, unchanged. If the default roles are missing,
    /// because the other cluster had an authorization mode without roles, they are added. Requires
    /// `ephemeral`.
    pub snapshot: Option<Snapshot>,
    /// The clock of the cluster: its API server, its controllers and its nodes. With a manual
    /// clock, time stands still until a test advances it ([`EmbeddedCluster::clock`]). Clusters
    /// with clones of a clock share its time. The validity of certificates, and timeouts of
    /// requests and watches, always use the system's clock.
    ///
    /// [`EmbeddedCluster::clock`]: crate::EmbeddedCluster::clock
    pub clock: Clock,
    /// Run the controllers. Without controllers and nodes, only the API server runs, for tests of
    /// your own controllers.
    pub controllers: bool,
    /// The number of nodes that run pods as local processes: 0 for none, 1, or more to test
    /// behavior on several nodes. The first is [`NAME`](crate::NAME), the others `longshore-2` and
    /// so on. At most [`MAX_NODES`](crate::MAX_NODES).
    pub nodes: u8,
    /// Serve the fault injection over HTTP, at `/longshore.dev/v1/faults` of the
    /// endpoint, for tests of programs in other languages.
    /// [`EmbeddedCluster::faults`] works without it.
    ///
    /// [`EmbeddedCluster::faults`]: crate::EmbeddedCluster::faults
    pub faults: bool,
    /// The authorization mode for users who are not administrators, such as pods with the tokens of
    /// their service accounts.
    pub authorization: AuthorizationMode,
    /// Record requests in an audit log.
    pub audit: Option<AuditOptions>,
    /// The folder of the `longshore` program. It comes first in the `PATH` of pods.
    pub program_dir: Option<PathBuf>,
    /// The limits of each container's log that the nodes keep.
    pub log_limits: LogLimits,
    /// Keep the logs of a Job's pods that were deleted until the Job is removed.
    pub keep_logs: bool,
    /// The entrypoints by image, for containers without a command and arguments.
    pub image_entrypoints: Vec<ImageEntrypoint>,
    /// The users by image, for containers without `runAsUser`.
    pub image_users: Vec<ImageUser>,
    /// The root folder of the kernel's files about GPUs: `/`, or a copy of their
    /// structure in a test.
    pub device_root: PathBuf,
    /// Fills new volumes of pods.
    pub fill_volumes: Option<Arc<dyn FillVolumes>>,
    /// Reads the volumes of pods that have ended.
    pub collect_files: Option<Arc<dyn CollectFiles>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ephemeral: true,
            data_dir: None,
            listen: None,
            kubeconfig: None,
            snapshot: None,
            clock: Clock::system(),
            controllers: true,
            nodes: 1,
            faults: false,
            authorization: AuthorizationMode::default(),
            audit: None,
            program_dir: None,
            log_limits: LogLimits::default(),
            keep_logs: true,
            image_entrypoints: Vec::new(),
            image_users: Vec::new(),
            device_root: PathBuf::from("/"),
            fill_volumes: None,
            collect_files: None,
        }
    }
}

impl Options {
    /// Returns the options of [`start_server`]: only the API server, in memory.
    ///
    /// [`start_server`]: crate::start_server
    #[must_use]
    pub fn server() -> Self {
        Self {
            controllers: false,
            nodes: 0,
            ..Self::default()
        }
    }
}
