//! A minimal client: connections that send prepared requests and discard the responses.
//! The client runs on the same machine as the measured server, so its own processor time
//! reduces the figures.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures::future::try_join_all;
use http::{HeaderValue, Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use kube_client::{
    Config,
    client::ConfigExt as _,
    config::{KubeConfigOptions, Kubeconfig},
};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::report::Failure;

/// A request, ready to send.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) media_type: &'static str,
    pub(super) body: Bytes,
}

/// Open connections to one server.
pub(super) struct Wire {
    connections: Vec<SendRequest<Full<Bytes>>>,
    authority: String,
    token: HeaderValue,
}

impl Wire {
    /// Opens `count` connections to the server of a kubeconfig, with its user's token.
    pub(super) async fn open(kubeconfig: &Path, count: usize) -> Result<Self, Failure> {
        let file = Kubeconfig::read_from(kubeconfig)?;
        let users = serde_json::to_value(&file.auth_infos)?;
        let token = users[0]["user"]["token"].as_str();
        let token = token.ok_or("the kubeconfig's user has no token")?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        let tls = TlsConnector::from(Arc::new(config.rustls_client_config()?));
        let url = &config.cluster_url;
        let authority = url.authority().ok_or("the server's URL has no host")?;
        let open = || async {
            let stream = TcpStream::connect(authority.as_str()).await?;
            stream.set_nodelay(true)?;
            let name = ServerName::try_from(authority.host().to_owned())?;
            let stream = tls.connect(name, stream).await?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            Ok::<_, Failure>(sender)
        };
        Ok(Self {
            connections: try_join_all((0..count).map(|_| open())).await?,
            authority: authority.to_string(),
            token: HeaderValue::from_str(&format!("Bearer {token}"))?,
        })
    }

    /// The same connections, with the token of another user.
    pub(super) fn set_token(&mut self, token: &str) -> Result<(), Failure> {
        self.token = HeaderValue::from_str(&format!("Bearer {token}"))?;
        Ok(())
    }

    /// Sends all requests. Each connection sends the next request after a response.
    pub(super) async fn send(&mut self, requests: &[Prepared]) -> Result<(), Failure> {
        let next = AtomicUsize::new(0);
        let (next, authority, token) = (&next, &self.authority, &self.token);
        let work = self.connections.iter_mut().map(|connection| async move {
            while let Some(prepared) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                let request = Request::builder()
                    .method(&prepared.method)
                    .uri(&prepared.path)
                    .header(header::HOST, authority)
                    .header(header::AUTHORIZATION, token)
                    .header(header::CONTENT_TYPE, prepared.media_type)
                    .body(Full::new(prepared.body.clone()))?;
                connection.ready().await?;
                let response = connection.send_request(request).await?;
                let status = response.status();
                let mut body = response.into_body();
                let mut start = Vec::new();
                while let Some(frame) = body.frame().await {
                    if let (false, Ok(data)) = (status.is_success(), frame?.into_data()) {
                        start.extend_from_slice(&data);
                    }
                }
                if !status.is_success() {
                    start.truncate(300);
                    let why = String::from_utf8_lossy(&start);
                    return Err(format!("{}: {status}: {why}", prepared.path).into());
                }
            }
            Ok::<(), Failure>(())
        });
        try_join_all(work).await.map(drop)
    }
}
