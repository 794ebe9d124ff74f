//! The limits of the server. Limits that exist in Kubernetes have the same
//! value.

use std::time::Duration;

/// The largest request body, in bytes (as in Kubernetes).
pub const REQUEST_BODY: usize = 3 * 1024 * 1024;

/// The largest head of an HTTP/1.1 request in bytes; a larger head is answered
/// with 431. HTTP/2 header lists have the same limit. Kubernetes allows 1 MiB;
/// this limit is lower because any local user can make the server keep this
/// much for each connection.
pub const REQUEST_HEAD: usize = 64 << 10;

/// The largest response of a webhook in bytes: several times the largest
/// object.
pub(crate) const WEBHOOK_RESPONSE: usize = 8 << 20;

/// Total size in bytes of the larger requests to webhooks that are in progress, beyond a small part
/// of each; others wait, within their time limit.
pub const WEBHOOK_REVIEWS: usize = 64 << 20;

/// Total size in bytes of the larger responses of webhooks that are being received; others fail.
pub const WEBHOOK_RESPONSES: usize = 64 << 20;

/// Calls of one webhook that are in progress at the same time; others wait, within their time
/// limit.
pub const WEBHOOK_CALLS: usize = 256;

/// Total size of the events that wait to be written to the audit log, in bytes;
/// beyond that, events are dropped and counted.
pub const AUDIT_QUEUE: usize = 16 << 20;

/// The largest body that the audit log contains, in bytes.
pub const AUDIT_BODY: usize = 3 * 1024 * 1024;

/// Time limit of a request that is not a stream (as in Kubernetes); `timeout`
/// in the query can lower it.
pub const REQUEST_TIME: Duration = Duration::from_secs(60);

/// Size in bytes that each request body may have at any time.
pub const SMALL_BODY: usize = 64 << 10;

/// Total size in bytes of the received parts of larger request bodies. A request that would exceed
/// it is answered with 429. The last quarter is reserved for administrators.
pub const BODIES: usize = 64 << 20;

/// The largest part of [`BODIES`] for a user who is not an administrator.
pub const BODIES_OF_USER: usize = 24 << 20;

/// Time limit for a client to send its body.
pub const BODY_TIME: Duration = Duration::from_secs(60);

/// Time limit of the TLS handshake.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Maximum time that an HTTP/1.1 connection is idle, and for its client to send a request head.
/// Clients keep connections in pools for about 90 s.
pub const IDLE_TIME: Duration = Duration::from_secs(120);

/// Interval of HTTP/2 pings, and maximum time for a client to answer one.
pub const PING: Duration = Duration::from_secs(30);

/// Concurrent requests per HTTP/2 connection.
pub const STREAMS: u32 = 1000;

/// Concurrent connections, as far as the limit of open files allows; further
/// connections wait to be accepted.
pub const CONNECTIONS: usize = 20_000;

/// Concurrent connections whose client has not authenticated; beyond that, the
/// oldest is closed.
pub const UNAUTHENTICATED_CONNECTIONS: usize = 1024;

/// Maximum time for a client to send its first request with valid credentials, including the TLS
/// handshake.
pub const UNAUTHENTICATED_TIME: Duration = Duration::from_secs(10);

/// Requests without valid credentials on an unauthenticated connection; the
/// next one ends it.
pub const UNAUTHENTICATED_REQUESTS: u32 = 16;

/// Minimum number of file descriptors that connections leave to the rest of the
/// process. If a quarter of the limit is larger, that is used.
pub const RESERVED_DESCRIPTORS: usize = 256;

/// Returns the maximum numbers of connections and of unauthenticated
/// connections for a limit of open files; `None` means no limit.
pub(crate) fn connections(files: Option<u64>) -> (usize, usize) {
    let files = files.map_or(usize::MAX, |files| {
        usize::try_from(files).unwrap_or(usize::MAX)
    });
    let reserved = RESERVED_DESCRIPTORS.max(files / 4);
    let all = files.saturating_sub(reserved).clamp(8, CONNECTIONS);
    (all, (all / 4).clamp(4, UNAUTHENTICATED_CONNECTIONS))
}

