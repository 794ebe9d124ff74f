//! The server's end, as streams and connections wait for it.

use tokio::sync::watch;

/// Done when the server is stopping.
pub(crate) async fn stopped(mut stopping: watch::Receiver<bool>) {
    // An error means that the server is gone, which is the same.
    let _ = stopping.wait_for(|stop| *stop).await;
}
