//! Messages of the bootstrap: lines in the task's log, and the termination message of the
//! container, which the cluster shows in its status.

use std::{fs, io::Write as _};

use super::BootstrapError;

/// The termination message file of a container.
pub(super) const TERMINATION_MESSAGE: &str = "/dev/termination-log";

/// A line in the task's log.
#[expect(clippy::print_stderr, reason = "the log of a task is its output")]
pub(super) fn tell(line: &str) {
    eprintln!("longshore: {line}");
}

/// Writes the error, if there is one, to the termination message. The container runtime creates
/// the file; without it, the log still has the error.
pub(super) fn with_termination_message<T>(
    result: Result<T, BootstrapError>,
) -> Result<T, BootstrapError> {
    if let Err(error) = &result {
        let file = fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(TERMINATION_MESSAGE);
        if let Ok(mut file) = file {
            let _ = file.write_all(format!("longshore: {error}").as_bytes());
        }
    }
    result
}