/// Returns the maximum numbers of sessions and of connections to pods' ports for a limit of open
/// files. Each session or connection needs several files.
pub(crate) fn sessions(files: Option<u64>) -> (usize, usize) {
    let files = files.map_or(usize::MAX, |files| {
        usize::try_from(files).unwrap_or(usize::MAX)
    });
    (
        (files / 32).clamp(16, SESSIONS),
        (files / 16).clamp(32, FORWARDED_CONNECTIONS),
    )
}

/// Returns the maximum number of requests that are passed on for a limit of open files. Each
/// request needs several files.
pub(crate) fn passed_on(files: Option<u64>) -> usize {
    let files = files.map_or(usize::MAX, |files| {
        usize::try_from(files).unwrap_or(usize::MAX)
    });
    (files / 16).clamp(32, PASSED_ON)
}

/// Maximum time that requests continue after the server starts to stop.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes of a session's stream that are forwarded at a time.
pub(crate) const STREAM_CHUNK: usize = 32 * 1024;

/// The largest WebSocket message in bytes (as in Kubernetes).
pub const SOCKET_MESSAGE: usize = 32 << 20;

/// Bytes of an arriving message that each WebSocket can always hold.
pub const SOCKET_UNREAD: usize = 64 << 10;

/// Total bytes of larger messages of all WebSockets. A WebSocket keeps the
/// reservation for its largest message until it ends; if the total is
/// exhausted, it is closed with code 1013.
pub const SOCKETS_UNREAD: usize = 256 << 20;

/// Maximum time that a client that violated the protocol may keep sending data. The data is
/// discarded, so that the client receives the reason for the close.
pub(crate) const DRAIN: Duration = Duration::from_secs(2);

/// The largest value of a SPDY stream header in bytes.
pub(crate) const SPDY_HEADER: usize = 256;

/// Concurrent streams per SPDY connection: two for each forwarded connection.
pub const SPDY_STREAMS: usize = 256;

/// Unread bytes of all streams of one SPDY connection. Beyond that, the server
/// stops reading the connection.
pub const SPDY_UNREAD: usize = 1 << 20;

/// Concurrent connections to pods' ports of all sessions.
pub const FORWARDED_CONNECTIONS: usize = 2000;

/// Requests that are passed on to aggregated API servers and to ports of pods at the same time, as
/// far as the limit of open files allows.
pub const PASSED_ON: usize = 1000;

/// The largest number of these requests to the same server or pod.
pub const PASSED_ON_TO_ONE: usize = 256;

/// Concurrent sessions: exec, attach and port-forward.
pub const SESSIONS: usize = 2000;

/// Maximum time that a session is idle (as in Kubernetes).
pub const SESSION_IDLE: Duration = Duration::from_secs(4 * 60 * 60);

/// Maximum time for a client to open the streams of a session (as in Kubernetes).
pub const STREAM_CREATION: Duration = Duration::from_secs(30);

/// Maximum time for a client to close the connection after its session has ended.
pub const LINGER: Duration = Duration::from_secs(10);

/// Maximum number of ports that one WebSocket can forward.
pub const SOCKET_PORTS: usize = 100;

/// Size in bytes from which responses are compressed (as in Kubernetes).
pub const COMPRESS_FROM: u64 = 128 * 1024;

/// Number of objects from which a list is rendered off the threads that serve
/// requests.
pub(crate) const LIST_OFFLOAD: usize = 1000;

/// Number of body chunks that are produced before the task yields.
pub(crate) const CHUNKS_AT_A_TIME: u32 = 2;

/// Concurrent tasks that run off the threads that serve requests.
pub(crate) const OFFLOADED_TASKS: usize = 16;

/// The same for each user except for administrators.
pub(crate) const OFFLOADED_TASKS_OF_USER: usize = 4;

/// Size in bytes from which a body is parsed off the threads that serve
/// requests.
pub(crate) const PARSE_OFFLOAD: usize = 64 * 1024;

/// The shortest validity of a service account token in seconds (as in
/// Kubernetes).
pub const TOKEN_LEAST_SECONDS: i64 = 600;

/// The longest validity of a service account token in seconds (as in
/// Kubernetes).
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
