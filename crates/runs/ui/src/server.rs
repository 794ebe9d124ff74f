//! The server.

use std::{
    convert::Infallible, io, net::Ipv4Addr, net::SocketAddr, sync::Arc, time::Duration,
    time::Instant,
};

use futures::future::BoxFuture;
use http::Request;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use longshore_client::Cluster;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::interval,
};

use crate::{Options, RemoveRuns, app::App, handlers, live};

/// The maximum number of connections at a time.
const CONNECTIONS: usize = 256;
/// The maximum time that a connection may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum size of the head of a request.
const HEAD_SIZE: usize = 32 << 10;
/// The interval of the checks for logs that no tab shows.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// The pause after a failed attempt to accept a connection, such as without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An error of serving the page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The port cannot be opened.
    #[error(
        "cannot listen on 127.0.0.1:{port}: {source}; choose another port, or 0 for any free port"
    )]
    Listen {
        /// The port.
        port: u16,
        /// The cause.
        source: io::Error,
    },
}

/// A page that can be served.
pub struct Server {
    listener: TcpListener,
    app: Arc<App>,
    watching: BoxFuture<'static, ()>,
}

/// Creates links to a page.
#[derive(Clone)]
pub struct Links(Arc<App>);

impl Links {
    /// A link with a token, which is valid once, for five minutes. It must be kept secret.
    #[must_use]
    pub fn create(&self) -> String {
        let token = self.0.sessions().new_link(Instant::now());
        format!("http://{}/open?token={token}", self.0.address)
    }
}

impl Server {
    /// Opens the port. Only this machine can connect to it.
    ///
    /// # Errors
    /// [`Error::Listen`].
    pub async fn bind(
        cluster: Cluster,
        options: Options,
        removal: Arc<dyn RemoveRuns>,
    ) -> Result<Self, Error> {
        let port = options.port;
        let failed = |source| Error::Listen { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let listener = listener.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (feed, watching) = live::start(cluster.clone(), options.namespace.clone());
        Ok(Self {
            listener,
            app: Arc::new(App::new(cluster, options, removal, address, feed)),
            watching: Box::pin(watching),
        })
    }

    /// The address of the page.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.app.address
    }

    /// Creates links to the page.
    #[must_use]
    pub fn links(&self) -> Links {
        Links(Arc::clone(&self.app))
    }

    /// Answers requests until the returned future is dropped.
    pub fn serve(self) -> BoxFuture<'static, ()> {
        // Boxed, so that this crate compiles the future, not each crate that awaits it.
        Box::pin(serve(self))
    }
}

async fn serve(server: Server) {
    let Server {
        listener,
        app,
        watching,
    } = server;
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    // Dropping the set ends all connections.
    let mut tasks = JoinSet::new();
    tasks.spawn(watching);
    let mut sweeps = interval(SWEEP_INTERVAL);
    loop {
        tokio::select! {
            accepted = accept(&listener, &free) => {
                let Some((stream, permit)) = accepted else {
                    continue;
                };
                let app = Arc::clone(&app);
                tasks.spawn(async move {
                    connection(stream, app).await;
                    drop(permit);
                });
            }
            _ = sweeps.tick() => {
                app.logs.sweep(Instant::now());
                while tasks.try_join_next().is_some() {}
            }
        }
    }
}

/// The next connection, once there is capacity for it.
async fn accept(
    listener: &TcpListener,
    free: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(free).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) if peer.ip().is_loopback() => Some((stream, permit)),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(%error, "a connection was not accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

async fn connection(stream: TcpStream, app: Arc<App>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let app = Arc::clone(&app);
        async move { Ok::<_, Infallible>(handlers::respond(&app, &request).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_SIZE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended with an error");
    }
}
