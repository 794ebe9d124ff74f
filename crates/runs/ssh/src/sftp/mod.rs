//! A server of the protocol for files, SFTP version 3 with OpenSSH's extensions, as `sftp`, `scp`
//! and editors use it. It has the permissions of its process.
//!
//! Names of files are bytes, as in the file system: they need not be text.

mod attributes;
mod extended;
mod files;
mod handles;
mod listing;
mod reply;
mod server;

use std::io::{self, Read, Write};

use reply::Reply;
use server::Server;

/// The maximum length of a message in bytes, as in OpenSSH.
const MAX_MESSAGE: usize = 256 << 10;
/// The maximum length of the bytes of a read or a write.
const MAX_DATA: u32 = (256 << 10) - 1024;
/// The size of a read from the client in bytes.
const PIECE: usize = 64 << 10;

/// Serves one client, up to the end of the input.
///
/// # Errors
/// Errors of the streams. Also if the client does not follow the protocol.
pub fn serve(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut server = Server::default();
    let mut received = Vec::new();
    let mut buffer = vec![0; PIECE];
    loop {
        let mut rest = &received[..];
        let mut replies = Vec::new();
        while let Some(message) = next(&mut rest)? {
            replies.extend_from_slice(&server.answer(message).encode());
            if replies.len() >= MAX_MESSAGE {
                output.write_all(&replies)?;
                replies.clear();
            }
        }
        let handled = received.len() - rest.len();
        received.drain(..handled);
        if !replies.is_empty() {
            output.write_all(&replies)?;
        }
        output.flush()?;
        match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Takes the next message from the bytes; `None` if it is not complete.
fn next<'a>(bytes: &mut &'a [u8]) -> io::Result<Option<&'a [u8]>> {
    let Some((length, rest)) = bytes.split_first_chunk() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length) as usize;
    if length == 0 || length > MAX_MESSAGE {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the client does not speak SFTP",
        ));
    }
    let Some((message, rest)) = rest.split_at_checked(length) else {
        return Ok(None);
    };
    *bytes = rest;
    Ok(Some(message))
}

#[cfg(test)]
mod tests;
