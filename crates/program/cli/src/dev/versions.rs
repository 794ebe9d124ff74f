//! Follows the folder: each change is a new version for the tasks.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use longshore::launcher::bundle::{BundleError, FileContents};
use tokio::sync::{mpsc, watch};

use super::{
    folder::{Folder, Parcel, SendError, State},
    own_output::is_own_output,
    settings::FolderSettings,
    watch::Watch,
};
use crate::error::chain;

/// The number of attempts to read a folder while its files change, and the pause between them.
const RETRIES: u32 = 20;
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A version of the folder, for all tasks.
#[derive(Debug, Clone)]
pub(super) struct Version {
    pub(super) state: Arc<State>,
    /// Counts changes and requested restarts. Tasks restart their commands for each.
    pub(super) number: u64,
    /// The time at which the change was noticed.
    pub(super) noticed: Instant,
    /// The changes since the previous version; `None` for a requested restart.
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

/// A difference between the folder and a state.
enum Difference {
    None,
    /// Files were saved without a change: the state, with their new times.
    Times(Arc<State>),
    /// These files contain the output of this program. The state is the previous one, without them.
    OwnOutput(Arc<State>, Vec<PathBuf>),
    Changes(Arc<State>, Arc<Parcel>),
}

/// Reads the folder, and compares it with the state of the tasks. `known` has the file contents of
/// this state; `None` until they have been read. Blocks.
fn compare(
    folder: &Folder,
    before: &State,
    name: String,
    known: &mut Option<FileContents>,
) -> Result<Difference, SendError> {
    let manifest = folder.read()?;
    if manifest == *before.manifest {
        if known.is_none() {
            let contents = FileContents::of(folder.path(), &manifest);
            // Otherwise the contents may belong to another state.
            *known = (folder.read()? == manifest).then_some(contents);
        }
        return Ok(Difference::None);
    }
    let is_saved = known
        .as_ref()
        .is_some_and(|known| known.are_unchanged(folder.path(), &before.manifest, &manifest));
    let state = Arc::new(State {
        name: if is_saved { before.name.clone() } else { name },
        manifest: Arc::new(manifest),
    });
    if is_saved {
        folder.replace(Arc::clone(&state));
        return Ok(Difference::Times(state));
    }
    let changes = state.manifest.changes_since(&before.manifest);
    let is_own_output = |file: &&PathBuf| is_own_output(&folder.path().join(file));
    let own_output: Vec<PathBuf> = changes
        .files
        .iter()
        .filter(is_own_output)
        .cloned()
        .collect();
    if !own_output.is_empty() {
        folder.set_aside(&own_output);
        let before = folder.state(&before.name);
        return Ok(before.map_or(Difference::None, |before| {
            Difference::OwnOutput(before, own_output)
        }));
    }
    // The contents are read before packing, which verifies that they are in the manifest's state.
    let changed = FileContents::of_changes(folder.path(), &state.manifest, &changes);
    let parcel = folder.parcel(&before.name, &state, true)?;
    folder.add(Arc::clone(&state));
    if let Some(known) = known {
        known.update(&changes, changed);
    }
    Ok(Difference::Changes(state, parcel))
}

/// Watches the folder, and publishes versions until the receivers are dropped. Problems with the
/// folder are passed to `warn`; the next change may solve them.
pub(super) async fn follow(
    folder: Arc<Folder>,
    session: String,
    versions: watch::Sender<Version>,
    mut restarts: mpsc::Receiver<Restart>,
    settings: FolderSettings,
    warn: impl Fn(String),
) {
    let mut watch = Watch::start();
    let mut warned = false;
    let mut problem = None;
    let mut failures = 0;
    let contents = Arc::new(Mutex::new(None));
    let settings = Arc::new(Mutex::new(settings));
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
        let known = Arc::clone(&contents);
        let settings = Arc::clone(&settings);
        let read = tokio::task::spawn_blocking(move || {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let mut settings = settings.lock().unwrap_or_else(PoisonError::into_inner);
            let read = compare(&reading, &before, name, &mut known);
            (read, settings.changed())
        });
        let Ok((read, changed_settings)) = read.await else {
            return;
        };
        if let Some(text) = changed_settings {
            warn(text);
        }
        watch.compared(begin.elapsed());
        match read {
            Ok(Difference::None) => (problem, failures) = (None, 0),
            Ok(Difference::Times(state)) => {
                (problem, failures) = (None, 0);
                versions.send_if_modified(|version| {
                    version.state = state;
                    false
                });
            }
            Ok(Difference::OwnOutput(state, files)) => {
                (problem, failures) = (None, 0);
                for file in files {
                    warn(format!(
                        "{} contains the output of this command, so its changes are not sent: write it to another folder",
                        file.display()
                    ));
                }
                versions.send_if_modified(|version| {
                    version.state = state;
                    false
                });
                // Other files may have changed at the same time.
                noticed = Some(at);
            }
            Ok(Difference::Changes(state, parcel)) => {
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
            // Files are being written or renamed at this moment.
            Err(SendError::Pack(BundleError::Changed { .. } | BundleError::Read { .. }))
                if failures < RETRIES =>
            {
                failures += 1;
                tokio::time::sleep(RETRY_INTERVAL).await;
                noticed = Some(at);
            }
            Err(error) => {
                let text = chain(&error);
                // Each problem is reported once, because the folder is compared repeatedly.
                if problem.as_ref() != Some(&text) {
                    warn(format!("changes are not sent: {text}"));
                }
                problem = Some(text);
            }
        }
    }
}
