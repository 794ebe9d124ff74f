//! Open connections, which outlive the listeners that accepted them.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};

/// The maximum number of connections if the process may open enough files.
const MAX_CONNECTIONS: usize = 8192;
/// Connections may use one eighth of the files that the process may open, because the API server
/// runs in the same process.
const SHARE_OF_FILES: u64 = 8;
/// Files of a connection: to the client, and to the endpoint.
const FILES_PER_CONNECTION: u64 = 2;

/// Each owner may have half of all connections, so that no owner can block the Services of all
/// others.
const OWNERS_PART: usize = 2;

/// Connections with a common limit. Dropping it closes them.
#[derive(Debug)]
pub(crate) struct Connections {
    open: Mutex<JoinSet<()>>,
    limit: usize,
    free: Arc<Semaphore>,
    /// The free connections of each owner, by the owner's name.
    owners: Mutex<HashMap<String, Weak<Semaphore>>>,
}

impl Default for Connections {
    fn default() -> Self {
        Self::with_limit(limit(getrlimit(Resource::Nofile).current))
    }
}

impl Connections {
    pub(super) fn with_limit(limit: usize) -> Self {
        Self {
            open: Mutex::default(),
            limit,
            free: Arc::new(Semaphore::new(limit)),
            owners: Mutex::default(),
        }
    }

    /// Returns the share of the connections that an owner may have.
    pub(crate) fn share(self: &Arc<Self>, owner: &str) -> Share {
        let mut owners = self.owners.lock();
        owners.retain(|_, free| free.strong_count() > 0);
        let known = owners.get(owner).and_then(Weak::upgrade);
        let own = known.unwrap_or_else(|| {
            let own = Arc::new(Semaphore::new((self.limit / OWNERS_PART).max(1)));
            owners.insert(owner.to_owned(), Arc::downgrade(&own));
            own
        });
        Share {
            all: self.clone(),
            own,
        }
    }
}

/// The connections of one owner.
#[derive(Debug, Clone)]
pub(crate) struct Share {
    all: Arc<Connections>,
    own: Arc<Semaphore>,
}

/// The permit for a connection.
#[derive(Debug)]
pub(super) struct Permit {
    _own: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Share {
    /// Waits until another connection may be opened.
    pub(super) async fn permit(&self) -> Option<Permit> {
        // The owner's permit comes first, so that an owner at its limit does not block others.
        let own = self.own.clone().acquire_owned().await.ok()?;
        let of_all = self.all.free.clone().acquire_owned().await.ok()?;
        Some(Permit {
            _own: own,
            _of_all: of_all,
        })
    }

    /// Opens a connection if no limit is reached.
    pub(super) fn try_permit(&self) -> Option<Permit> {
        let own = self.own.clone().try_acquire_owned().ok()?;
        let of_all = self.all.free.clone().try_acquire_owned().ok()?;
        Some(Permit {
            _own: own,
            _of_all: of_all,
        })
    }

    /// Serves a connection in the background until it ends.
    pub(super) fn serve(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let mut open = self.all.open.lock();
        while open.try_join_next().is_some() {}
        open.spawn(connection);
    }
}

/// Returns the maximum number of connections for a limit of open files; `None` is unlimited.
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
    #[tokio::test]
    async fn no_owner_uses_up_the_connections_of_others() {
        let all = Arc::new(Connections::with_limit(8));
        let (greedy, again, other) = (all.share("a"), all.share("a"), all.share("b"));
        let held: Vec<_> = (0..8).filter_map(|_| greedy.try_permit()).collect();
        assert_eq!(held.len(), 4);
        assert!(again.try_permit().is_none());
        let few: Vec<_> = (0..8).filter_map(|_| other.try_permit()).collect();
        assert_eq!(few.len(), 4);
        drop(held);
        assert!(again.permit().await.is_some());
        drop((greedy, again));
        drop(all.share("c"));
        assert_eq!(all.share("a").own.available_permits(), 4);
    }
}
