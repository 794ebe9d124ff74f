//! What is given back when a pod is through, and when it is gone.

use std::{fs, path::Path};

use super::Worker;

impl Worker {
    /// Nothing runs any more: no file needs to be kept up to date. Address and
    /// names stay until the pod is removed, for peers that are slower to look.
    pub(super) fn retire(&mut self) {
        self.shared.live.removed(&self.uid);
        self.refresher.abort_all();
        self.shared.hosts.retire(&self.uid);
    }

    /// Gives address and names back.
    pub(super) fn release(&mut self) {
        if self.released {
            return;
        }
        self.released = true;
        self.shared.live.removed(&self.uid);
        self.refresher.abort_all();
        self.shared.hosts.remove(&self.uid);
        if let Some(address) = self.address {
            self.shared.addresses.release(address);
        }
    }

    pub(super) fn remove_files(&self) {
        self.shared.logs.remove_pod(&self.uid);
        remove_folder(&self.shared.pod_folder(&self.uid));
    }
}

fn remove_folder(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(?folder, %error, "a deleted pod's folder could not be removed");
    }
}
