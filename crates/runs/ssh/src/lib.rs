//! An SSH server for one connection, on a pair of streams such as standard input and output, and
//! an SFTP server.
//!
//! The server runs in the process of a `ProxyCommand`, on the machine of the user: its peer is the
//! SSH client of the same user, at the other end of a pipe. A [`Host`] starts the sessions'
//! programs and makes the forwarded connections.
//!
//! - [`keys`]: the keys of the server and of its client, in a folder of the user;
//! - [`serve`]: the server, which consists of `transport` (packets, encryption, key exchange;
//!   without I/O), `auth` (accepts one key), and `connection` (channels and their flow control);
//! - [`Request`]: the program and environment of a session, encoded for a program in the container;
//! - [`sftp`]: a server of the protocol for files, which runs in the container.
//!
//! The protocol is implemented here, with the primitives of ring. The crate for it, russh, stops
//! reading from the client while one channel's data is not consumed, so that a command that writes
//! while it reads, such as `cat`, blocks forever; and it has 40 packages.

mod auth;
mod connection;
mod host;
pub mod keys;
mod request;
mod serve;
pub mod sftp;
mod transport;
mod wire;

pub use host::{BoxRead, BoxWrite, Control, Exit, Host, Refusal, Started, Stream};
pub use keys::{Keys, KeysError};
pub use request::{HELLO, MAX_REQUEST_BYTES, Program, Request, Terminal, hello, process_of};
pub use serve::{Served, serve};
pub use transport::Error;
pub use wire::Malformed;
