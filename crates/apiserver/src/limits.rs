//! The limits of the server, in one place. Those with a number of
//! Kubernetes' own have that number.

use std::time::Duration;

/// The largest request body, in bytes (as in Kubernetes).
pub const REQUEST_BODY: usize = 3 * 1024 * 1024;

/// A head of an HTTP/1.1 request may have so many bytes (as in Kubernetes); one
/// of twice that is answered 431. HTTP/2's header lists have the same limit.
pub const REQUEST_HEAD: usize = 1 << 20;

/// How long a request may take that is no stream (as in Kubernetes); `timeout`
/// in the query asks for less.
pub const REQUEST_TIME: Duration = Duration::from_secs(60);

/// How long a client may take to send its body.
pub const BODY_TIME: Duration = Duration::from_secs(60);

/// How long a client may take over the TLS handshake.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// How long an HTTP/1.1 connection may lie idle, and how long its client may
/// take to send a request's head. Clients keep connections in pools for about
/// 90 s.
pub const IDLE_TIME: Duration = Duration::from_secs(120);

/// How often HTTP/2 clients are asked whether they are still there, and how
/// long they may take to say so.
pub const PING: Duration = Duration::from_secs(30);

/// Requests at a time on one HTTP/2 connection.
pub const STREAMS: u32 = 1000;

/// Connections at a time, as far as the limit of open files allows; the next
/// ones wait to be accepted.
pub const CONNECTIONS: usize = 20_000;

/// How long requests may go on once the server is stopping.
pub const FAREWELL: Duration = Duration::from_secs(1);

/// Bytes of a session's stream that are handed on at a time.
pub(crate) const STREAM_CHUNK: usize = 32 * 1024;

/// The largest message of a websocket, in bytes (as in Kubernetes).
pub const SOCKET_MESSAGE: usize = 32 << 20;

/// Streams at a time on one SPDY connection.
pub const SPDY_STREAMS: usize = 1000;

/// Sessions at a time: exec, attach and port-forward.
pub const SESSIONS: usize = 2000;

/// How long a session may lie still (as in Kubernetes).
pub const SESSION_IDLE: Duration = Duration::from_secs(4 * 60 * 60);

/// How long a client may take to open the streams of a session (as in
/// Kubernetes).
pub const STREAM_CREATION: Duration = Duration::from_secs(30);

/// How long a client may take to hang up when a session is over.
pub const LINGER: Duration = Duration::from_secs(10);

/// Ports that one websocket may forward.
pub const SOCKET_PORTS: usize = 100;

/// The size from which answers are compressed, in bytes (as in Kubernetes).
pub const COMPRESS_FROM: u64 = 128 * 1024;

/// From so many objects on, a list is made off the threads that serve others.
pub(crate) const LIST_ASIDE: usize = 1000;

/// So many chunks of a body are made before others have their turn.
pub(crate) const CHUNKS_AT_A_TIME: u32 = 2;

/// From this size on, a body is parsed off the threads that serve others.
pub(crate) const PARSE_ASIDE: usize = 64 * 1024;
