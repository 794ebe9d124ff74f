//! The cluster's process: starts the cluster, reports that it is ready, waits for a
//! reason to stop, and stops it.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use longshore_apiserver::AuthorizationMode;
use longshore_client::Cluster;
use longshore_clock::Clock;
use longshore_node::{CollectFiles, FillVolumes, ImageEntrypoint, ImageUser, LogLimits};
use rustix::fs::Mode;
use tokio::signal::unix::{SignalKind, signal};

use super::{End, POLL_INTERVAL, Record, find, usage, work};
use crate::{AuditOptions, EmbeddedCluster, Error, Layout, Options, files, lock::Lock, process};

/// The options of the cluster's process.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The instance's folder.
    pub dir: PathBuf,
    /// Keep objects in memory only.
    pub ephemeral: bool,
    /// An additional path for the kubeconfig.
    pub kubeconfig: Option<PathBuf>,
    /// Stop the cluster when no command uses it, see [`Usage`](super::Usage), and
    /// it has no work.
    pub on_demand: bool,
    /// Serve fault injection over HTTP, see [`Options::faults`].
    pub faults: bool,
    /// See [`Options::clock`].
    pub clock: Clock,
    /// See [`Options::authorization`].
    pub authorization: AuthorizationMode,
    /// See [`Options::audit`].
    pub audit: Option<AuditOptions>,
    /// A folder that comes first in the `PATH` of pods.
    pub program_dir: Option<PathBuf>,
    /// See [`Options::nodes`].
    pub nodes: u8,
    /// The limits of each container's log that the nodes keep.
    pub log_limits: LogLimits,
    /// See [`Options::image_entrypoints`].
    pub image_entrypoints: Vec<ImageEntrypoint>,
    /// See [`Options::image_users`].
    pub image_users: Vec<ImageUser>,
    /// See [`Options::device_root`].
    pub device_root: PathBuf,
    /// See [`Options::fill_volumes`].
    pub fill_volumes: Option<Arc<dyn FillVolumes>>,
    /// See [`Options::collect_files`].
    pub collect_files: Option<Arc<dyn CollectFiles>>,
}

/// Timeout for a cluster of the same folder that is stopping. After it, the folder counts as busy.
const HANDOVER_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval at which the cluster checks that its folder exists.
const FOLDER_INTERVAL: Duration = Duration::from_millis(500);

/// Runs a cluster until a signal (SIGTERM, SIGINT, SIGHUP) arrives. A cluster on demand also stops
/// when no command uses it and it has no work. Every cluster stops when its folder no longer
/// exists. `ready` is called once when the cluster is ready, with a client.
///
/// # Errors
/// Another process uses the folder ([`Error::Busy`]), a component failed to
/// start, or the folder was removed ([`Error::FolderGone`]).
pub async fn serve(
    options: ServeOptions,
    ready: impl FnOnce(&Record, Cluster),
) -> Result<(), Error> {
    // Signal handlers come first, so that no signal is lost.
    let mut end = Signals::listen()?;
    // Files for pods, such as /etc/hosts, must be readable to the users of their containers. The
    // data folder is private, whatever the modes of the files in it are.
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let layout = Layout::new(&options.dir);
    layout.create()?;
    wait_for_predecessor(&layout).await?;
    // Remove the file of an earlier cluster.
    files::remove_optional(&layout.busy())?;
    if options.on_demand {
        files::remove_optional(&layout.keep())?;
    }

    let start = EmbeddedCluster::start(Options {
        snapshot: None,
        clock: options.clock.clone(),
        ephemeral: options.ephemeral,
        data_dir: Some(options.dir.clone()),
        listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        kubeconfig: options.kubeconfig.clone(),
        controllers: true,
        nodes: options.nodes,
        faults: options.faults,
        authorization: options.authorization,
        audit: options.audit.clone(),
        program_dir: options.program_dir.clone(),
        log_limits: options.log_limits,
        keep_logs: true,
        image_entrypoints: options.image_entrypoints.clone(),
        image_users: options.image_users.clone(),
        device_root: options.device_root.clone(),
        fill_volumes: options.fill_volumes.clone(),
        collect_files: options.collect_files.clone(),
    });
    let cluster = start.await?;
    let layout = cluster.layout().clone();
    let written = write_record(&cluster, &options, &layout);
    // Held until the cluster has stopped, so that new commands wait for the next
    // cluster.
    let mut unused_lock = None;
    let result = match written {
        Ok(record) => {
            tracing::info!(url = record.url, pid = record.pid, "ready");
            ready(&record, cluster.internal());
            let unused = unused(&layout, options.on_demand, cluster.internal());
            tokio::select! {
                name = end.next() => {
                    tracing::info!(signal = name, "stopping");
                    match cluster.has_folder() {
                        true => End::of_this(name).write_unless_known(&layout),
                        false => Ok(()),
                    }
                }
                lock = unused => {
                    tracing::info!("stopping: no command uses the cluster, and it has no work");
                    unused_lock = Some(lock);
                    Ok(())
                }
                () = folder_gone(&cluster) => {
                    let error = Error::FolderGone(layout.dir().to_owned());
                    tracing::error!("{error}");
                    Err(error)
                }
            }
        }
        Err(error) => Err(error),
    };
    // If the folder was removed, a folder at the same path belongs to another cluster.
    let has_folder = cluster.has_folder();
    // The record is removed first, so that commands see a cluster that is stopping,
    // and wait.
    let removed = match has_folder {
        true => files::remove_optional(&layout.record()),
        false => Ok(()),
    };
    let begin = Instant::now();
    cluster.stop().await;
    if has_folder {
        let _ = files::remove_optional(&layout.keep());
    }
    drop(unused_lock);
    tracing::info!(milliseconds = begin.elapsed().as_millis(), "stopped");
    result.and(removed)
}

