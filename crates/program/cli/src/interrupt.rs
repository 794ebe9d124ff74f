//! The signals that end the program: SIGINT and SIGTERM.

use std::future::Future;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Error, Kind, Result};

/// Catches SIGINT and SIGTERM from the start, so that they cannot end the program between an
/// action and its record.
pub(crate) struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
}

/// The received signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caught {
    Interrupt,
    Terminate,
}

impl Interrupt {
    /// Starts catching the signals.
    pub(crate) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).map_err(|error| Error::from_source(Kind::Failed, &error));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for the next of the signals.
    pub(crate) async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.interrupt.recv() => Caught::Interrupt,
            _ = self.terminate.recv() => Caught::Terminate,
        }
    }

    /// Runs a future unless a signal arrives first.
    pub(crate) async fn unless<T>(&mut self, work: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            biased;
            _ = self.next() => Err(Error::interrupted()),
            done = work => Ok(done),
        }
    }
}
