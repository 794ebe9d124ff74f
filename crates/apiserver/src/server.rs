//! The server: its parts, and its face to the network (TLS, HTTP/1.1 and
//! HTTP/2, the token, an end that comes promptly).

use std::{
    future::Future,
    io,
    pin::pin,
    sync::{Arc, Mutex},
};

use longshore_engine::Engine;
use rustix::process::{Resource, getrlimit};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};

use crate::{
    auth::{Authenticator, Caller, Token},
    call::Shared,
    connection::Connections,
    inject::Faults,
    limits,
    logs::NodeLogs,
    metrics::Metrics,
    node_streams::NodeStreams,
    respond::Responder,
    service::ApiService,
    stopping::stopped,
    tls::ServerTls,
    tokens::TokenKey,
};

/// What a server is made of.
pub struct Options {
    /// The state machine behind it.
    pub engine: Engine,
    /// The bearer token asked for by [`ApiServer::serve`]; `None` asks for
    /// none.
    pub token: Option<String>,
    /// Signs service account tokens; `None` issues and accepts none.
    pub token_key: Option<TokenKey>,
    /// Where containers' logs are.
    pub node_logs: Arc<dyn NodeLogs>,
    /// Where containers themselves are: exec, attach, port-forward.
    pub node_streams: Arc<dyn NodeStreams>,
    /// Whether faults on demand can be had over HTTP, see [`Faults`].
    pub faults: bool,
    /// Whether who creates an object is warned when the embedded cluster's own
    /// controllers do not act on its kind.
    pub warn_idle: bool,
}

/// Kubernetes' API server over an engine. Cheap to clone.
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
    /// Puts a server together; nothing runs yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let (sessions, forwarded) = limits::sessions(getrlimit(Resource::Nofile).current);
        let authenticator = Authenticator {
            engine: options.engine.clone(),
            token: options.token.as_deref().map(Token::new),
            token_key: options.token_key,
        };
        let shared = Shared {
            authenticator,
            faults: Faults::new(options.engine.clone()),
            metrics: Metrics::default(),
            faults_endpoint: options.faults,
            warn_idle: options.warn_idle,
            engine: options.engine,
            node_logs: options.node_logs,
            node_streams: options.node_streams,
            sessions: Arc::new(Semaphore::new(sessions)),
            forwarded: Arc::new(Semaphore::new(forwarded)),
            documents: Mutex::default(),
            closing: watch::Sender::new(false),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The server in process: no sockets, no authentication.
    #[must_use]
    pub fn service(&self) -> ApiService {
        ApiService(self.in_process(true))
    }

    /// As [`ApiServer::service`], for parts of the cluster itself: no fault on
    /// demand reaches it.
    #[must_use]
    pub fn sheltered_service(&self) -> ApiService {
        ApiService(self.in_process(false))
    }

    fn in_process(&self, feels_faults: bool) -> Responder {
        Responder {
            shared: self.shared.clone(),
            caller: Caller::InProcess,
            feels_faults,
            stopping: self.shared.closing.subscribe(),
        }
    }

    /// The faults on demand of this server, felt by every client but the
    /// [sheltered](ApiServer::sheltered_service) ones.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Ends every watch, log stream and session, in process and on the network, and
    /// every [`ApiServer::serve`]. Other requests are still answered in
    /// process.
    pub fn close(&self) {
        self.shared.closing.send_replace(true);
    }

    /// Serves a loopback listener until `shutdown` is done or the server is
    /// closed. Streams end then; other requests get a second more.
    ///
    /// # Errors
    /// The listener is not on a loopback address.
    pub async fn serve(
        &self,
        listener: TcpListener,
        tls: ServerTls,
        shutdown: impl Future<Output = ()>,
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
            feels_faults: true,
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
        connections.end(limits::FAREWELL).await;
        Ok(())
    }
}
