//! The server: its parts, and its face to the network (TLS, HTTP/1.1 and
//! HTTP/2, the token, an end that comes promptly).

use std::{
    collections::BTreeMap,
    future::Future,
    io,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use longshore_engine::Engine;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    auth::Token,
    logs::NodeLogs,
    service::{ApiService, stopped},
    tls::ServerTls,
};

/// How long a client may take over the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long an HTTP/1.1 client may take to send a request's head, and how long
/// its connection may lie idle.
const HEAD: Duration = Duration::from_secs(120);
/// How often HTTP/2 clients are asked whether they are still there.
const PING: Duration = Duration::from_secs(30);
/// How long requests may go on once the server is stopping.
const FAREWELL: Duration = Duration::from_secs(1);

/// What a server is made of.
pub struct Options {
    /// The state machine behind it.
    pub engine: Engine,
    /// The bearer token asked for by [`ApiServer::serve`]; `None` asks for
    /// none.
    pub token: Option<String>,
    /// Where containers' logs are.
    pub node_logs: Arc<dyn NodeLogs>,
}

/// Kubernetes' API server over an engine. Cheap to clone.
#[derive(Clone)]
pub struct ApiServer {
    shared: Arc<Shared>,
    token: Option<Token>,
}

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) node_logs: Arc<dyn NodeLogs>,
    /// Documents that are costly to make, by path.
    pub(crate) documents: Mutex<BTreeMap<String, Bytes>>,
    closing: watch::Sender<bool>,
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
        let shared = Shared {
            engine: options.engine,
            node_logs: options.node_logs,
            documents: Mutex::default(),
            closing: watch::Sender::new(false),
        };
        Self {
            shared: Arc::new(shared),
            token: options.token.as_deref().map(Token::new),
        }
    }

    /// The server in process: no sockets, no authentication.
    #[must_use]
    pub fn service(&self) -> ApiService {
        ApiService {
            shared: self.shared.clone(),
            token: None,
            stopping: self.shared.closing.subscribe(),
        }
    }

    /// Ends every watch and log stream, in process and on the network, and
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
        let service = ApiService {
            shared: self.shared.clone(),
            token: self.token.clone(),
            stopping: stop.subscribe(),
        };
        let acceptor = TlsAcceptor::from(tls.0);
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        let mut closing = pin!(stopped(self.shared.closing.subscribe()));
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                () = &mut closing => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(connection(stream, acceptor.clone(), service.clone()));
                    }
                    Err(error) => {
                        // Out of descriptors, most likely: it passes.
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
            }
        }
        drop(listener);
        stop.send_replace(true);
        let drained = async { while connections.join_next().await.is_some() {} };
        if timeout(FAREWELL, drained).await.is_err() {
            connections.shutdown().await;
        }
        Ok(())
    }
}

/// Serves one connection until its client leaves or the server stops.
async fn connection(stream: TcpStream, acceptor: TlsAcceptor, service: ApiService) {
    // Events are small and must not wait for more.
    let _ = stream.set_nodelay(true);
    let stopping = service.stopping.clone();
    let stream = tokio::select! {
        shaken = timeout(HANDSHAKE, acceptor.accept(stream)) => match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => return tracing::debug!("TLS handshake took too long"),
        },
        () = stopped(stopping.clone()) => return,
    };
    // The protocol is settled by TLS, so nobody waits for a preface.
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .max_concurrent_streams(1000)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(1 << 22);
    let builder = if http2 {
        builder.http2_only()
    } else {
        builder.http1_only()
    };
    let serving = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut serving = pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = stopped(stopping) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
