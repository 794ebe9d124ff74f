//! A builder for requests: method, path, headers, body.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tokio::time::timeout;

use crate::{RESPONSE_TIMEOUT, Response, Watch, transport::Transport};

/// The patch types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Strategic merge.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl PatchType {
    /// Returns the media type of the patch.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

/// A request builder; see [`ApiTest::request`](crate::ApiTest::request).
pub struct RequestBuilder {
    transport: Transport,
    description: String,
    method: Method,
    uri: String,
    headers: HeaderMap,
    body: Bytes,
}

impl RequestBuilder {
    #[allow(clippy::expect_used, reason = "tests stop here")]
    pub(crate) fn new(
        transport: Transport,
        authority: &str,
        token: &str,
        method: &str,
        path: &str,
    ) -> Self {
        let request = Self {
            transport,
            description: format!("{method} {path}"),
            method: method.parse().expect("a valid method"),
            uri: format!("https://{authority}{path}"),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        };
        request
            .header("user-agent", "test/1.0")
            .header("authorization", &format!("Bearer {token}"))
    }

    /// Sets a header; an empty value removes it.
    ///
    /// # Panics
    /// If name or value are invalid.
    #[must_use]
    #[allow(clippy::expect_used, reason = "tests stop here")]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().expect("a valid header name");
        if value.is_empty() {
            self.headers.remove(name);
        } else {
            let value: HeaderValue = value.parse().expect("a valid header value");
            self.headers.insert(name, value);
        }
        self
    }

    /// Sets the Accept header.
    #[must_use]
    pub fn accept(self, forms: &str) -> Self {
        self.header("accept", forms)
    }

    /// Sets the body and its content type.
    #[must_use]
    pub fn body(self, media_type: &str, body: impl Into<Bytes>) -> Self {
        let mut request = self.header("content-type", media_type);
        request.body = body.into();
        request
    }

    /// Sets a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    /// Sets a patch as the body.
    #[must_use]
    pub fn patch(self, kind: PatchType, patch: &Value) -> Self {
        self.body(kind.media_type(), patch.to_string())
    }

    #[allow(clippy::expect_used, reason = "tests stop here")]
    fn build(&mut self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(std::mem::take(&mut self.body)));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self
            .uri
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", self.uri));
        *request.headers_mut() = std::mem::take(&mut self.headers);
        request
    }

    /// Sends the request and reads the complete response.
    ///
    /// # Panics
    /// If the server does not respond.
    pub async fn send(mut self) -> Response {
        let request = self.build();
        let (head, body) = self.transport.send(request).await.into_parts();
        let body = timeout(RESPONSE_TIMEOUT, body.collect())
            .await
            .unwrap_or_else(|_| panic!("{}: the response does not end", self.description))
            .unwrap_or_else(|error| {
                panic!(
                    "{}: the response was interrupted: {error}",
                    self.description
                )
            });
        Response {
            request: self.description,
            code: head.status.as_u16(),
            headers: head.headers,
            bytes: body.to_bytes(),
        }
    }

    /// Sends the request and returns the stream of watch events.
    ///
    /// # Panics
    /// If the server does not respond, or the status code is not 200.
    pub async fn watch(mut self) -> Watch {
        let request = self.build();
        let (head, body) = self.transport.send(request).await.into_parts();
        if head.status != 200 {
            let body = body.collect().await.map(|body| body.to_bytes());
            panic!("{}: {} {body:?}", self.description, head.status);
        }
        Watch::new(self.description, head.headers, body)
    }
}
