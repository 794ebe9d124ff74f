//! Removes directories of completed and deleted pods on a separate thread. Removing a million files
//! takes long, and other work must not wait for it.

use std::{
    io,
    path::{Path, PathBuf},
    sync::mpsc,
};

use longshore_files::remove_tree;

/// The priority of the thread, which is the lowest one.
const NICE: i32 = 19;

/// A queue of directories to remove. If the process ends first, the next agent on the same data
/// queues the rest again.
#[derive(Debug)]
pub(crate) struct Remover {
    queue: mpsc::Sender<PathBuf>,
}

impl Remover {
    /// Starts the thread, which ends when this value is dropped.
    pub(crate) fn start() -> io::Result<Self> {
        let (queue, folders) = mpsc::channel::<PathBuf>();
        let thread = std::thread::Builder::new().name("volume-remover".to_owned());
        thread.spawn(move || {
            // On Linux this affects only the calling thread.
            let _ = rustix::process::setpriority_process(None, NICE);
            for folder in folders {
                remove_folder(&folder);
            }
        })?;
        Ok(Self { queue })
    }

    /// Queues the removal of a directory, if it exists.
    pub(crate) fn remove(&self, folder: PathBuf) {
        if let Err(mpsc::SendError(folder)) = self.queue.send(folder) {
            remove_folder(&folder);
        }
    }
}

/// Removes a pod's directory, if it exists.
fn remove_folder(folder: &Path) {
    if let Err(error) = remove_tree(folder) {
        tracing::warn!(?folder, %error, "cannot remove the directory of a pod; the next start tries again");
    }
}
