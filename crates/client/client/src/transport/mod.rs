//! Sends requests to the API server. No other module does I/O with a server. This module
//! handles paths and bytes, and does not know the objects in them.

mod body;
mod call;
mod config;
mod connection;
mod credentials;
mod error_response;
mod explain;
mod kubeconfig;
mod kubeconfig_rules;
mod proxies;
mod request_metrics;
mod response;
mod retry;
mod send;
mod stream;
mod timing;
#[cfg(feature = "exec")]
mod upgrade;
mod warnings;

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use kube_client::{Client, Config, client::Body};
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service};

pub(crate) use self::{
    call::{Call, JSON, escape},
    error_response::status,
    response::parse,
    retry::MAX_RETRY_AFTER,
    stream::{Lines, chunks, within},
};
use self::{
    config::Source,
    connection::{Connection, CreateClient, Renewing},
    explain::display_url,
    warnings::Warnings,
};
use crate::{
    error::{Error, Result},
    locks::{Mutex, RwLock},
};
pub use timing::Timing;

/// The default user agent.
const USER_AGENT: &str = concat!("longshore/", env!("CARGO_PKG_VERSION"));

/// A connection to an API server. Clones share one connection pool and are closed together.
#[derive(Clone)]
pub(crate) struct Transport {
    shared: Arc<Shared>,
    settings: Arc<Settings>,
}

/// The settings, which can differ between clones.
#[derive(Clone)]
struct Settings {
    timing: Timing,
    agent: HeaderValue,
    warnings: Warnings,
}

struct Shared {
    connection: RwLock<Connection>,
    /// Held during a renewal of credentials.
    renewal: tokio::sync::Mutex<()>,
    source: Option<Source>,
    url: String,
    closed: CancellationToken,
}

impl Transport {
    fn new(connection: Connection, source: Option<Source>, url: String) -> Self {
        let shared = Shared {
            connection: RwLock::new(connection),
            renewal: tokio::sync::Mutex::new(()),
            source,
            url,
            closed: CancellationToken::new(),
        };
        let settings = Settings {
            timing: Timing::default(),
            agent: HeaderValue::from_static(USER_AGENT),
            warnings: Warnings::default(),
        };
        Self {
            shared: Arc::new(shared),
            settings: Arc::new(settings),
        }
    }

    /// Returns true if this process runs in a pod that has credentials for the cluster.
    pub(crate) fn is_in_pod() -> bool {
        config::is_in_pod()
    }

    /// Connects to the cluster of the default kubeconfig, or of the pod that this process
    /// runs in. Also returns the namespace of the context.
    pub(crate) async fn infer() -> Result<(Self, String)> {
        Self::from_source(Source::Infer).await
    }

    /// Connects to the cluster of a kubeconfig. Also returns the namespace of the context.
    pub(crate) async fn from_kubeconfig(
        path: Option<PathBuf>,
        context: Option<String>,
    ) -> Result<(Self, String)> {
        Self::from_source(Source::Kubeconfig { path, context }).await
    }

    async fn from_source(source: Source) -> Result<(Self, String)> {
        let config = source.load().await?;
        let (url, namespace) = (
            display_url(&config.cluster_url),
            config.default_namespace.clone(),
        );
        let (client, expires) = config::client_in_background(config).await?;
        let connection = Connection {
            client: Some(client),
            create: Mutex::new(None),
            generation: 0,
            expires,
        };
        Ok((Self::new(connection, Some(source), url), namespace))
    }

    /// Connects to a URL, without credentials.
    pub(crate) fn from_url(url: &str) -> Result<Self> {
        let invalid = || {
            Error::Config(
                "the cluster's URL is not valid: write it as http://localhost:8001/".to_owned(),
            )
        };
        let text = url.trim_end_matches('/');
        let mut uri: http::Uri = text.parse().map_err(|_| invalid())?;
        // Some clients expect the URL of the API root. Here, paths contain `/api`.
        if uri.path().ends_with("/api")
            && let Some(base) = text.strip_suffix("/api")
        {
            uri = base.parse().map_err(|_| invalid())?;
        }
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(invalid());
        }
        let url = display_url(&uri);
        let config = Config::new(uri);
        // If the client cannot be created, each request fails with the reason.
        let create: CreateClient = Box::new(move || {
            config::client(config).unwrap_or_else(|error| {
                let problem = error.to_string();
                let failing = tower::service_fn(move |_| {
                    let problem = problem.clone();
                    async move { Err::<Response<Body>, BoxError>(problem.into()) }
                });
                Client::new(failing, "default")
            })
        });
        let connection = Connection {
            client: None,
            create: Mutex::new(Some(create)),
            generation: 0,
            expires: None,
        };
        Ok(Self::new(connection, None, url))
    }

    /// Connects to a server in this process.
    pub(crate) fn from_service<S, B>(service: S, namespace: &str) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let namespace = namespace.to_owned();
        let create: CreateClient = Box::new(move || Client::new(service, namespace));
        let connection = Connection {
            client: None,
            create: Mutex::new(Some(create)),
            generation: 0,
            expires: None,
        };
        Self::new(connection, None, "http://in-process".to_owned())
    }

    pub(crate) fn set_timing(&mut self, timing: Timing) {
        Arc::make_mut(&mut self.settings).timing = timing;
    }

    /// Sets the user agent to `name` and the version of this crate. Does nothing if `name`
    /// is not valid in a header.
    pub(crate) fn set_user_agent(&mut self, name: &str) {
        let agent = format!("{name}/{}", env!("CARGO_PKG_VERSION"));
        if let Ok(agent) = HeaderValue::from_str(&agent) {
            Arc::make_mut(&mut self.settings).agent = agent;
        }
    }

    pub(crate) fn set_warning_handler(&mut self, handler: impl Fn(&str) + Send + Sync + 'static) {
        Arc::make_mut(&mut self.settings).warnings = Warnings::with_handler(handler);
    }

    /// Returns a client of kube-client that uses the same connection.
    pub(crate) fn kube_client(&self, namespace: &str) -> Client {
        match self.shared.source {
            Some(_) => Client::new(Renewing(self.clone()), namespace),
            None => self.current_client().0,
        }
    }

    pub(crate) fn timing(&self) -> &Timing {
        &self.settings.timing
    }

    /// The URL of the server, without credentials.
    pub(crate) fn url(&self) -> &str {
        &self.shared.url
    }

    /// The token that is cancelled when the connection is closed.
    pub(crate) fn closed(&self) -> &CancellationToken {
        &self.shared.closed
    }
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transport")
            .field("url", &self.shared.url)
            .finish_non_exhaustive()
    }
}
