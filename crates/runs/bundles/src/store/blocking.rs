//! Runs blocking work that can be stopped.

use std::{
    io,
    sync::{Arc, atomic::AtomicBool},
};

use futures::future::{Either, select};

use super::StoreError;
use crate::stop_on_drop::StopOnDrop;

/// Runs blocking work on its own thread. If `stop` completes first, sets the flag that the work
/// checks, and waits for the work to end. Dropping this future also sets the flag, but does
/// not wait.
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
