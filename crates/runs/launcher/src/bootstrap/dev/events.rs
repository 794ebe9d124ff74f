//! The events of the supervisor.

use std::os::unix::net::UnixStream;

use super::staged::Staged;
use crate::bootstrap::supervise::Mailbox;

/// The number of a connection; later connections have higher numbers.
pub(super) type ConnectionId = u64;

/// An event of the supervisor, except signals and the end of the command.
#[derive(Debug)]
pub(super) enum Event {
    /// A client has connected.
    Connected(ConnectionId, UnixStream),
    /// A client has begun the session with this number.
    Begun(ConnectionId, u64),
    /// A client has requested a listing of the code.
    Described(ConnectionId),
    /// A client has sent an order.
    Order(ConnectionId, Box<Staged>),
    /// An order of a client cannot be executed.
    Refused(ConnectionId, String),
    /// A client has disconnected.
    Disconnected(ConnectionId),
}

pub(super) type Events = Mailbox<Event>;
