//! The folder and the address of a cluster that starts.

use std::{net::SocketAddr, path::Path};

use tokio::net::TcpListener;

use crate::{Error, layout::Layout, lock::Lock, temporary::TemporaryFolder};

/// Opens the folder of a cluster. Without a path, creates a temporary folder.
pub(crate) fn open_folder(dir: Option<&Path>) -> Result<(Layout, Option<TemporaryFolder>), Error> {
    match dir {
        // The path must be absolute, because the kubeconfig's path is passed to
        // other programs.
        Some(dir) => Ok((Layout::new(longshore_files::private_dir(dir)?), None)),
        None => {
            let folder = TemporaryFolder::create()?;
            Ok((Layout::new(folder.path()), Some(folder)))
        }
    }
}

/// Returns true if the store does not exist, although other files show that a cluster stored its
/// objects.
pub(crate) fn has_lost_store(layout: &Layout) -> bool {
    let mut of_cluster = [layout.node(false), layout.volumes(false)].into_iter();
    !layout.store().exists() && of_cluster.any(|folder| folder.exists())
}

/// Takes the instance's lock. Retries, because a process that checks the lock takes it for a
/// moment.
pub(crate) async fn take_lock(layout: &Layout) -> Result<Lock, Error> {
    for _ in 0..20 {
        if let Some(lock) = Lock::try_exclusive(&layout.lock())? {
            return Ok(lock);
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    Err(Error::Busy(layout.dir().to_owned()))
}

/// Binds the address. For port 0, tries the previous port first.
pub(crate) async fn bind(address: SocketAddr, last_port: u16) -> Result<TcpListener, Error> {
    if address.port() == 0 && last_port != 0 {
        let same = SocketAddr::new(address.ip(), last_port);
        if let Ok(listener) = TcpListener::bind(same).await {
            return Ok(listener);
        }
        tracing::info!(
            port = last_port,
            "the previous port is in use; choosing another"
        );
    }
    TcpListener::bind(address)
        .await
        .map_err(|source| Error::Listen { address, source })
}
