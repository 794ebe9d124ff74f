//! Waits for the shutdown of the server, for streams and connections.

use tokio::sync::watch;

/// Resolves when the server is stopping.
pub(crate) async fn stopped(mut stopping: watch::Receiver<bool>) {
    // An error means that the server was dropped, which is equivalent.
    let _ = stopping.wait_for(|stop| *stop).await;
}
