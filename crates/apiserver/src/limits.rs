//! The limits of the server, in one place. Those with a number of
//! Kubernetes' own have that number.

use std::time::Duration;

/// The largest request body, in bytes (as in Kubernetes).
pub const REQUEST_BODY: usize = 3 * 1024 * 1024;

/// The largest head of an HTTP/1.1 request, in bytes; a larger one is answered
/// 431. HTTP/2's header lists have the same limit. Kubernetes has 1 MiB: this is
/// what any local user can make the server keep for each connection.
pub const REQUEST_HEAD: usize = 64 << 10;

/// How long a request may take that is no stream (as in Kubernetes); `timeout`
/// in the query asks for less.
pub const REQUEST_TIME: Duration = Duration::from_secs(60);

/// Bodies of requests up to this size are always read, in bytes.
pub const SMALL_BODY: usize = 64 << 10;

/// Bytes of larger bodies at a time, of all requests together. A request that
/// would take more is answered 429.
pub const BODIES: usize = 64 << 20;

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

/// Connections at a time whose client has not authenticated; when there are
/// more, the oldest is closed.
pub const UNAUTHENTICATED_CONNECTIONS: usize = 1024;

/// How long a client may take to send its first request with valid
/// credentials, the TLS handshake included.
pub const UNAUTHENTICATED_TIME: Duration = Duration::from_secs(10);

/// Requests without valid credentials on a connection that has not
/// authenticated; one more closes it.
pub const UNAUTHENTICATED_REQUESTS: u32 = 16;

/// Descriptors that connections leave to the rest of the process, at least; a
/// quarter of those there are, where that is more.
pub const RESERVED_DESCRIPTORS: usize = 256;

/// How many connections and how many unauthenticated ones there may be with a
/// limit of open files; `None`: there is no limit.
pub(crate) fn connections(files: Option<u64>) -> (usize, usize) {
    let files = files.map_or(usize::MAX, |files| {
        usize::try_from(files).unwrap_or(usize::MAX)
    });
    let reserved = RESERVED_DESCRIPTORS.max(files / 4);
    let all = files.saturating_sub(reserved).clamp(8, CONNECTIONS);
    (all, (all / 4).clamp(4, UNAUTHENTICATED_CONNECTIONS))
}

/// How many sessions and how many connections to pods' ports there may be with
/// a limit of open files: each of them takes several.
pub(crate) fn sessions(files: Option<u64>) -> (usize, usize) {
    let files = files.map_or(usize::MAX, |files| {
        usize::try_from(files).unwrap_or(usize::MAX)
    });
    (
        (files / 32).clamp(16, SESSIONS),
        (files / 16).clamp(32, FORWARDED_CONNECTIONS),
    )
}

/// How long requests may go on once the server is stopping.
pub const FAREWELL: Duration = Duration::from_secs(1);

/// Bytes of a session's stream that are handed on at a time.
pub(crate) const STREAM_CHUNK: usize = 32 * 1024;

/// The largest message of a websocket, in bytes (as in Kubernetes).
pub const SOCKET_MESSAGE: usize = 32 << 20;

/// Bytes of one websocket's message that always have room while it arrives.
pub const SOCKET_UNREAD: usize = 64 << 10;

/// Bytes of larger messages, of all websockets together. A websocket keeps the
/// room for its largest message until it ends; one for which there is no room
/// is closed with code 1013.
pub const SOCKETS_UNREAD: usize = 256 << 20;

/// How long a client that broke the protocol may go on sending, unread, so
/// that it sees why its connection is closed.
pub(crate) const DRAIN: Duration = Duration::from_secs(2);

/// The value of a SPDY stream's header, in bytes.
pub(crate) const SPDY_HEADER: usize = 256;

/// Streams at a time on one SPDY connection: two for each forwarded
/// connection.
pub const SPDY_STREAMS: usize = 256;

/// Bytes of one SPDY connection's streams that wait to be read. When there are
/// more, the connection is not read.
pub const SPDY_UNREAD: usize = 1 << 20;

/// Connections to pods' ports at a time, of all sessions together.
pub const FORWARDED_CONNECTIONS: usize = 2000;

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

/// Pieces of work at a time that are done off the threads that serve others.
pub(crate) const ASIDE: usize = 16;

/// From this size on, a body is parsed off the threads that serve others.
pub(crate) const PARSE_ASIDE: usize = 64 * 1024;

/// The shortest time that a service account token can be asked for, in
/// seconds (as in Kubernetes).
pub const TOKEN_LEAST_SECONDS: i64 = 600;

/// And the longest (as in Kubernetes).
pub const TOKEN_MOST_SECONDS: i64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::{connections, sessions};

    #[test]
    fn sessions_fit_into_the_limit_of_open_files() {
        for (files, expected) in [
            (None, (2000, 2000)),
            (Some(1 << 20), (2000, 2000)),
            (Some(4096), (128, 256)),
            (Some(256), (16, 32)),
        ] {
            assert_eq!(sessions(files), expected, "{files:?}");
        }
    }

    #[test]
    fn connections_leave_descriptors_to_others() {
        for (files, expected) in [
            (None, (20_000, 1024)),
            (Some(1 << 20), (20_000, 1024)),
            (Some(20_000), (15_000, 1024)),
            (Some(1024), (768, 192)),
            (Some(256), (8, 4)),
            (Some(0), (8, 4)),
        ] {
            assert_eq!(connections(files), expected, "{files:?}");
        }
    }
}
