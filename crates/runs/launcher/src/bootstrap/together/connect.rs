//! The connection of a task to the first task of the run, which is made again after each loss.

use std::{
    io::{self, BufReader},
    net::{Shutdown, TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use super::{
    handshake,
    messages::{BEAT, Order, SILENCE, receive},
};
use crate::{bootstrap::supervise::Mailbox, restarts::RunKey};

/// The pause between attempts to connect.
const PAUSE: Duration = Duration::from_millis(300);
/// The maximum time of an attempt to connect.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A message of the connection's thread to the task.
#[derive(Debug)]
pub(super) enum News {
    /// The connection was made. Write to this stream.
    Connected(TcpStream),
    /// The first task sent an order.
    Ordered(Order),
    /// The connection was lost or could not be made, for this reason.
    Lost(String),
}

/// Connects in the background until the process ends.
pub(super) fn connect(address: String, key: RunKey, run: String, mailbox: Mailbox<News>) {
    std::thread::spawn(move || {
        loop {
            let problem = match open(&address, &key, &run) {
                Ok((stream, mut reader)) => {
                    if !mailbox.send(News::Connected(stream)) {
                        return;
                    }
                    loop {
                        match receive::<Order>(&mut reader) {
                            Ok(order) => {
                                if !mailbox.send(News::Ordered(order)) {
                                    return;
                                }
                            }
                            Err(error) => {
                                let _ = reader.get_ref().shutdown(Shutdown::Both);
                                break error;
                            }
                        }
                    }
                }
                Err(error) => error,
            };
            if !mailbox.send(News::Lost(problem.to_string())) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    });
}

fn open(address: &str, key: &RunKey, run: &str) -> io::Result<(TcpStream, BufReader<TcpStream>)> {
    // A new pod has a new address, so resolve the name again.
    let mut problem = io::Error::new(io::ErrorKind::NotFound, "its name does not resolve");
    for found in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&found, TIMEOUT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(BEAT))?;
                stream.set_read_timeout(Some(SILENCE))?;
                let mut reader = BufReader::new(stream.try_clone()?);
                handshake::connect(&mut reader, &mut &stream, key, run)?;
                return Ok((stream, reader));
            }
            Err(error) => problem = error,
        }
    }
    Err(problem)
}
