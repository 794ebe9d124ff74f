//! A request on its way through the handlers, with what they need of the
//! server.

use std::sync::{Arc, Mutex};

use http::{HeaderMap, Method};
use hyper::upgrade::OnUpgrade;
use longshore_engine::Engine;
use tokio::sync::{Semaphore, watch};

use crate::{
    auth::Authenticator, documents::Documents, inject::Faults, logs::NodeLogs, metrics::Metrics,
    node_streams::NodeStreams, query::Query, user::User,
};

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) node_logs: Arc<dyn NodeLogs>,
    pub(crate) node_streams: Arc<dyn NodeStreams>,
    /// Room for sessions.
    pub(crate) sessions: Arc<Semaphore>,
    /// Room for connections to pods' ports.
    pub(crate) forwarded: Arc<Semaphore>,
    /// Documents that are costly to make, by path.
    pub(crate) documents: Mutex<Documents>,
    pub(crate) faults: Faults,
    pub(crate) metrics: Metrics,
    pub(crate) faults_endpoint: bool,
    pub(crate) warn_idle: bool,
    pub(crate) authenticator: Authenticator,
    /// Becomes true when the server is closed.
    pub(crate) closing: watch::Sender<bool>,
}

/// A request on its way through the handlers.
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Query,
    /// The server's name and port, as the client of HTTP/2 gives them.
    pub(crate) authority: Option<http::uri::Authority>,
    /// Who asks.
    pub(crate) user: Arc<User>,
    pub(crate) stopping: watch::Receiver<bool>,
    /// How to take over the connection, where it can be.
    pub(crate) upgrade: Option<OnUpgrade>,
    /// The kind the path names.
    pub(crate) custom: Option<longshore_engine::Served>,
    /// Whether a part of the cluster itself asks.
    pub(crate) sheltered: bool,
}

impl Call {
    /// The client's name: its user agent up to the first slash.
    pub(crate) fn user_agent(&self) -> Option<&str> {
        let agent = self.headers.get(http::header::USER_AGENT)?.to_str().ok()?;
        agent
            .split('/')
            .next()
            .map(str::trim)
            .filter(|name| !name.is_empty())
    }
}
