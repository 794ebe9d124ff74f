//! Records the requests to a cluster: a proxy that forwards each request, and writes it and its
//! response to a file.

mod forward;
mod sink;
mod tap;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use longshore_client::Cluster;
use serde::Serialize;
use tokio::sync::mpsc;

use self::{forward::Forwarder, sink::Sink};
use crate::{error::Error, listen::Server};

/// Options for recording.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecordOptions {
    /// The maximum size of a body or an event that is recorded, in bytes; at most 16 MiB.
    pub body_limit: usize,
}

/// The default of [`RecordOptions::body_limit`].
const BODY_LIMIT: usize = 8 << 20;
/// The time that the end of a recording waits for responses.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum of [`RecordOptions::body_limit`].
pub const MAX_BODY_LIMIT: usize = 16 << 20;

impl Default for RecordOptions {
    fn default() -> Self {
        Self {
            body_limit: BODY_LIMIT,
        }
    }
}

/// The counts of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The number of forwarded requests.
    pub requests: u64,
    /// The number of bodies and events that were not recorded; the file has the reason for each.
    pub omitted: u64,
    /// The number of requests that the cluster did not answer.
    pub failed: u64,
    /// The reason why the file is incomplete, if it is.
    pub incomplete: Option<String>,
}

/// A proxy in front of a cluster, which records until it is dropped.
#[derive(Debug)]
pub struct Recorder {
    server: Server,
    counts: Arc<Counts>,
    sink: Arc<Sink>,
    path: PathBuf,
    /// Ends when no response is being recorded.
    pending: mpsc::Receiver<()>,
}

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    failed: AtomicU64,
}

impl Recorder {
    /// Starts to record requests to a cluster in a file. Replaces an earlier recording.
    ///
    /// # Errors
    /// The file cannot be created, or exists and is not a recording.
    pub fn start(
        cluster: Cluster,
        path: &Path,
        options: RecordOptions,
    ) -> BoxFuture<'static, Result<Self, Error>> {
        let path = path.to_owned();
        // Boxed, so that this crate compiles the future, not each crate that awaits it.
        Box::pin(async move {
            let namespace = cluster.default_namespace().to_owned();
            let sink = Arc::new(Sink::create(&path, &namespace)?);
            let counts = Arc::<Counts>::default();
            let (sender, pending) = mpsc::channel(1);
            let forwarder = Arc::new(Forwarder {
                cluster,
                sink: sink.clone(),
                counts: counts.clone(),
                body_limit: options.body_limit.min(MAX_BODY_LIMIT),
                pending: sender,
            });
            let handler = move |request| -> BoxFuture<'static, _> {
                Box::pin(forwarder.clone().forward(request))
            };
            let server = Server::start(&namespace, Arc::new(handler)).await?;
            Ok(Self {
                server,
                counts,
                sink,
                path,
                pending,
            })
        })
    }

    /// The kubeconfig for the recorded programs. It is deleted with the recorder.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        self.server.kubeconfig()
    }

    /// The URL for the recorded programs. Other users of the machine do not know its path.
    #[must_use]
    pub fn url(&self) -> &str {
        self.server.url()
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stops the proxy, and returns what it has recorded. Waits a few seconds for responses of
    /// which a client has not read the end.
    pub async fn finish(self) -> Summary {
        let Self {
            server,
            counts,
            sink,
            mut pending,
            ..
        } = self;
        drop(server);
        // The channel has no messages: `recv` returns when the last sender is dropped.
        let _ = tokio::time::timeout(FINISH_TIMEOUT, pending.recv()).await;
        let (omitted, incomplete) = sink.finish();
        Summary {
            requests: counts.requests.load(Ordering::Relaxed),
            omitted,
            failed: counts.failed.load(Ordering::Relaxed),
            incomplete,
        }
    }
}
