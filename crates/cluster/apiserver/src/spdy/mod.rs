//! SPDY/3.1, which Kubernetes' clients use for exec, attach and port-forward:
//! the server side of a connection with many streams. The client opens each
//! stream with headers that describe its purpose.
//!
//! No maintained library exists: other software dropped the protocol in 2016.

mod connection;
mod dictionary;
mod frame;
mod headers;
#[cfg(test)]
mod tests;

pub(crate) use connection::{Connection, Stream, Writer};
pub(crate) use headers::Headers;

/// A violation of the protocol by the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the SPDY connection brought {0}")]
pub(crate) struct ProtocolError(pub(crate) &'static str);
