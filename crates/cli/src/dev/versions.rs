//! Follows the folder: each change of it is a new version for the tasks.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use longshore::launcher::bundle::BundleError;
use tokio::sync::{mpsc, watch};

use super::{
    folder::{Folder, Parcel, SendError, State},
    watch::Watch,
};
use crate::error::chain;

/// How often to read a folder again in which files change at this moment, and the pause between.
const RETRIES: u32 = 20;
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// What all tasks should have and run.
#[derive(Debug, Clone)]
pub(super) struct Version {
    pub(super) state: Arc<State>,
    /// Counts changes and requested restarts. Tasks restart their commands for each.
    pub(super) number: u64,
    /// When the change was noticed.
    pub(super) noticed: Instant,
    /// What has changed since the version before; `None` for a requested restart.
    pub(super) parcel: Option<Arc<Parcel>>,
}

impl Version {
    /// The version that was packed.
    pub(super) fn first(state: Arc<State>) -> Self {
        Self {
            state,
            number: 0,
            noticed: Instant::now(),
            parcel: None,
        }
    }
}

/// A request to restart the commands without a change.
#[derive(Debug)]
pub(super) struct Restart;

/// Watches the folder, and publishes versions until the receivers are gone. Problems with the
/// folder are passed to `warn`; the next change may solve them.
pub(super) async fn follow(
    folder: Arc<Folder>,
    session: String,
    versions: watch::Sender<Version>,
    mut restarts: mpsc::Receiver<Restart>,
    warn: impl Fn(String),
) {
    let mut watch = Watch::start();
    let mut warned = false;
    let mut problem = None;
    let mut failures = 0;
    // The folder may have changed since it was packed.
    let mut noticed = Some(Instant::now());
    loop {
        let current = versions.borrow().clone();
        if !watch.add(folder.path(), &current.state.manifest)
            && !std::mem::replace(&mut warned, true)
        {
            warn("not all folders can be watched, so changes are noticed by comparing all files: see /proc/sys/fs/inotify/max_user_watches".to_owned());
        }
        let restarted = match noticed.take() {
            Some(at) => Ok(at),
            None => tokio::select! {
                at = watch.changed() => Ok(at),
                restart = restarts.recv() => match restart {
                    Some(restart) => Err(restart),
                    None => return,
                },
            },
        };
        let at = match restarted {
            Ok(at) => at,
            Err(Restart) => {
                versions.send_modify(|version| {
                    version.number += 1;
                    version.noticed = Instant::now();
                    version.parcel = None;
                });
                continue;
            }
        };
        let begin = Instant::now();
        let number = current.number + 1;
        let name = format!("{session}.{number}");
        let (reading, before) = (Arc::clone(&folder), Arc::clone(&current.state));
        let read = tokio::task::spawn_blocking(move || {
            let manifest = reading.read()?;
            if manifest == *before.manifest {
                return Ok(None);
            }
            let state = Arc::new(State {
                name,
                manifest: Arc::new(manifest),
            });
            let parcel = reading.parcel(&before.name, &state, true)?;
            reading.add(Arc::clone(&state));
            Ok::<_, SendError>(Some((state, parcel)))
        });
        let Ok(read) = read.await else { return };
        watch.compared(begin.elapsed());
        match read {
            Ok(None) => (problem, failures) = (None, 0),
            Ok(Some((state, parcel))) => {
                (problem, failures) = (None, 0);
                // New folders are not watched yet: their contents may have changed meanwhile.
                if !state
                    .manifest
                    .folders()
                    .eq(current.state.manifest.folders())
                {
                    noticed = Some(Instant::now());
                }
                versions.send_replace(Version {
                    state,
                    number,
                    noticed: at,
                    parcel: Some(parcel),
                });
            }
            // Files that are written or renamed at this moment.
            Err(SendError::Pack(BundleError::Changed { .. } | BundleError::Read { .. }))
                if failures < RETRIES =>
            {
                failures += 1;
                tokio::time::sleep(RETRY_INTERVAL).await;
                noticed = Some(at);
            }
            Err(error) => {
                let text = chain(&error);
                // Once for each problem: the folder is compared again and again.
                if problem.as_ref() != Some(&text) {
                    warn(format!("changes are not sent: {text}"));
                }
                problem = Some(text);
            }
        }
    }
}
