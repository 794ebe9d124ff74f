//! Kubernetes' HTTP API over [`longshore_engine`], as a tower [`Service`].
//!
//! [`ApiServer::service`] answers requests in process, without sockets or
//! authentication; [`ApiServer::serve`] puts TLS and authentication before it.
//! Routes, content negotiation, discovery, tables and streams live here, and
//! so does everything about HTTP; what the requests mean is the engine's.
//!
//! ```
//! use longshore_apiserver::{ApiServer, Body, NoLogs, NoStreams, Options};
//! use longshore_engine::Engine;
//! use tower::ServiceExt as _;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::open(longshore_engine::Options::default())?;
//! let node_logs = std::sync::Arc::new(NoLogs);
//! let node_streams = std::sync::Arc::new(NoStreams);
//! let server = ApiServer::new(Options {
//!     engine,
//!     token: None,
//!     token_key: None,
//!     node_logs,
//!     node_streams,
//!     faults: false,
//!     warn_idle: false,
//! });
//! let request = http::Request::get("/api/v1/namespaces/default").body(Body::empty())?;
//! let response = server.service().oneshot(request).await?;
//! assert_eq!(response.status(), 200);
//! # Ok(())
//! # }
//! ```
//!
//! [`Service`]: tower::Service

mod auth;
mod body;
mod call;
mod certificate;
mod connection;
mod discovery;
mod documents;
mod event_line;
mod fault;
mod handlers;
mod inject;
mod input;
mod leftover;
pub mod limits;
mod logs;
mod metrics;
mod negotiate;
mod node_streams;
mod params;
mod present;
mod pretty;
mod query;
mod reply;
mod respond;
mod review;
mod route;
mod server;
mod service;
mod spdy;
mod stopping;
mod streams;
mod table;
pub mod tls;
mod tokens;
mod twice;
mod unauthenticated;
mod user;
mod verb;
mod yaml;

pub use body::Body;
pub use certificate::ClientCertificate;
pub use inject::{
    Effect, FaultError, FaultReport, FaultRule, Faults, MOST_FAULTS, Match, WatchEnd,
};
pub use logs::{LogError, LogRequest, LogStream, NoLogs, NodeLogs};
pub use node_streams::{
    BoxedConnection, BoxedRead, BoxedWrite, ContainerRef, Duplex, NoStreams, NodeStreams, Opening,
    Session, StreamError, StreamsWanted,
};
pub use respond::ConnectionDropped;
pub use server::{ApiServer, Options};
pub use service::ApiService;
pub use tls::{Authority, ServerTls, TlsError};
pub use tokens::TokenKey;
