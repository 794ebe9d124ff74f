//! The connection of a task to the first task of the run, made again whenever it is lost.

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
/// How long an attempt may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What the connection's thread says to the task.
#[derive(Debug)]
pub(super) enum News {
    /// There is a connection. Write to it.
    Connected(TcpStream),
    /// The first task ordered something.
    Ordered(Order),
    /// There is no connection, and why.
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
    // A new pod has a new address.
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
