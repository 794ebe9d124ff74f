//! Serves the responses of a recording, without a cluster.

mod serve;

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use futures::future::BoxFuture;
use longshore_client::Cluster;

use self::serve::Responder;
use crate::{
    error::Error,
    listen::Server,
    player::{Matching, Player, Report},
    recording::Recording,
};

/// Options for a replay.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReplayOptions {
    /// Each recorded response is used once: the last response to a GET request is not
    /// repeated, no watch is continued, and recorded requests that are not made are an error.
    pub strict: bool,
    /// Watches and logs send what they have sent at the recorded times, instead of at once.
    pub timing: bool,
    /// If no recorded request has the same body, one with another body matches.
    pub ignore_bodies: bool,
}

/// A server that answers recorded requests until it is dropped.
///
/// ```no_run
/// # async fn test() -> Result<(), Box<dyn std::error::Error>> {
/// use longshore_recording::Replay;
///
/// let replay = Replay::open("tests/pods.jsonl").await?;
/// let pods = replay.cluster().await?.pods().in_namespace("default")?;
/// println!("{}", pods.list().await?.items.len());
/// // Other programs: the variable KUBECONFIG is `replay.kubeconfig()`.
/// assert!(replay.report().is_complete());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Replay {
    server: Server,
    player: Arc<Mutex<Player>>,
}

impl Replay {
    /// Serves a recording.
    ///
    /// # Errors
    /// The file cannot be read or is not valid, or the server cannot listen.
    pub fn open(path: impl AsRef<Path>) -> BoxFuture<'static, Result<Self, Error>> {
        Self::open_with(path, ReplayOptions::default())
    }

    /// Opens a recording like [`Replay::open`], with options.
    ///
    /// # Errors
    /// The same as [`Replay::open`].
    pub fn open_with(
        path: impl AsRef<Path>,
        options: ReplayOptions,
    ) -> BoxFuture<'static, Result<Self, Error>> {
        let path = path.as_ref().to_owned();
        // Boxed, so that this crate compiles the future, not each crate that awaits it.
        Box::pin(async move { Self::serve(Recording::read(&path)?, options).await })
    }

    /// Replays a recording in memory, like [`Replay::open_with`].
    ///
    /// # Errors
    /// An error if the server cannot listen.
    pub async fn serve(recording: Recording, options: ReplayOptions) -> Result<Self, Error> {
        let recording = Arc::new(recording);
        let matching = Matching {
            strict: options.strict,
            ignore_bodies: options.ignore_bodies,
        };
        let player = Player::new(recording.clone(), matching);
        let player = Arc::new(Mutex::new(player));
        let responder = Arc::new(Responder {
            recording: recording.clone(),
            player: player.clone(),
            timing: options.timing,
        });
        let handler = move |request| -> BoxFuture<'static, _> {
            Box::pin(responder.clone().respond(request))
        };
        let server = Server::start(&recording.namespace, Arc::new(handler)).await?;
        Ok(Self { server, player })
    }

    /// The kubeconfig for programs. It is deleted with the server.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        self.server.kubeconfig()
    }

    /// The URL for programs. Other users of the machine do not know its path.
    #[must_use]
    pub fn url(&self) -> &str {
        self.server.url()
    }

    /// A client, with the namespace of the recording.
    ///
    /// # Errors
    /// The kubeconfig was changed or deleted.
    pub async fn cluster(&self) -> Result<Cluster, Error> {
        Ok(Cluster::from_kubeconfig(Some(self.kubeconfig()), None).await?)
    }

    /// Returns the requests that have been served so far, and those that were not recorded.
    #[must_use]
    pub fn report(&self) -> Report {
        let player = self.player.lock();
        player.unwrap_or_else(PoisonError::into_inner).report()
    }
}
