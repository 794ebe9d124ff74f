//! Open connections, which outlive the listeners that accepted them.

use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};

/// The maximum number of connections, where the process may open enough files.
const MAX_CONNECTIONS: usize = 8192;
/// The part of the process's open files that connections may use: the API server shares
/// the process.
const SHARE_OF_FILES: u64 = 8;
/// Files of a connection: to the client, and to the endpoint.
const FILES_PER_CONNECTION: u64 = 2;

/// Connections with a common limit. Dropping it closes them.
#[derive(Debug)]
pub(crate) struct Connections {
    open: Mutex<JoinSet<()>>,
    free: Arc<Semaphore>,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            free: Arc::new(Semaphore::new(limit(getrlimit(Resource::Nofile).current))),
        }
    }
}

impl Connections {
    /// Waits until another connection may be opened.
    pub(super) async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        self.free.clone().acquire_owned().await.ok()
    }

    /// Opens a connection if the limit is not reached.
    pub(super) fn try_permit(&self) -> Option<OwnedSemaphorePermit> {
        self.free.clone().try_acquire_owned().ok()
    }

    /// Serves a connection in the background until it ends.
    pub(super) fn serve(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let mut open = self.open.lock();
        while open.try_join_next().is_some() {}
        open.spawn(connection);
    }
}

/// Returns the number of connections for a limit of open files; `None` is unlimited.
fn limit(files: Option<u64>) -> usize {
    let share = files.map_or(u64::MAX, |files| {
        files / SHARE_OF_FILES / FILES_PER_CONNECTION
    });
    usize::try_from(share).map_or(MAX_CONNECTIONS, |share| share.clamp(16, MAX_CONNECTIONS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_api_server() {
        assert_eq!(limit(Some(1024)), 64);
        assert_eq!(limit(Some(1)), 16);
        assert_eq!(limit(Some(1 << 40)), MAX_CONNECTIONS);
        assert_eq!(limit(None), MAX_CONNECTIONS);
    }
}
