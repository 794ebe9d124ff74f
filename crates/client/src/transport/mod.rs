//! Sends requests: the only place that talks to a server. It knows bytes and
//! paths, and nothing of the objects in them.

mod answer;
mod body;
mod call;
mod config;
mod connection;
mod credentials;
mod explain;
mod kubeconfig;
mod proxies;
mod refusal;
mod request_metrics;
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
    answer::parse,
    call::{Call, JSON, escape},
    refusal::status,
    stream::{Lines, pieces, within},
};
use self::{
    config::Source,
    connection::{Connection, Make, Renewing},
    explain::shown,
    warnings::Warnings,
};
use crate::{
    error::{Error, Result},
    locks::{Mutex, RwLock},
};
pub use timing::Timing;

/// The user agent where no other is given.
const AGENT: &str = concat!("longshore/", env!("CARGO_PKG_VERSION"));

/// A connection to a server. Clones share one pool of connections and are closed
/// together.
#[derive(Clone)]
pub(crate) struct Transport {
    shared: Arc<Shared>,
    settings: Arc<Settings>,
}

/// What clones may have each of their own.
#[derive(Clone)]
struct Settings {
    timing: Timing,
    agent: HeaderValue,
    warnings: Warnings,
}

struct Shared {
    connection: RwLock<Connection>,
    /// One renewal of credentials at a time.
    renewing: tokio::sync::Mutex<()>,
    source: Option<Source>,
    url: String,
    closed: CancellationToken,
}

impl Transport {
    fn new(connection: Connection, source: Option<Source>, url: String) -> Self {
        let shared = Shared {
            connection: RwLock::new(connection),
            renewing: tokio::sync::Mutex::new(()),
            source,
            url,
            closed: CancellationToken::new(),
        };
        let settings = Settings {
            timing: Timing::default(),
            agent: HeaderValue::from_static(AGENT),
            warnings: Warnings::default(),
        };
        Self {
            shared: Arc::new(shared),
            settings: Arc::new(settings),
        }
    }

    /// To the cluster that the environment names, and the namespace of its
    /// context.
    pub(crate) async fn infer() -> Result<(Self, String)> {
        Self::from_source(Source::Infer).await
    }

    /// To the cluster of a kubeconfig, and the namespace of its context.
    pub(crate) async fn from_kubeconfig(
        path: Option<PathBuf>,
        context: Option<String>,
    ) -> Result<(Self, String)> {
        Self::from_source(Source::Kubeconfig { path, context }).await
    }

    async fn from_source(source: Source) -> Result<(Self, String)> {
        let config = source.load().await?;
        let (url, namespace) = (shown(&config.cluster_url), config.default_namespace.clone());
        let (client, expires) = config::client_in_background(config).await?;
        let connection = Connection {
            client: Some(client),
            make: Mutex::new(None),
            generation: 0,
            expires,
        };
        Ok((Self::new(connection, Some(source), url), namespace))
    }

    /// To a plain URL.
    pub(crate) fn from_url(url: &str) -> Result<Self> {
        let wrong = || {
            Error::Config(
                "the cluster's URL is not valid: write it as http://localhost:8001/".to_owned(),
            )
        };
        let text = url.trim_end_matches('/');
        let mut uri: http::Uri = text.parse().map_err(|_| wrong())?;
        // Some clients take the URL of the API root, which is part of every path here.
        if uri.path().ends_with("/api")
            && let Some(base) = text.strip_suffix("/api")
        {
            uri = base.parse().map_err(|_| wrong())?;
        }
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(wrong());
        }
        let shown = shown(&uri);
        let config = Config::new(uri);
        let refused = Arc::new(RwLock::new(None));
        let make: Make = {
            let refused = refused.clone();
            Box::new(move || {
                config::client(config).unwrap_or_else(|error| {
                    *refused.write() = Some(error.to_string());
                    let failing = tower::service_fn(move |_| {
                        let problem = refused.read().clone().unwrap_or_default();
                        async move { Err::<Response<Body>, BoxError>(problem.into()) }
                    });
                    Client::new(failing, "default")
                })
            })
        };
        let connection = Connection {
            client: None,
            make: Mutex::new(Some(make)),
            generation: 0,
            expires: None,
        };
        Ok(Self::new(connection, None, shown))
    }

    /// To a service in the same process.
    pub(crate) fn from_service<S, B>(service: S, namespace: &str) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let namespace = namespace.to_owned();
        let make: Make = Box::new(move || Client::new(service, namespace));
        let connection = Connection {
            client: None,
            make: Mutex::new(Some(make)),
            generation: 0,
            expires: None,
        };
        Self::new(connection, None, "http://in-process".to_owned())
    }

    pub(crate) fn set_timing(&mut self, timing: Timing) {
        Arc::make_mut(&mut self.settings).timing = timing;
    }

    /// A name that cannot stand in a header changes nothing.
    pub(crate) fn set_user_agent(&mut self, name: &str) {
        let agent = format!("{name}/{}", env!("CARGO_PKG_VERSION"));
        if let Ok(agent) = HeaderValue::from_str(&agent) {
            Arc::make_mut(&mut self.settings).agent = agent;
        }
    }

    pub(crate) fn set_warning_handler(&mut self, handler: impl Fn(&str) + Send + Sync + 'static) {
        Arc::make_mut(&mut self.settings).warnings = Warnings::to(handler);
    }

    /// kube-client's client on the same connection.
    pub(crate) fn kube_client(&self, namespace: &str) -> Client {
        match self.shared.source {
            Some(_) => Client::new(Renewing(self.clone()), namespace),
            None => self.current().0,
        }
    }

    pub(crate) fn timing(&self) -> &Timing {
        &self.settings.timing
    }

    /// Where the server is, without credentials.
    pub(crate) fn url(&self) -> &str {
        &self.shared.url
    }

    /// Cancelled once the connection is closed.
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
