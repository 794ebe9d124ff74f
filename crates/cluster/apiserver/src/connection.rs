//! Connections: accepted up to a limit and served until the client closes them or the server stops.
//! An idle connection takes little memory, and a slow client does not delay others.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use http::{Request, Version};
use hyper::{
    body::Incoming,
    server::conn::{http1::UpgradeableConnection, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustix::process::{Resource, getrlimit};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Notify, OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::{
    auth::Caller,
    body::Body,
    certificate, input, limits,
    respond::{ConnectionDropped, Responder},
    stopping::stopped,
    tls::ServerTls,
    unauthenticated::{Entry, Unauthenticated},
    unread_body,
    user::ANONYMOUS,
};

/// HTTP/1.1 buffer of a connection in bytes. It starts with one read and grows
/// up to the largest request head.
const HTTP1_BUFFER: usize = limits::REQUEST_HEAD;
/// Flow-control window of one HTTP/2 stream in bytes.
const STREAM_WINDOW: u32 = 256 << 10;
/// Flow-control window of an HTTP/2 connection in bytes.
const CONNECTION_WINDOW: u32 = 4 << 20;
/// Buffered response bytes per HTTP/2 stream for a slow client.
const SEND_BUFFER: usize = 64 << 10;

/// All connections of a listener.
pub(crate) struct Connections {
    acceptor: TlsAcceptor,
    responder: Responder,
    tasks: JoinSet<()>,
    room: Arc<Semaphore>,
    unauthenticated: Arc<Unauthenticated>,
}

impl Connections {
    pub(crate) fn new(tls: ServerTls, responder: Responder) -> Self {
        let files = getrlimit(Resource::Nofile).current;
        let (all, unauthenticated) = limits::connections(files);
        Self {
            acceptor: TlsAcceptor::from(tls.0),
            responder,
            tasks: JoinSet::new(),
            room: Arc::new(Semaphore::new(all)),
            unauthenticated: Unauthenticated::new(unauthenticated, limits::UNAUTHENTICATED_TIME),
        }
    }

    /// Accepts connections; never returns.
    pub(crate) async fn accept(&mut self, listener: &TcpListener) {
        loop {
            let room = self.room.clone().acquire_owned();
            let accepted = async {
                let permit = room.await;
                (permit, listener.accept().await)
            };
            tokio::select! {
                Some(_) = self.tasks.join_next(), if !self.tasks.is_empty() => {}
                (permit, accepted) = accepted => match (permit, accepted) {
                    (Ok(permit), Ok((stream, remote))) => {
                        let entry = Arc::new(self.unauthenticated.enter());
                        let acceptor = self.acceptor.clone();
                        let responder = Responder {
                            remote: Some(remote.ip()),
                            ..self.responder.clone()
                        };
                        let serving = connection(stream, acceptor, responder, (permit, entry));
                        self.tasks.spawn(serving);
                    }
                    (_, Err(error)) => {
                        // Probably out of file descriptors, which is temporary.
                        tracing::warn!(%error, "cannot accept a connection");
                        self.unauthenticated.make_room();
                        sleep(Duration::from_millis(100)).await;
                    }
                    // The semaphore is never closed.
                    (Err(_), _) => return,
                },
            }
        }
    }

    /// Lets requests in progress finish within `shutdown_timeout`, then ends all
    /// connections.
    pub(crate) async fn end(mut self, shutdown_timeout: Duration) {
        let drained = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(shutdown_timeout, drained).await.is_err() {
            self.tasks.shutdown().await;
        }
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    responder: Responder,
    (_room, entry): (OwnedSemaphorePermit, Arc<Entry>),
) {
    // Events are small and must be sent without delay.
    let _ = stream.set_nodelay(true);
    let stopping = responder.stopping.clone();
    // Boxed so that an idle connection does not keep the state of the
    // handshake.
    let shaken = Box::pin(timeout(limits::HANDSHAKE_TIME, acceptor.accept(stream)));
    let stream = tokio::select! {
        shaken = shaken => match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => return tracing::debug!("TLS handshake took too long"),
        },
        () = entry.closed() => return tracing::debug!("closed before the TLS handshake completed"),
        () = stopped(stopping) => return,
    };
    let certificates = stream.get_ref().1.peer_certificates();
    let certificate = certificates.and_then(|chain| chain.first());
    let user = certificate.and_then(|own| certificate::user(own));
    if user.is_some() {
        entry.authenticated();
    }
    let responder = Responder {
        caller: Caller::Network(user.map(Arc::new)),
        ..responder
    };
    // ALPN selected the protocol, so the server does not have to wait for the HTTP/2 preface.
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        Box::pin(http2(stream, responder, entry)).await;
    } else {
        Box::pin(http1(stream, responder, entry)).await;
    }
}

/// Handles requests for hyper. If the response drops the connection, reports it
/// to the connection's task, because HTTP/2 would reset only the stream.
fn handler(
    responder: Responder,
    entry: Arc<Entry>,
    dropped: Arc<Notify>,
) -> impl hyper::service::Service<
    Request<Incoming>,
    Response = http::Response<Body>,
    Error = ConnectionDropped,
    Future: Send + 'static,
> {
    hyper::service::service_fn(move |request: Request<Incoming>| {
        // HTTP/2 resets single streams.
        let one_by_one = request.version() == Version::HTTP_2;
        if !entry.is_authenticated() {
            let authenticator = &responder.shared.authenticator;
            match authenticator.authenticate(&responder.caller, request.headers(), None) {
                Ok(user) if user.name != ANONYMOUS => entry.authenticated(),
                _ => entry.count(),
            }
        }
        let (head, body) = request.into_parts();
        let (body, unread_body) = unread_body::share(body);
        let request = Request::from_parts(head, input::boxed(body));
        // Boxed so that an idle connection does not keep the state of a
        // request.
        let answering = Box::pin(responder.clone().respond(request));
        let dropped = dropped.clone();
        async move {
            let answer = answering.await;
            match answer {
                Err(_) => dropped.notify_one(),
                Ok(_) if one_by_one => {}
                Ok(_) => unread_body.drain().await,
            }
            answer
        }
    })
}

async fn http1(stream: TlsStream<TcpStream>, responder: Responder, entry: Arc<Entry>) {
    let stopping = responder.stopping.clone();
    let dropped = Arc::new(Notify::new());
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::IDLE_TIME)
        .max_buf_size(HTTP1_BUFFER)
        .serve_connection(
            TokioIo::new(stream),
            handler(responder, entry.clone(), dropped.clone()),
        )
        .with_upgrades();
    let end = |serving: Pin<&mut _>| UpgradeableConnection::graceful_shutdown(serving);
    drive(serving, end, (&entry, &dropped), stopping).await;
}

