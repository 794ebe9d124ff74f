//! Runs the command of a task under `longshore dev`: receives changes of the code, applies them,
//! and restarts the command.

mod apply;
mod connection;
mod events;
mod receive;
mod staged;
mod supervisor;
#[cfg(test)]
mod tests;

use std::{ffi::OsString, time::Duration};

use super::{BootstrapError, Places, messages::with_termination_message, prepare, start::Attempt};
use crate::bundle::Listing;

pub use receive::receive;
use supervisor::Supervisor;

/// The socket of the supervisor in the run's volume.
const SOCKET: &str = ".dev-socket";
/// The name prefix of temporary folders in the run's volume, next to the code.
const STAGING: &str = ".dev-";

/// Waits for the peers, sets the variables, and supervises the command until a signal ends it.
/// The command starts when the client has connected and sent the changes since the code was
/// packed. Returns the exit code of the command.
///
/// # Errors
/// See [`BootstrapError`]. The error is also written to the termination message.
pub fn dev(command: &[OsString], grace: Duration) -> Result<i32, BootstrapError> {
    let places = Places::default();
    let run = || {
        // Must precede the command and the recorded links of the invoking shell, which add files
        // that are not code.
        let code = Listing::of_folder(&places.work());
        let prepared = prepare::prepare(&places, command, |name| std::env::var(name).ok())?;
        let attempt = Attempt::new(&prepared.command, &places.work());
        let supervised =
            Supervisor::start(&places, prepared.command, grace, code).and_then(Supervisor::run);
        supervised.map_err(|source| attempt.error(source))
    };
    with_termination_message(run())
}
