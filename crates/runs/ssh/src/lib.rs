//! An SSH server for one connection, on a pair of streams such as standard input and output, and
//! an SFTP server.
//!
//! The server runs in the process of a `ProxyCommand`, on the machine of the user: its peer is
//! the SSH client of the same user, at the other end of a pipe. What a session executes, and where
//! a forwarded connection leads, is the decision of a [`Host`].
//!
//! - [`keys`]: the keys of the server and of its client, in a folder of the user;
//! - [`serve`]: the server, made of `transport` (packets, encryption, key exchange; without I/O),
//!   `auth` (accepts one key), and `connection` (channels and their flow control);
//! - [`Request`]: what a session executes, and its encoding for a program at another place;
//! - [`sftp`]: a server of the protocol for files, for that other place.
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