async fn http2(stream: TlsStream<TcpStream>, responder: Responder, entry: Arc<Entry>) {
    let stopping = responder.stopping.clone();
    let dropped = Arc::new(Notify::new());
    let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(limits::PING)
        .keep_alive_timeout(limits::PING)
        .max_concurrent_streams(limits::STREAMS)
        .max_header_list_size(u32::try_from(limits::REQUEST_HEAD).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .serve_connection(
            TokioIo::new(stream),
            handler(responder, entry.clone(), dropped.clone()),
        );
    let end = |serving: Pin<&mut _>| http2::Connection::graceful_shutdown(serving);
    drive(serving, end, (&entry, &dropped), stopping).await;
}

/// Serves until the client closes the connection, does not authenticate or has to make room for
/// others, an injected fault drops the connection, or the server stops. If the client does not
/// authenticate or the server stops, `end` starts a graceful shutdown, and requests in progress are
/// still answered.
async fn drive<C: Future<Output = hyper::Result<()>>>(
    serving: C,
    end: impl FnOnce(Pin<&mut C>),
    (entry, dropped): (&Entry, &Notify),
    stopping: watch::Receiver<bool>,
) {
    let mut serving = pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = dropped.notified() => return,
        () = entry.closed() => return tracing::debug!("an unauthenticated connection was closed"),
        () = entry.expired() => {
            end(serving.as_mut());
            match timeout(limits::SHUTDOWN_TIMEOUT, serving).await {
                Ok(ended) => ended,
                Err(_) => return tracing::debug!("a client did not authenticate"),
            }
        }
        () = stopped(stopping) => {
            end(serving.as_mut());
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
