//! Forwards a request to an aggregated API server.

use std::{net::IpAddr, sync::Arc};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper::{body::Incoming, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use longshore_engine::Engine;
use tokio::sync::watch;

use super::{Aggregation, headers, index::Remote};
use crate::{
    audit::Record,
    body::Body,
    input::RequestBody,
    passed_on::Pass,
    proxied,
    remote::service,
    reply::{self, Reply},
    status_error::StatusError,
    stopping::stopped,
    user::User,
};

const REDIRECTED: &str = "the backend attempted to redirect this request, which is not permitted";

/// A request for a version of an aggregated API server.
pub(crate) struct Forwarding {
    remote: Arc<Remote>,
    /// The path with the query, as it was sent.
    target: String,
    /// The client's address.
    client: Option<IpAddr>,
}

/// The client's part of a forwarded request.
pub(crate) struct Client {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) user: Arc<User>,
    /// Takes over the connection if the client requests an upgrade.
    pub(crate) upgrade: Option<OnUpgrade>,
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) audit: Option<Arc<Record>>,
    /// The request in progress.
    pub(crate) pass: Pass,
}

impl Aggregation {
    /// Returns the forwarding if an aggregated API server serves a path: a path below a version, or
    /// the OpenAPI document of a version.
    pub(crate) fn serves(
        &self,
        engine: &Engine,
        uri: &Uri,
        client: Option<IpAddr>,
    ) -> Option<Forwarding> {
        let path = uri.path();
        let (below, is_document) = match path.strip_prefix("/apis/") {
            Some(below) => (below, false),
            None => (path.strip_prefix("/openapi/v3/apis/")?, true),
        };
        let mut parts = below.splitn(3, '/');
        let (group, version) = (parts.next()?, parts.next()?);
        if is_document && parts.next().is_some() {
            return None;
        }
        let remote = self.index(engine).find(group, version)?;
        let target = uri.path_and_query().map_or(path, |target| target.as_str());
        Some(Forwarding {
            remote,
            target: target.to_owned(),
            client,
        })
    }
}

/// A response in plain text, in the form of Kubernetes' aggregation layer.
fn plain(code: StatusCode, text: &str) -> Response<Body> {
    let media_type = "text/plain; charset=utf-8";
    let mut response = reply::with_type(code, media_type, Body::full(format!("{text}\n")));
    let options = HeaderValue::from_static("nosniff");
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, options);
    response
}

impl Forwarding {
    /// The server, for limits and messages.
    pub(crate) fn destination(&self) -> String {
        format!("the APIService {}", self.remote.service.name)
    }

    /// Sends the request, and returns the response.
    pub(crate) async fn forward(
        self,
        (aggregation, engine): (&Aggregation, &Engine),
        mut client: Client,
        body: RequestBody,
    ) -> Reply {
        let unavailable = || plain(StatusCode::SERVICE_UNAVAILABLE, "service unavailable");
        if !self.remote.service.is_available {
            return Ok(unavailable());
        }
        let backend = &self.remote.backend;
        let resolved = service::resolve(engine, &backend.namespace, &backend.name, backend.port);
        if resolved.is_err() {
            return Ok(unavailable());
        }
        let upgrade = client.upgrade.take();
        let request = self.request(&client, upgrade.is_some(), body)?;
        let sent = aggregation.send(engine, &self.remote, request).await;
        let mut response = match sent {
            Ok(response) => response,
            Err(problem) => return Ok(plain(StatusCode::SERVICE_UNAVAILABLE, &problem)),
        };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return match upgrade {
                Some(upgrade) => Ok(join(client, upgrade, response)),
                None => Ok(plain(StatusCode::BAD_GATEWAY, "unexpected upgrade")),
            };
        }
        let has_location = response.headers().contains_key(header::LOCATION);
        if response.status().is_redirection() && has_location {
            let mut response = plain(StatusCode::BAD_GATEWAY, REDIRECTED);
            *response.body_mut() = Body::full(REDIRECTED);
            return Ok(response);
        }
        proxied::remove_hop_by_hop(response.headers_mut());
        Ok(response.map(|body| Body::passed_on(body, client.pass)))
    }

    fn request(
        &self,
        client: &Client,
        is_upgrade: bool,
        body: RequestBody,
    ) -> Result<Request<RequestBody>, StatusError> {
        let uri: Uri = self.target.parse().map_err(StatusError::internal)?;
        let mut request = Request::new(body);
        *request.method_mut() = client.method.clone();
        *request.uri_mut() = uri;
        let sent = request.headers_mut();
        sent.clone_from(&client.headers);
        let protocol = sent.get(header::UPGRADE).cloned().filter(|_| is_upgrade);
        proxied::remove_hop_by_hop(sent);
        if let Some(protocol) = protocol {
            sent.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
            sent.insert(header::UPGRADE, protocol);
        }
        proxied::remove_credentials(sent);
        headers::set_user(sent, &client.user);
        let host = format!("{}:{}", self.remote.host(), self.remote.backend.port);
        let host = HeaderValue::from_str(&host).map_err(StatusError::internal)?;
        sent.insert(header::HOST, host);
        self.add_client(sent);
        Ok(request)
    }

    /// Appends the client's address to the addresses of the previous proxies.
    fn add_client(&self, headers: &mut HeaderMap) {
        const NAME: &str = "x-forwarded-for";
        let Some(client) = self.client else {
            return;
        };
        let known: Vec<&str> = headers
            .get_all(NAME)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        let client = client.to_string();
        let all = known.into_iter().chain([client.as_str()]);
        let all = all.collect::<Vec<_>>().join(", ");
        if let Ok(value) = HeaderValue::from_str(&all) {
            headers.insert(NAME, value);
        }
    }
}

/// Copies between the connections of the client and the server until one connection ends.
fn join(
    Client {
        stopping,
        audit,
        pass,
        ..
    }: Client,
    client: OnUpgrade,
    mut response: Response<Incoming>,
) -> Response<Body> {
    let server = hyper::upgrade::on(&mut response);
    tokio::spawn(async move {
        // The record completes with the session.
        let _audit = audit;
        let _in_progress = pass;
        let copying = async {
            let (client, server) = tokio::try_join!(client, server)?;
            let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
            let copied = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            if let Err(error) = copied {
                tracing::debug!(%error, "a session with an aggregated API server ended early");
            }
            Ok::<_, hyper::Error>(())
        };
        tokio::select! {
            done = copying => if let Err(error) = done {
                tracing::debug!(%error, "a session with an aggregated API server did not start");
            },
            () = stopped(stopping) => {}
        }
    });
    response.map(|_| Body::empty())
}
