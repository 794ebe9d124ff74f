//! A request and the server state that handlers need to process it.

use std::sync::{Arc, Mutex, OnceLock};

use http::{HeaderMap, Method};
use hyper::upgrade::OnUpgrade;
use longshore_engine::{Engine, Error, Object};
use longshore_model::KindInfo;
use longshore_node_api::{NodeLogs, NodeStreams};
use tokio::sync::watch;

use crate::{
    aggregation::Aggregation,
    audit::{AuditLog, Record},
    auth::Authenticator,
    authorization::Authorizer,
    documents::Documents,
    inject::Faults,
    metrics::Metrics,
    passed_on::PassedOn,
    query::Query,
    shares::Shares,
    snapshots::Snapshots,
    user::User,
    webhooks::{Converter, Warnings, Webhooks},
};

/// State that all requests share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) node_logs: Arc<dyn NodeLogs>,
    pub(crate) node_streams: Arc<dyn NodeStreams>,
    /// Limits the number of sessions.
    pub(crate) sessions: Shares,
    /// Limits the number of connections to pods' ports.
    pub(crate) forwarded: Shares,
    /// Limits the number of requests that are passed on.
    pub(crate) passed_on: Arc<PassedOn>,
    /// Documents that are expensive to render, by path.
    pub(crate) documents: Mutex<Documents>,
    pub(crate) faults: Faults,
    pub(crate) snapshots: Snapshots,
    pub(crate) metrics: Metrics,
    pub(crate) faults_endpoint: bool,
    pub(crate) warn_unhandled_kinds: bool,
    pub(crate) authenticator: Authenticator,
    pub(crate) authorizer: Authorizer,
    pub(crate) webhooks: Webhooks,
    pub(crate) aggregation: Arc<Aggregation>,
    /// Empty if the audit log is disabled.
    pub(crate) audit: OnceLock<AuditLog>,
    /// Becomes true when the server is closed.
    pub(crate) closing: watch::Sender<bool>,
}

/// A request that handlers process.
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Query,
    /// The server's name and port, from the `:authority` of HTTP/2.
    pub(crate) authority: Option<http::uri::Authority>,
    /// The user who sends the request.
    pub(crate) user: Arc<User>,
    pub(crate) stopping: watch::Receiver<bool>,
    /// Takes over the connection, if it can be upgraded.
    pub(crate) upgrade: Option<OnUpgrade>,
    /// The custom kind that the path names.
    pub(crate) custom: Option<longshore_engine::Served>,
    /// True if the request comes from a component of the cluster itself.
    pub(crate) sheltered: bool,
    /// The warnings of webhooks.
    pub(crate) warnings: Warnings,
    /// The record of the audit log, if it contains the request.
    pub(crate) audit: Option<Arc<Record>>,
}

impl Call {
    /// Returns the converter of the custom kind that the path names, if its
    /// definition has a conversion webhook.
    pub(crate) fn converter(&self) -> Option<Converter> {
        let custom = self.custom.as_ref()?.custom.as_ref()?;
        let webhook = custom.conversion_webhook()?;
        Some(self.shared.webhooks.converter(&self.shared.engine, webhook))
    }

    /// Presents a stored object in the version that the path names.
    pub(crate) async fn present(
        &self,
        info: &KindInfo,
        object: &mut Arc<Object>,
    ) -> Result<(), Error> {
        match self.converter() {
            Some(converter) => converter.present_one(info, object).await,
            None => Ok(()),
        }
    }

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
