//! Requests as plain values: method, path, query, body.

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request,
    header::{ACCEPT, CONTENT_TYPE},
};
use kube_client::client::Body;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::error::{Error, Result};

/// What stands for itself in a path segment or a query value.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Escapes a text for a path segment or a query.
pub(crate) fn escape(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// A request as a plain value.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Absolute, escaped.
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) content_type: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) body: Bytes,
    /// Whether a refusal of a busy server is final.
    pub(crate) once: bool,
}

pub(crate) const JSON: &str = "application/json";

impl Call {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            content_type: JSON,
            accept: JSON,
            body: Bytes::new(),
            once: false,
        }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.query.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn queries(mut self, query: impl IntoIterator<Item = (String, String)>) -> Self {
        self.query.extend(query);
        self
    }

    pub(crate) fn json(mut self, data: &impl Serialize) -> Result<Self> {
        let text = serde_json::to_vec(data).map_err(|error| {
            Error::Invalid(format!("the data cannot be written as JSON: {error}"))
        })?;
        self.body = text.into();
        Ok(self)
    }

    /// How errors name the request: without the query, which may be long.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// How errors name the answer to the request.
    pub(crate) fn answer(&self) -> String {
        format!("the answer to {}", self.name())
    }

    fn target(&self) -> String {
        let mut target = self.path.clone();
        for (i, (name, value)) in self.query.iter().enumerate() {
            target.push(if i == 0 && !self.path.contains('?') {
                '?'
            } else {
                '&'
            });
            target.push_str(&escape(name));
            target.push('=');
            target.push_str(&escape(value));
        }
        target
    }

    pub(super) fn uri(&self) -> Result<http::Uri> {
        self.target().parse().map_err(|error| {
            Error::Invalid(format!("{} is no valid request path: {error}", self.path))
        })
    }

    pub(super) fn request(&self) -> Result<Request<Body>> {
        let mut request = Request::new(Body::from(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri()?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(self.accept));
        if !self.body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_escaped() {
        let call = Call::get("/api/v1/pods")
            .with("labelSelector", "a in (b,c)")
            .with("x", "1&2");
        assert_eq!(
            call.target(),
            "/api/v1/pods?labelSelector=a%20in%20%28b%2Cc%29&x=1%262"
        );
    }
}