/// Resolves when the folder of the cluster is no longer at its path.
async fn folder_gone(cluster: &EmbeddedCluster) {
    let mut missing = 0;
    // Programs that replace a folder by a copy may rename it for a moment.
    while missing < 2 {
        tokio::time::sleep(FOLDER_INTERVAL).await;
        missing = if cluster.has_folder() { 0 } else { missing + 1 };
    }
}

/// Waits while another cluster of the folder is stopping.
async fn wait_for_predecessor(layout: &Layout) -> Result<(), Error> {
    let begin = Instant::now();
    loop {
        match find::try_find(layout)? {
            Some(find::State::Stopped) => return Ok(()),
            Some(find::State::Running(_)) => return Err(Error::Busy(layout.dir().to_owned())),
            None if begin.elapsed() > HANDOVER_TIMEOUT => {
                return Err(Error::Busy(layout.dir().to_owned()));
            }
            None => tokio::time::sleep(POLL_INTERVAL).await,
        }
    }
}

fn write_record(
    cluster: &EmbeddedCluster,
    options: &ServeOptions,
    layout: &Layout,
) -> Result<Record, Error> {
    let pid = std::process::id();
    let record = Record {
        pid,
        process_start: process::start_ticks(pid).unwrap_or_default(),
        started: jiff::Timestamp::now(),
        url: cluster.url().unwrap_or_default().to_owned(),
        kubeconfig: layout.kubeconfig(),
        ephemeral: options.ephemeral,
        on_demand: options.on_demand,
        faults: options.faults,
        manual_clock: options.clock.is_manual(),
        nodes: options.nodes,
        authorization_mode: options.authorization.as_str().to_owned(),
        audit_log: options.audit.as_ref().map(|audit| audit.log.clone()),
        warnings: cluster.warnings().to_vec(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    record.write(layout)?;
    Ok(record)
}

/// Resolves when no command uses a cluster on demand and it has no work. Never
/// resolves for other clusters.
async fn unused(layout: &Layout, on_demand: bool, cluster: Cluster) -> Lock {
    if on_demand {
        match users_lock(layout, &cluster).await {
            Ok(Some(lock)) => return lock,
            Ok(None) => tracing::info!("the cluster is now lasting and does not stop by itself"),
            Err(error) => {
                tracing::warn!(%error, "cannot check whether commands use the cluster; it keeps running")
            }
        }
    }
    std::future::pending().await
}

/// Returns the exclusive users lock once no command uses the cluster and it has no
/// work. The lock is held from the last check of the work, so that no command can
/// start to use the cluster in between.
async fn users_lock(layout: &Layout, cluster: &Cluster) -> Result<Option<Lock>, Error> {
    loop {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let users = layout.clone();
        // Waiting for the lock blocks and cannot be cancelled. A separate thread
        // does not keep the runtime from shutting down.
        std::thread::spawn(move || {
            let _ = sender.send(usage::wait_for_last(&users));
        });
        let Ok(whole) = receiver.await else {
            return Ok(None);
        };
        let Some(lock) = whole? else {
            return Ok(None);
        };
        if !work::is_active(cluster).await {
            return Ok(Some(lock));
        }
        tracing::info!("no command uses the cluster; it keeps running until its work is done");
        files::open(&layout.busy())?;
        drop(lock);
        work::done(cluster).await;
        files::remove_optional(&layout.busy())?;
    }
}

/// The signals that stop the cluster.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(Error::part("signal handler"));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hang_up.recv() => "SIGHUP",
        }
    }
}
