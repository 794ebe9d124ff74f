//! The HTTP API of Kubernetes for [`longshore_engine`], as a tower [`Service`].
//!
//! [`ApiServer::service`] answers requests in process, without sockets or
//! authentication; [`ApiServer::serve`] adds TLS and authentication. This crate
//! implements everything about HTTP: routes, content negotiation, discovery,
//! tables and streams. The engine implements the semantics of requests.
//!
//! ```
//! use longshore_apiserver::{ApiServer, AuthorizationMode, Body, NoLogs, NoStreams, Options};
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
//!     authorization: AuthorizationMode::Rbac,
//!     token_key: None,
//!     node_logs,
//!     node_streams,
//!     faults: false,
//!     warn_unhandled_kinds: false,
//! });
//! let request = http::Request::get("/api/v1/namespaces/default").body(Body::empty())?;
//! let response = server.service().oneshot(request).await?;
//! assert_eq!(response.status(), 200);
//! # Ok(())
//! # }
//! ```
//!
//! [`Service`]: tower::Service

mod aggregation;
mod audit;
mod auth;
mod authorization;
mod body;
mod body_room;
mod call;
mod certificate;
mod certificate_request;
mod connection;
mod discovery;
mod distinguished_name;
mod documents;
mod duplicate_fields;
mod event_line;
mod handlers;
mod inject;
mod input;
pub mod limits;
mod metrics;
mod negotiate;
mod no_node;
mod offload;
mod params;
mod passed_on;
mod policy_types;
mod present;
mod pretty;
mod proxied;
mod query;
mod remote;
mod reply;
mod respond;
mod review;
mod route;
mod server;
mod service;
mod shares;
mod snapshots;
mod spdy;
mod status_error;
mod stopping;
mod streams;
mod table;
pub mod tls;
mod tokens;
mod unauthenticated;
mod unread_body;
mod usage;
mod user;
mod verb;
mod webhooks;
mod yaml;

pub use audit::{AuditLog, Policy as AuditPolicy, PolicyError as AuditPolicyError};
pub use authorization::{AuthorizationMode, UnknownMode};
pub use body::Body;
pub use certificate::ClientCertificate;
pub use certificate_request::{CertificateRequest, RequestError};
pub use inject::{
    Effect, FaultError, FaultReport, FaultRule, Faults, MOST_FAULTS, Match, WatchEnd,
};
pub use no_node::{NoLogs, NoStreams};
pub use respond::ConnectionDropped;
pub use server::{ApiServer, Options};
pub use service::ApiService;
pub use tls::{Authority, ServerTls, TlsError};
pub use tokens::TokenKey;
