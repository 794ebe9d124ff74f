//! Work that blocks, and that can be stopped.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::future::{Either, select};

use super::StoreError;

/// Sets a flag when it is dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does work on a thread of its own. When `stop` ends first, the flag that the work
/// looks at is set, and the work's end is waited for; also when this future is dropped,
/// then without waiting.
pub(super) async fn unless_stopped<T: Send + 'static>(
    stop: impl Future<Output = ()> + Unpin,
    work: impl FnOnce(&AtomicBool) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let guard = StopOnDrop(Arc::default());
    let flag = Arc::clone(&guard.0);
    let working = tokio::task::spawn_blocking(move || work(&flag));
    let done = match select(working, stop).await {
        Either::Left((done, _)) => done,
        Either::Right(((), working)) => {
            drop(guard);
            working.await
        }
    };
    done.map_err(|error| StoreError::Read(io::Error::other(error)))?
}
