//! The node agent as the kubelet of a real server: it runs the pods bound to its node,
//! and serves container logs to the server.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::TcpListener,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{body::Frame, service::service_fn};
use hyper_util::rt::TokioIo;
use longshore::{Cluster, client::Patch};
use longshore_model::network::NODE_ADDRESS;
use longshore_node::{LogLimits, LogReader, NodeAgent, Options};
use longshore_node_api::{LogRequest, NodeLogs as _};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, pki_types::PrivatePkcs8KeyDer},
};

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// A node of a cluster. Dropping it kills the node and its pods.
pub(crate) struct Kubelet {
    _agent: NodeAgent,
    server: JoinHandle<()>,
}

/// The UIDs of pods by name: the server requests logs by name.
pub(crate) type Uids = Arc<Mutex<HashMap<String, String>>>;

impl Kubelet {
    /// Starts the node with a data folder, which an earlier one may have used.
    pub(crate) async fn start(cluster: &Cluster, name: &str, folder: PathBuf, uids: &Uids) -> Self {
        let agent = NodeAgent::start(Options {
            cluster: cluster.clone(),
            nodes: vec![name.to_owned()],
            data_dir: folder,
            path_prepend: None,
            access: None,
            // Small, so that the log is rotated while the test follows it.
            keep_logs: false,
            kept_logs_limit: None,
            log_limits: LogLimits {
                max_size: 2000,
                max_files: 1000,
            },
            image_entrypoints: Vec::new(),
            image_users: Vec::new(),
            device_root: "/".into(),
            fill_volumes: None,
            collect_files: None,
            last_end: None,
            clock: Default::default(),
        });
        let agent = agent.await.unwrap();
        agent.run_pods().await;
        // The server connects to the address of the node.
        let listener = TcpListener::bind((NODE_ADDRESS, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let (reader, uids) = (agent.logs(), uids.clone());
        let server = tokio::spawn(serve(listener, acceptor(), reader, uids));
        let endpoints = json!({"daemonEndpoints": {"kubeletEndpoint": {"Port": port}}});
        let patch = Patch::strategic(json!({"status": endpoints}));
        cluster.nodes().patch_status(name, &patch).await.unwrap();
        Self {
            _agent: agent,
            server,
        }
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn acceptor() -> TlsAcceptor {
    let made = rcgen::generate_simple_self_signed([NODE_ADDRESS.to_string()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(
    listener: tokio::net::TcpListener,
    acceptor: TlsAcceptor,
    reader: LogReader,
    uids: Uids,
) {
    // Dropping the set closes the connections.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let (acceptor, reader, uids) = (acceptor.clone(), reader.clone(), uids.clone());
        connections.spawn(async move {
            let Ok(stream) = acceptor.accept(socket).await else {
                return;
            };
            let service = service_fn(move |request| {
                let (reader, uids) = (reader.clone(), uids.clone());
                async move { Ok::<_, Infallible>(log(&request, &reader, &uids).await) }
            });
            let http = hyper::server::conn::http1::Builder::new();
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// `/containerLogs/NAMESPACE/POD/CONTAINER?…`
async fn log<B>(request: &Request<B>, reader: &LogReader, uids: &Uids) -> Response<Body> {
    let path: Vec<&str> = request.uri().path().split('/').collect();
    let ["", "containerLogs", namespace, pod, container] = path[..] else {
        return refused(404, "no such path");
    };
    let query = request
        .uri()
        .query()
        .unwrap_or_default()
        .replace("%3A", ":");
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find_map(|(key, value)| (key == name).then(|| value.to_owned()))
    };
    let is_set = |name: &str| value(name).is_some_and(|value| value == "true");
    let query = LogRequest {
        namespace: namespace.to_owned(),
        pod: pod.to_owned(),
        uid: uids.lock().unwrap().get(pod).cloned().unwrap_or_default(),
        container: container.to_owned(),
        follow: is_set("follow"),
        timestamps: is_set("timestamps"),
        tail_lines: value("tailLines").and_then(|lines| lines.parse().ok()),
        since: value("sinceTime").and_then(|time| time.parse().ok()),
        ..LogRequest::default()
    };
    match reader.open(query).await {
        Ok(stream) => {
            let frames = stream.map_ok(Frame::data).boxed();
            Response::new(StreamBody::new(frames).boxed_unsync())
        }
        Err(error) => refused(404, &error.to_string()),
    }
}

fn refused(code: u16, text: &str) -> Response<Body> {
    let body = Full::new(Bytes::from(text.to_owned()));
    let body = body.map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(code).body(body).unwrap()
}
