//! Connections: accepted up to a limit, shaken hands with, served until the
//! client leaves or the server stops. An idle one costs little memory, and
//! a slow one costs the others nothing.

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
    certificate, input, leftover, limits,
    respond::{ConnectionDropped, Responder},
    stopping::stopped,
    tls::ServerTls,
    unauthenticated::{Entry, Unauthenticated},
};

/// What HTTP/1.1 buffers of a connection, in bytes: one read's worth at
/// first, the largest head at most.
const HTTP1_BUFFER: usize = limits::REQUEST_HEAD;
/// How much of a body a client may send ahead on one HTTP/2 stream, in bytes.
const STREAM_WINDOW: u32 = 256 << 10;
/// And on all streams of a connection together.
const CONNECTION_WINDOW: u32 = 4 << 20;
/// How much of a response waits for a slow reader, in bytes a stream.
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

    /// Accepts connections; does not end by itself.
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
                    (Ok(permit), Ok((stream, _))) => {
                        let entry = Arc::new(self.unauthenticated.enter());
                        let (acceptor, responder) = (self.acceptor.clone(), self.responder.clone());
                        let serving = connection(stream, acceptor, responder, (permit, entry));
                        self.tasks.spawn(serving);
                    }
                    (_, Err(error)) => {
                        // Out of descriptors, most likely: it passes.
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

    /// Gives requests under way some time, then ends all connections.
    pub(crate) async fn end(mut self, farewell: Duration) {
        let drained = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(farewell, drained).await.is_err() {
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
    // Events are small and must not wait for more.
    let _ = stream.set_nodelay(true);
    let stopping = responder.stopping.clone();
    // Boxed: the handshake's state is gone when the connection lies idle.
    let shaken = Box::pin(timeout(limits::HANDSHAKE_TIME, acceptor.accept(stream)));
    let stream = tokio::select! {
        shaken = shaken => match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => return tracing::debug!("TLS handshake took too long"),
        },
        () = entry.closed() => return tracing::debug!("closed before the TLS handshake was over"),
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
    // The protocol is settled by TLS, so no preface is awaited.
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        Box::pin(http2(stream, responder, entry)).await;
    } else {
        Box::pin(http1(stream, responder, entry)).await;
    }
}

/// Answers requests for hyper; a dropped connection is reported to its task, as
/// HTTP/2 would end the one stream only.
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
        // Streams of HTTP/2 end one by one.
        let one_by_one = request.version() == Version::HTTP_2;
        if !entry.is_authenticated() {
            let authenticator = &responder.shared.authenticator;
            match authenticator.authenticate(&responder.caller, request.headers(), None) {
                Ok(_) => entry.authenticated(),
                Err(_) => entry.count(),
            }
        }
        let (head, body) = request.into_parts();
        let (body, leftover) = leftover::lend(body);
        let request = Request::from_parts(head, input::boxed(body));
        // Boxed: a request's state is gone when the connection lies idle.
        let answering = Box::pin(responder.clone().respond(request));
        let dropped = dropped.clone();
        async move {
            let answer = answering.await;
            match answer {
                Err(_) => dropped.notify_one(),
                Ok(_) if one_by_one => {}
                Ok(_) => leftover.drain().await,
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

/// Serves until the client leaves, does not authenticate in time or has to make
/// room for others, a fault drops the connection, or the server stops: then `end`
/// starts a graceful shutdown, and what has begun is still answered.
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
            match timeout(limits::FAREWELL, serving).await {
                Ok(ended) => ended,
                Err(_) => return tracing::debug!("a client did not authenticate in time"),
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
