//! SPDY/3.1, as Kubernetes' clients speak it for exec, attach and port-forward:
//! the server's side of a connection with many streams, each opened by the
//! client with headers that say what it is for.
//!
//! There is no library for it that is kept: the protocol ended in 2016
//! elsewhere.

mod connection;
mod dictionary;
mod frame;
mod headers;
#[cfg(test)]
mod tests;

pub(crate) use connection::{Connection, Stream, Writer};
pub(crate) use headers::Headers;

/// A peer that does not keep to the protocol: how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the SPDY connection brought {0}")]
pub(crate) struct ProtocolError(pub(crate) &'static str);
