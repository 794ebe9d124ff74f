//! The server: its configuration, its in-process services, and its network
//! interface (TLS, HTTP/1.1, HTTP/2, authentication, graceful shutdown).

use std::{
    future::Future,
    io,
    pin::pin,
    sync::{Arc, Mutex, OnceLock},
};

use futures::future::BoxFuture;
use longshore_engine::Engine;
use longshore_node_api::{NodeLogs, NodeStreams};
use rustix::process::{Resource, getrlimit};
use tokio::{net::TcpListener, sync::watch};

use crate::{
    aggregation,
    audit::AuditLog,
    auth::{Authenticator, Caller, Token},
    authorization::{self, AuthorizationMode, Authorizer},
    call::Shared,
    connection::Connections,
    inject::Faults,
    limits,
    metrics::Metrics,
    passed_on::PassedOn,
    respond::Responder,
    service::ApiService,
    shares::Shares,
    snapshots::Snapshots,
    stopping::stopped,
    tls::{ServerTls, TlsError},
    tokens::TokenKey,
    webhooks::Webhooks,
};

/// The configuration of a server.
pub struct Options {
    /// The engine that stores and processes objects.
    pub engine: Engine,
    /// The bearer token that [`ApiServer::serve`] requires; `None` to accept requests without a
    /// token.
    pub token: Option<String>,
    /// The authorization mode for users who are not administrators.
    pub authorization: AuthorizationMode,
    /// Signs service account tokens. If `None`, the server does not issue or accept them.
    pub token_key: Option<TokenKey>,
    /// Provides container logs.
    pub node_logs: Arc<dyn NodeLogs>,
    /// Provides exec, attach and port-forward.
    pub node_streams: Arc<dyn NodeStreams>,
    /// Set to make fault injection available over HTTP, see [`Faults`].
    pub faults: bool,
    /// Set to warn clients that create an object of a kind that none of the embedded cluster's
    /// controllers handles.
    pub warn_unhandled_kinds: bool,
}

/// A Kubernetes API server backed by an engine. Cheap to clone.
#[derive(Clone)]
pub struct ApiServer {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer").finish_non_exhaustive()
    }
}

impl ApiServer {
    /// Creates a server, without starting any task.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let files = getrlimit(Resource::Nofile).current;
        let (sessions, forwarded) = limits::sessions(files);
        let authenticator = Authenticator {
            engine: options.engine.clone(),
            token: options.token.as_deref().map(Token::new),
            token_key: options.token_key,
            allows_anonymous: options.authorization == AuthorizationMode::Rbac,
        };
        let authorizer = Authorizer::new(options.engine.clone(), options.authorization);
        let shared = Shared {
            authenticator,
            authorizer,
            faults: Faults::new(options.engine.clone()),
            snapshots: Snapshots::default(),
            metrics: Metrics::default(),
            faults_endpoint: options.faults,
            warn_unhandled_kinds: options.warn_unhandled_kinds,
            engine: options.engine,
            node_logs: options.node_logs,
            node_streams: options.node_streams,
            sessions: Shares::new(sessions, sessions / 2),
            forwarded: Shares::new(forwarded, forwarded / 2),
            passed_on: PassedOn::new(limits::passed_on(files)),
            documents: Mutex::default(),
            webhooks: Webhooks::default(),
            aggregation: Arc::default(),
            audit: OnceLock::new(),
            closing: watch::Sender::new(false),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Records requests in an audit log from now on. Has no effect if an audit log is already set.
    pub fn record_to(&self, log: AuditLog) {
        let _ = self.shared.audit.set(log);
    }

    /// Creates missing default roles and bindings, and adds missing permissions to existing ones.
    /// Has no effect in modes that do not use roles.
    ///
    /// # Errors
    /// An object cannot be written.
    pub async fn ensure_default_policy(&self) -> Result<(), longshore_engine::Error> {
        match self.shared.authorizer.mode() {
            AuthorizationMode::Rbac => {
                authorization::ensure_default_policy(&self.shared.engine).await
            }
            AuthorizationMode::AlwaysAllow => Ok(()),
        }
    }

    /// Aggregates other API servers until this server is closed or dropped: checks the servers of
    /// APIServices, reads their discovery documents, and maintains the APIServices of custom
    /// groups. Without it, requests to aggregated API servers get 503, like requests to a server
    /// whose checks have not passed.
    #[must_use]
    pub fn aggregate(&self) -> BoxFuture<'static, ()> {
        let (engine, closing) = (self.shared.engine.clone(), self.shared.closing.subscribe());
        Box::pin(aggregation::run(
            self.shared.aggregation.clone(),
            engine,
            closing,
        ))
    }

    /// The data of the ConfigMap `kube-system/extension-apiserver-authentication`, which
    /// tells aggregated API servers how this server authenticates to them, apart from
    /// `client-ca-file`.
    ///
    /// # Errors
    /// The machine has no source of randomness.
    pub fn request_headers(&self) -> Result<Vec<(&'static str, String)>, TlsError> {
        self.shared.aggregation.request_headers()
    }

    /// Returns the in-process service, without sockets and authentication.
    #[must_use]
    pub fn service(&self) -> ApiService {
        ApiService(self.in_process(true))
    }

    /// Like [`ApiServer::service`], for components of the cluster itself: fault
    /// injection does not apply.
    #[must_use]
    pub fn sheltered_service(&self) -> ApiService {
        ApiService(self.in_process(false))
    }

    fn in_process(&self, applies_faults: bool) -> Responder {
        Responder {
            shared: self.shared.clone(),
            caller: Caller::InProcess,
            remote: None,
            applies_faults,
            stopping: self.shared.closing.subscribe(),
        }
    }

    /// The fault injection rules of this server. They apply to all clients except for
    /// [sheltered](ApiServer::sheltered_service) clients.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Ends all watches, log streams and sessions, in process and on the
    /// network, and every [`ApiServer::serve`]. Other requests are still
    /// answered in process.
    pub fn close(&self) {
        self.shared.closing.send_replace(true);
    }

    /// Serves a loopback listener until `shutdown` resolves or the server is
    /// closed. Streams then end immediately; other requests may take one more
    /// second.
    ///
    /// # Errors
    /// The listener is not bound to a loopback address.
    pub async fn serve(
        &self,
        listener: TcpListener,
        tls: ServerTls,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        self.serve_until(listener, tls, Box::pin(shutdown)).await
    }

    /// Boxed, so that only this crate compiles the future, and not each crate that awaits it.
    fn serve_until(
        &self,
        listener: TcpListener,
        tls: ServerTls,
        shutdown: BoxFuture<'static, ()>,
    ) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(self.accept(listener, tls, shutdown))
    }

    async fn accept(
        &self,
        listener: TcpListener,
        tls: ServerTls,
        shutdown: BoxFuture<'static, ()>,
    ) -> io::Result<()> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{address} is not a loopback address: listen on 127.0.0.1 or ::1"),
            ));
        }
        let stop = watch::Sender::new(false);
        let responder = Responder {
            shared: self.shared.clone(),
            caller: Caller::Network(None),
            remote: None,
            applies_faults: true,
            stopping: stop.subscribe(),
        };
        let mut connections = Connections::new(tls, responder);
        let mut shutdown = pin!(shutdown);
        let mut closing = pin!(stopped(self.shared.closing.subscribe()));
        tokio::select! {
            () = &mut shutdown => {}
            () = &mut closing => {}
            () = connections.accept(&listener) => {}
        }
        drop(listener);
        stop.send_replace(true);
        connections.end(limits::SHUTDOWN_TIMEOUT).await;
        Ok(())
    }
}
