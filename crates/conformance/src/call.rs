//! A request in the making: method, path, headers, body.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tokio::time::timeout;

use crate::{Answer, PATIENCE, Watching, transport::Transport};

/// The kinds of patches.
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
    /// Its content type.
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

/// A request that is being put together; see [`ApiTest::call`](crate::ApiTest::call).
pub struct Call {
    transport: Transport,
    asked: String,
    method: Method,
    uri: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Call {
    #[allow(clippy::expect_used, reason = "tests stop here")]
    pub(crate) fn new(
        transport: Transport,
        authority: &str,
        token: &str,
        method: &str,
        path: &str,
    ) -> Self {
        let call = Self {
            transport,
            asked: format!("{method} {path}"),
            method: method.parse().expect("a method"),
            uri: format!("https://{authority}{path}"),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        };
        call.header("user-agent", "test/1.0")
            .header("authorization", &format!("Bearer {token}"))
    }

    /// Sets a header; an empty value takes it away.
    ///
    /// # Panics
    /// When it is no valid header.
    #[must_use]
    #[allow(clippy::expect_used, reason = "tests stop here")]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().expect("a header's name");
        if value.is_empty() {
            self.headers.remove(name);
        } else {
            let value: HeaderValue = value.parse().expect("a header's value");
            self.headers.insert(name, value);
        }
        self
    }

    /// Asks for a form of the answer.
    #[must_use]
    pub fn accept(self, forms: &str) -> Self {
        self.header("accept", forms)
    }

    /// Sends bytes of a content type.
    #[must_use]
    pub fn body(self, media_type: &str, body: impl Into<Bytes>) -> Self {
        let mut call = self.header("content-type", media_type);
        call.body = body.into();
        call
    }

    /// Sends a JSON document.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    /// Sends a patch.
    #[must_use]
    pub fn patch(self, kind: PatchType, patch: &Value) -> Self {
        self.body(kind.media_type(), patch.to_string())
    }

    #[allow(clippy::expect_used, reason = "tests stop here")]
    fn request(&mut self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(std::mem::take(&mut self.body)));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self
            .uri
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", self.uri));
        *request.headers_mut() = std::mem::take(&mut self.headers);
        request
    }

    /// Sends it and reads the whole answer.
    ///
    /// # Panics
    /// When no answer comes.
    pub async fn send(mut self) -> Answer {
        let request = self.request();
        let (head, body) = self.transport.send(request).await.into_parts();
        let body = timeout(PATIENCE, body.collect())
            .await
            .unwrap_or_else(|_| panic!("{}: the answer does not end", self.asked))
            .unwrap_or_else(|error| panic!("{}: the answer broke off: {error}", self.asked));
        Answer {
            asked: self.asked,
            code: head.status.as_u16(),
            headers: head.headers,
            bytes: body.to_bytes(),
        }
    }

    /// Sends it; gives the events as they come.
    ///
    /// # Panics
    /// When no answer comes, or another than 200.
    pub async fn watch(mut self) -> Watching {
        let request = self.request();
        let (head, body) = self.transport.send(request).await.into_parts();
        if head.status != 200 {
            let body = body.collect().await.map(|body| body.to_bytes());
            panic!("{}: {} {body:?}", self.asked, head.status);
        }
        Watching::new(self.asked, head.headers, body)
    }
}
