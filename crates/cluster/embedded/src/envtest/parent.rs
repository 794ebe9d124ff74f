//! Waits for the end of a program: a signal, or the end of the process that started it. Otherwise,
//! a test that is killed would leave its servers behind.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::EnvtestError;

/// Interval at which the parent is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Returns a future that resolves at SIGTERM, SIGINT, or the end of the parent process.
pub(super) fn end() -> Result<impl Future<Output = ()> + Send + 'static, EnvtestError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(EnvtestError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(EnvtestError::Signals)?;
    let parent = rustix::process::getppid();
    let orphaned = async move {
        // A process whose parent has ended gets another parent.
        while rustix::process::getppid() == parent {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    };
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = orphaned => {}
        }
    })
}
