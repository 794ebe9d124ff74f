//! Removes unused bundles and creates ready copies while a cluster runs.

use std::{
    collections::HashMap,
    io,
    time::{Duration, SystemTime},
};

use longshore_client::Cluster;
use tokio::{sync::oneshot, time::Instant};

use super::{
    Kept, KeptBundle,
    ready::{BUNDLES, NoCopy, SMALLEST},
    uses,
};

/// The interval between checks of the folder.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The interval between queries of the used bundles while the folder is unchanged.
const COLLECT_INTERVAL: Duration = Duration::from_secs(60);
/// The pause after an error.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// The lowest priority.
const NICE: i32 = 19;

/// Removes unused bundles and creates ready copies of the used ones until the cluster ends. Only
/// one process may do this at a time.
pub async fn keep(cluster: Cluster, kept: Kept) {
    let mut keeper = Keeper {
        cluster: cluster.with_user_agent("longshore-bundles"),
        kept,
        seen: Vec::new(),
        collected: None,
        refused: HashMap::new(),
    };
    let kept = keeper.kept.clone();
    if let Err(error) = aside(move || kept.clean_copies()).await {
        tracing::warn!(%error, "cannot remove old copies of code");
    }
    while !keeper.cluster.is_closed() {
        let wait = match keeper.round().await {
            Ok(()) => POLL_INTERVAL,
            Err(_) if keeper.cluster.is_closed() => return,
            Err(error) => {
                let folder = keeper.kept.root().display();
                tracing::warn!(%error, %folder, "cannot collect bundles; trying again");
                RETRY_INTERVAL
            }
        };
        tokio::time::sleep(wait).await;
    }
}

struct Keeper {
    cluster: Cluster,
    kept: Kept,
    /// The state of the folder at the last check.
    seen: Vec<KeptBundle>,
    collected: Option<Instant>,
    /// Bundles, with their last use, whose copy did not fit into this number of bytes.
    refused: HashMap<(String, SystemTime), u64>,
}

impl Keeper {
    async fn round(&mut self) -> io::Result<()> {
        let bundles = self.kept.bundles()?;
        let collected = self.collected;
        let is_due = collected.is_none_or(|at| at.elapsed() >= COLLECT_INTERVAL);
        // A released bundle waits for pods that are terminating.
        let waits = bundles.iter().any(|bundle| bundle.released);
        if !bundles.is_empty() && (is_due || waits || bundles != self.seen) {
            let uses = uses(&self.cluster).await.map_err(io::Error::other)?;
            let kept = self.kept.clone();
            aside(move || kept.collect(&uses, SystemTime::now())).await?;
            self.collected = Some(Instant::now());
        }
        self.seen = bundles;
        self.make_copy().await
    }

    /// Creates the most useful copy, unless pods are starting, which have priority.
    async fn make_copy(&mut self) -> io::Result<()> {
        let bundles = self.kept.bundles()?;
        let is_there = |key: &(String, SystemTime)| {
            let mut bundles = bundles.iter();
            bundles.any(|bundle| bundle.sha256 == key.0 && bundle.used == key.1)
        };
        self.refused.retain(|key, _| is_there(key));
        let used = self.kept.usage()?.bytes();
        let room = self.kept.limit(used).bytes.saturating_sub(used);
        let key = |bundle: &KeptBundle| (bundle.sha256.clone(), bundle.used);
        let is_wanted = |bundle: &&KeptBundle| {
            let refused = self.refused.get(&key(bundle));
            // The copy is at least as large as the bundle.
            bundle.size >= SMALLEST
                && bundle.size <= room
                && bundle.copy.is_none()
                && refused.is_none_or(|refused| room > *refused)
        };
        let last = bundles.iter().rev().take(BUNDLES);
        let Some(bundle) = last.into_iter().find(is_wanted) else {
            return Ok(());
        };
        let uses = uses(&self.cluster).await.map_err(io::Error::other)?;
        if uses.is_starting(&bundle.sha256) {
            return Ok(());
        }
        let (kept, sha256) = (self.kept.clone(), bundle.sha256.clone());
        let begin = Instant::now();
        let made = aside(move || Ok(kept.make_copy(&sha256, room))).await?;
        let sha256 = &bundle.sha256;
        match made {
            Ok(bytes) => {
                let milliseconds = begin.elapsed().as_millis();
                tracing::info!(
                    sha256,
                    bytes,
                    milliseconds,
                    "unpacked a bundle for runs to come"
                );
            }
            Err(NoCopy::NoRoom) => {
                tracing::info!(sha256, room, "no room for a ready copy of a bundle");
                self.refused.insert(key(bundle), room);
            }
            Err(NoCopy::Failed(reason)) => {
                tracing::warn!(sha256, reason, "cannot unpack a bundle for runs to come");
                self.refused.insert(key(bundle), u64::MAX);
            }
        }
        Ok(())
    }
}

/// Runs file operations on a thread of the lowest priority, which does not prevent the
/// process from exiting.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = oneshot::channel();
    let thread = std::thread::Builder::new().name("bundle-keeper".to_owned());
    thread.spawn(move || {
        // On Linux, this affects only the calling thread.
        let _ = rustix::process::setpriority_process(None, NICE);
        let _ = sender.send(work());
    })?;
    receiver.await.map_err(io::Error::other)?
}
