//! The cluster's process itself: start, say so, wait for the end, stop.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::{Duration, Instant},
};

use longshore_node::LogLimits;
use tokio::signal::unix::{SignalKind, signal};

use super::{Record, STEP, find, record, usage};
use crate::{EmbeddedCluster, Error, Layout, Options, files, lock::Lock};

/// What kind of cluster to run.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The instance's folder.
    pub dir: PathBuf,
    /// Objects in memory only.
    pub ephemeral: bool,
    /// Where to write the kubeconfig, besides the folder.
    pub kubeconfig: Option<PathBuf>,
    /// Ends with the last command that uses it, see [`Usage`](super::Usage).
    pub on_demand: bool,
    /// Faults on demand over HTTP, see [`Options::faults`].
    pub faults: bool,
    /// Comes first in the `PATH` of pods.
    pub program_dir: Option<PathBuf>,
    /// How much the node keeps of each container's log.
    pub log_limits: LogLimits,
}

/// How long an ending cluster is waited for before the folder counts as busy.
const HANDOVER: Duration = Duration::from_secs(10);

/// Runs a cluster until a signal (SIGTERM, SIGINT, SIGHUP) or, on demand, until
/// nobody uses it. `ready` is called once, when it serves.
///
/// # Errors
/// The folder is another's ([`Error::Busy`]), or a part does not start.
pub async fn serve(options: ServeOptions, ready: impl FnOnce(&Record)) -> Result<(), Error> {
    // First of all, so that no signal is lost.
    let mut end = Signals::listen()?;
    let layout = Layout::new(&options.dir);
    layout.create()?;
    wait_for_turn(&layout).await?;
    if options.on_demand {
        // Of an earlier cluster.
        files::remove_optional(&layout.keep())?;
    }

    let start = EmbeddedCluster::start(Options {
        ephemeral: options.ephemeral,
        data_dir: Some(options.dir.clone()),
        listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        kubeconfig: options.kubeconfig.clone(),
        controllers: true,
        node: true,
        faults: options.faults,
        program_dir: options.program_dir.clone(),
        log_limits: options.log_limits,
    });
    let cluster = start.await?;
    let layout = cluster.layout().clone();
    let written = write_record(&cluster, &options, &layout);
    let result = match written {
        Ok(record) => {
            tracing::info!(url = record.url, pid = record.pid, "ready");
            ready(&record);
            let unused = unused(&layout, options.on_demand);
            tokio::select! {
                name = end.next() => tracing::info!(signal = name, "stopping"),
                // Held to the end: commands that come now wait for the next.
                _lock = unused => tracing::info!("stopping: not used any more"),
            }
            Ok(())
        }
        Err(error) => Err(error),
    };
    // First: whoever looks now sees a cluster between states, and waits.
    let removed = files::remove_optional(&layout.record());
    let begin = Instant::now();
    cluster.stop().await;
    let _ = files::remove_optional(&layout.keep());
    tracing::info!(milliseconds = begin.elapsed().as_millis(), "stopped");
    result.and(removed)
}

/// Waits while another cluster of the folder is ending.
async fn wait_for_turn(layout: &Layout) -> Result<(), Error> {
    let begin = Instant::now();
    loop {
        match find::look(layout)? {
            Some(find::State::Stopped) => return Ok(()),
            Some(find::State::Running(_)) => return Err(Error::Busy(layout.dir().to_owned())),
            None if begin.elapsed() > HANDOVER => return Err(Error::Busy(layout.dir().to_owned())),
            None => tokio::time::sleep(STEP).await,
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
        process_start: record::process_start(pid).unwrap_or_default(),
        started: jiff::Timestamp::now(),
        url: cluster.url().unwrap_or_default().to_owned(),
        kubeconfig: layout.kubeconfig(),
        ephemeral: options.ephemeral,
        on_demand: options.on_demand,
        faults: options.faults,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    record.write(layout)?;
    Ok(record)
}

/// Resolves when a cluster on demand is not used any more; never for others.
async fn unused(layout: &Layout, on_demand: bool) -> Lock {
    if on_demand {
        let (tell, told) = tokio::sync::oneshot::channel();
        let layout = layout.clone();
        // A thread of its own, not one of the runtime's: waiting for the lock
        // cannot be broken off, and must not keep the runtime from ending.
        std::thread::spawn(move || {
            let _ = tell.send(usage::wait_for_last(&layout));
        });
        match told.await {
            Ok(Ok(Some(lock))) => return lock,
            Ok(Ok(None)) | Err(_) => tracing::info!("made lasting"),
            Ok(Err(error)) => tracing::warn!(%error, "cannot tell who uses the cluster; it stays"),
        }
    }
    std::future::pending().await
}

/// The signals that ask for an end.
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
