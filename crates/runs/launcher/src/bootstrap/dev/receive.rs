//! Connects the standard streams of `longshore bootstrap receive`, which a client executes in the
//! container, to the supervisor.

use std::{
    io::{self, Read, Write},
    net::Shutdown,
    thread,
    time::{Duration, Instant},
};

use super::connection::connect;
use crate::bootstrap::{BootstrapError, Places};

/// The maximum time to wait for the supervisor, which waits for the task's peers first.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Copies standard input to the supervisor, and its reports to standard output, until either
/// ends.
///
/// # Errors
/// [`BootstrapError::NotDev`] if no supervisor runs.
pub fn receive() -> Result<(), BootstrapError> {
    let places = Places::default();
    let begin = Instant::now();
    let stream = loop {
        match connect(&places.home) {
            Ok(stream) => break stream,
            Err(source) if begin.elapsed() > CONNECT_TIMEOUT => {
                return Err(BootstrapError::NotDev { source });
            }
            Err(_) => thread::sleep(POLL_INTERVAL),
        }
    };
    let failed = |source| BootstrapError::NotDev { source };
    let mut to = stream.try_clone().map_err(failed)?;
    let mut from = stream;
    thread::spawn(move || {
        copy(&mut io::stdin().lock(), &mut to);
        // The end of the input ends the connection, so that this process ends.
        let _ = to.shutdown(Shutdown::Both);
    });
    copy(&mut from, &mut io::stdout().lock());
    Ok(())
}

/// Copies until either side ends. Does not use `io::copy`, which may splice: Linux then locks the
/// pipe while it waits for the socket, so that even a non-blocking reader blocks, such as the node
/// of the embedded cluster.
fn copy(from: &mut impl Read, to: &mut impl Write) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let piece = buffer.get(..count).unwrap_or_default();
        if to.write_all(piece).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}
