//! Forwards a request to the cluster, and records it with its response.

use std::sync::{Arc, atomic::Ordering};

use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::{body::Incoming, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use longshore_client::Cluster;
use longshore_model::hop_by_hop;

use super::{
    Counts,
    sink::Sink,
    tap::{Pending, Tap},
};
use crate::{
    accept,
    content::Content,
    line::{Head, ResponseBody as RecordedBody},
    listen::{ResponseBody, full, read_body, refuse},
    request::{self, parse_query},
};

/// Headers that are not forwarded: credentials, because the requests use the credentials of the
/// recorded kubeconfig; compression, which would hide the content; and headers that the new request
/// sets itself.
const NOT_FORWARDED: [&str; 5] = [
    "accept-encoding",
    "authorization",
    "content-length",
    "cookie",
    "host",
];

/// The proxy.
pub(super) struct Forwarder {
    pub(super) cluster: Cluster,
    pub(super) sink: Arc<Sink>,
    pub(super) counts: Arc<Counts>,
    pub(super) body_limit: usize,
    pub(super) pending: Pending,
}

impl Forwarder {
    /// Forwards a request and returns the response.
    pub(super) async fn forward(
        self: Arc<Self>,
        mut request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        // The numbers show the order of requests and begin with 1.
        let id = self.counts.requests.fetch_add(1, Ordering::Relaxed);
        let id = id.saturating_add(1);
        let protocol = request.headers().get(header::UPGRADE).cloned();
        let upgrade = protocol.as_ref().map(|_| hyper::upgrade::on(&mut request));
        let (head, body) = request.into_parts();
        let body = match read_body(body).await {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        let query = parse_query(head.uri.query().unwrap_or_default());
        let mut recorded = request::Request::new(
            (&head.method, head.uri.path(), &query),
            &head.headers,
            &body,
        );
        if body.len() > self.body_limit {
            recorded.body = Some(Content::too_large(self.body_limit));
        }

        let mut forwarded = Request::new(body);
        *forwarded.method_mut() = head.method;
        *forwarded.uri_mut() = head.uri;
        *forwarded.headers_mut() = forwarded_headers(head.headers);
        if let Some(protocol) = protocol {
            let headers = forwarded.headers_mut();
            headers.insert(header::UPGRADE, protocol);
            let upgrade = http::HeaderValue::from_static("Upgrade");
            headers.insert(header::CONNECTION, upgrade);
        }
        let sent = self.cluster.proxy().forward(forwarded).await;
        let mut response = match sent {
            Ok(response) => response,
            Err(error) => {
                self.counts.failed.fetch_add(1, Ordering::Relaxed);
                let message = error.to_string();
                return refuse(StatusCode::BAD_GATEWAY, "BadGateway", &message);
            }
        };
        let recorded_head = Head {
            status: response.status(),
            headers: response.headers().clone(),
        };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let Some(upgrade) = upgrade else {
                let message = "the cluster has upgraded the connection, which was not requested";
                return refuse(StatusCode::BAD_GATEWAY, "BadGateway", message);
            };
            let reason = "the connection was upgraded, and its streams are not recorded";
            let body = RecordedBody::Whole(Some(Content::Omitted(reason.to_owned())));
            self.sink.exchange(id, &recorded, &recorded_head, body);
            join(upgrade, hyper::upgrade::on(&mut response));
            return response.map(|_| full(""));
        }
        remove_hop_by_hop(response.headers_mut());
        let sink = (self.sink.clone(), self.pending.clone());
        let limit = self.body_limit;
        response.map(|body| {
            let body = body.map_err(Into::into).boxed_unsync();
            Tap::new(body, (id, recorded, recorded_head), sink, limit).boxed_unsync()
        })
    }
}

/// Removes the headers that concern a single connection.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let connection = headers.get_all(header::CONNECTION).iter();
    for name in hop_by_hop::names(connection.filter_map(|value| value.to_str().ok())) {
        headers.remove(name);
    }
}

/// Returns the headers of a client's request that the cluster gets.
fn forwarded_headers(mut headers: HeaderMap) -> HeaderMap {
    remove_hop_by_hop(&mut headers);
    for name in NOT_FORWARDED {
        headers.remove(name);
    }
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    let accept = accept.map(|accept| accept::without_binary(accept).parse());
    if let Some(Ok(accept)) = accept {
        headers.insert(header::ACCEPT, accept);
    }
    headers
}

/// Copies the bytes of two upgraded connections in both directions until they end.
fn join(client: OnUpgrade, cluster: OnUpgrade) {
    tokio::spawn(async move {
        let (client, cluster) = match tokio::try_join!(client, cluster) {
            Ok(upgraded) => upgraded,
            Err(error) => return tracing::debug!(%error, "an upgrade failed"),
        };
        let (mut client, mut cluster) = (TokioIo::new(client), TokioIo::new(cluster));
        let copied = tokio::io::copy_bidirectional(&mut client, &mut cluster).await;
        if let Err(error) = copied {
            tracing::debug!(%error, "an upgraded connection ended early");
        }
    });
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn headers_of_one_connection_and_credentials_are_not_forwarded() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "keep-alive, X-Session"),
            ("connection", "x-other"),
            ("x-session", "1"),
            ("x-other", "2"),
            ("proxy-connection", "keep-alive"),
            ("te", "trailers"),
            ("accept-encoding", "gzip"),
            ("authorization", "Bearer t"),
            ("x-kept", "3"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let mut of_response = headers.clone();
        let kept: Vec<String> = forwarded_headers(headers)
            .keys()
            .map(ToString::to_string)
            .collect();
        assert_eq!(kept, ["x-kept"]);
        remove_hop_by_hop(&mut of_response);
        let mut kept: Vec<&str> = of_response.keys().map(header::HeaderName::as_str).collect();
        kept.sort_unstable();
        assert_eq!(kept, ["accept-encoding", "authorization", "x-kept"]);
    }
}
