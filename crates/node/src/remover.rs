//! Removes folders of pods that are over, on a thread of its own: a million files
//! take their time, and nobody waits for it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::mpsc,
};

/// The lowest priority.
const NICE: i32 = 19;

/// A queue of folders to remove. What is still in it when the process ends stays:
/// the next agent on the same data puts it here again.
#[derive(Debug)]
pub(crate) struct Remover {
    queue: mpsc::Sender<PathBuf>,
}

impl Remover {
    /// Starts the thread, which ends with this value.
    pub(crate) fn start() -> io::Result<Self> {
        let (queue, folders) = mpsc::channel::<PathBuf>();
        let thread = std::thread::Builder::new().name("volume-remover".to_owned());
        thread.spawn(move || {
            // On Linux this concerns the calling thread alone.
            let _ = rustix::process::setpriority_process(None, NICE);
            for folder in folders {
                remove_folder(&folder);
            }
        })?;
        Ok(Self { queue })
    }

    /// Removes a folder soon, if it is there.
    pub(crate) fn remove(&self, folder: PathBuf) {
        if let Err(mpsc::SendError(folder)) = self.queue.send(folder) {
            remove_folder(&folder);
        }
    }
}

/// Removes a folder of a pod, if it is there.
pub(crate) fn remove_folder(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(?folder, %error, "the folder of a pod that is over could not be removed");
    }
}
