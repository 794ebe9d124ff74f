//! A server that counts its connections and records the paths of requests.

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, task::JoinHandle};

/// A server that answers every request with an empty object. It stops when it is dropped.
pub(super) struct Counting {
    pub(super) address: String,
    /// Connections that were accepted.
    pub(super) accepted: Arc<AtomicUsize>,
    /// Connections that are open.
    pub(super) open: Arc<AtomicUsize>,
    pub(super) paths: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Counting {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (accepted, open) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let paths = Arc::<Mutex<Vec<String>>>::default();
        let task = tokio::spawn({
            let (accepted, open, paths) = (accepted.clone(), open.clone(), paths.clone());
            async move {
                while let Ok((socket, _)) = listener.accept().await {
                    accepted.fetch_add(1, SeqCst);
                    open.fetch_add(1, SeqCst);
                    let (open, paths) = (open.clone(), paths.clone());
                    tokio::spawn(async move {
                        let answer = service_fn(move |request: Request<Incoming>| {
                            let path = request.uri().to_string();
                            paths.lock().unwrap().push(path);
                            async {
                                // Requests that are sent together overlap.
                                tokio::time::sleep(Duration::from_millis(20)).await;
                                let body = Full::new(Bytes::from_static(b"{}"));
                                Ok::<_, Infallible>(Response::new(body))
                            }
                        });
                        let http = hyper::server::conn::http1::Builder::new();
                        let _ = http.serve_connection(TokioIo::new(socket), answer).await;
                        open.fetch_sub(1, SeqCst);
                    });
                }
            }
        });
        Self {
            address,
            accepted,
            open,
            paths,
            task,
        }
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.task.abort();
    }
}
