//! Kubernetes' HTTP API over [`longshore_engine`], as a tower [`Service`].
//!
//! [`ApiServer::service`] answers requests in process, without sockets or
//! authentication; [`ApiServer::serve`] puts TLS and a bearer token before it.
//! Routes, content negotiation, discovery, tables and streams live here, and
//! so does everything about HTTP; what the requests mean is the engine's.
//!
//! ```
//! # tokio_test();
//! # fn tokio_test() {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use longshore_apiserver::{ApiServer, Body, NoLogs, Options};
//! use longshore_engine::Engine;
//! use tower::ServiceExt as _;
//!
//! let engine = Engine::open(longshore_engine::Options::default()).unwrap();
//! let server = ApiServer::new(Options { engine, token: None, node_logs: std::sync::Arc::new(NoLogs) });
//! let request = http::Request::get("/api/v1/namespaces/default").body(Body::empty()).unwrap();
//! let response = server.service().oneshot(request).await.unwrap();
//! assert_eq!(response.status(), 200);
//! # });
//! # }
//! ```
//!
//! [`Service`]: tower::Service

mod auth;
mod body;
mod discovery;
mod fault;
mod handlers;
mod input;
mod logs;
mod negotiate;
mod params;
mod present;
mod query;
mod reply;
mod review;
mod route;
mod server;
mod service;
mod table;
pub mod tls;

pub use body::Body;
pub use logs::{LogError, LogRequest, LogStream, NoLogs, NodeLogs};
pub use server::{ApiServer, Options};
pub use service::ApiService;
pub use tls::{Authority, ServerTls, TlsError};
