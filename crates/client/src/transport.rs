//! Sends requests: the only place that talks to the cluster. Retries as
//! `retry.rs` says, renews credentials once, and turns refusals into errors.

use std::borrow::Cow;

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, LOCATION, USER_AGENT},
};
use kube_client::client::Body;
use longshore_model::{Status, StatusReason};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::{
    answer, body,
    cluster::Cluster,
    config::explain,
    data::page,
    error::{Error, Result},
    measure, retry, versions,
};

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
    /// A busy server is not asked again: its refusal is the answer.
    pub(crate) once: bool,
    /// No other version of the kind will do.
    pub(crate) exact: bool,
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
            exact: false,
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

    pub(crate) fn uri(&self) -> Result<http::Uri> {
        self.target().parse().map_err(|error| {
            Error::Invalid(format!("{} is no valid request path: {error}", self.path))
        })
    }

    fn request(&self) -> Result<Request<Body>> {
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

impl Cluster {
    /// Sends a request; an answer other than 2xx is an error. A kind that the
    /// server has in another version is asked for in that.
    pub(crate) async fn send(&self, call: &Call) -> Result<Response<Body>> {
        let adapted = self.shared.versions.adapt(call).filter(|_| !call.exact);
        let call = adapted.as_ref().unwrap_or(call);
        match self.send_as_is(call).await {
            Err(error) if error.is_not_found() => {
                // Discovery sends requests of its own, of exact paths.
                match Box::pin(versions::instead(self, call, &error)).await? {
                    Some(call) => self.send_as_is(&call).await,
                    None => Err(error),
                }
            }
            outcome => outcome,
        }
    }

    async fn send_as_is(&self, call: &Call) -> Result<Response<Body>> {
        // Boxed: the futures that hold this one, up to the callers', are
        // smaller and less deep, which compilers limit.
        let sending = Box::pin(self.send_open(call));
        tokio::select! {
            biased;
            () = self.shared.closed.cancelled() => Err(Error::Closed),
            response = measure::request(call, sending) => response,
        }
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn bytes(&self, call: &Call) -> Result<Bytes> {
        self.bytes_with(call, 0, |_| false).await
    }

    /// As [`Cluster::bytes`], with about so many bytes as are `expected`; `look`
    /// sees what of the answer has come so far, as long as it wants to.
    pub(crate) async fn bytes_with(
        &self,
        call: &Call,
        expected: usize,
        look: impl FnMut(&[u8]) -> bool,
    ) -> Result<Bytes> {
        let response = self.send(call).await?;
        tokio::select! {
            biased;
            () = self.shared.closed.cancelled() => Err(Error::Closed),
            bytes = body::read_with(response, expected, look) => bytes.map_err(|error| self.unreachable(&error)),
        }
    }

    async fn send_open(&self, call: &Call) -> Result<Response<Body>> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(Error::Config(
                "requests need a tokio runtime: run inside one".to_owned(),
            ));
        }
        let (mut attempt, mut renewed) = (0, false);
        loop {
            let (client, generation) = self.fresh().await;
            let mut request = call.request()?;
            request.headers_mut().insert(USER_AGENT, self.agent.clone());
            let outcome = client.send(request).await;
            let response = outcome.map_err(|error| self.unreachable(&error))?;
            self.warnings.report(response.headers());
            let code = response.status();
            if code.is_success() {
                return Ok(response);
            }
            if code == StatusCode::UNAUTHORIZED && !renewed && self.renew(generation).await {
                renewed = true;
                continue;
            }
            let wait = retry::after(
                &call.method,
                code,
                response.headers(),
                attempt,
                self.timing.backoff(),
            );
            match wait {
                Some(wait) if attempt < self.timing.retries && !call.once => {
                    measure::retry(call, code, wait);
                    attempt += 1;
                    tokio::time::sleep(wait).await;
                }
                _ => return Err(refusal(call, response).await),
            }
        }
    }

    pub(crate) fn unreachable(&self, error: &kube_client::Error) -> Error {
        if let kube_client::Error::Auth(_) = error {
            return Error::Config(format!(
                "no credentials for {}: {}",
                self.url(),
                explain(error)
            ));
        }
        Error::Unreachable {
            url: self.url(),
            problem: explain(error),
        }
    }
}

/// The error that a refusing answer stands for.
async fn refusal(call: &Call, response: Response<Body>) -> Error {
    let code = response.status();
    let headers = response.headers().clone();
    let seconds = retry::retry_after(&headers).map_or(0, |wait| wait.as_secs());
    let body = body::read(response).await.unwrap_or_default();
    let mut status = status(code, &body);
    if let Some(to) = headers.get(LOCATION).filter(|_| code.is_redirection()) {
        // A query may hold what is secret.
        let to = String::from_utf8_lossy(to.as_bytes());
        let to = to.split(['?', '#']).next().unwrap_or_default();
        status.message = format!(
            "it redirects to {to}, which is not followed: {}",
            answer::ASK
        );
    }
    if seconds > 0 {
        let details = status.details.get_or_insert_default();
        if details.retry_after_seconds == 0 {
            details.retry_after_seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        }
    }
    Error::from_status(call.name(), status)
}

/// A `Status` from a body that should be one, or else made of its text.
pub(crate) fn status(code: StatusCode, body: &[u8]) -> Status {
    let mut status = serde_json::from_slice::<Status>(body)
        .ok()
        .filter(|status| status.kind == "Status" && status.status != "Success")
        .unwrap_or_else(|| {
            let start = |text: Cow<'_, str>| text.trim().chars().take(300).collect();
            let text: String = page(body).unwrap_or_else(|| start(String::from_utf8_lossy(body)));
            let usual = code.canonical_reason().unwrap_or("no message").to_owned();
            let reason = match code.as_u16() {
                400 => StatusReason::BadRequest,
                401 => StatusReason::Unauthorized,
                403 => StatusReason::Forbidden,
                404 => StatusReason::NotFound,
                410 => StatusReason::Gone,
                429 => StatusReason::TooManyRequests,
                503 => StatusReason::ServiceUnavailable,
                _ => StatusReason::Unknown,
            };
            Status::failure(reason, if text.is_empty() { usual } else { text })
        });
    status.code = code.as_u16();
    status
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

    #[test]
    fn refusals_without_a_status_are_told_by_their_text() {
        let made = status(StatusCode::BAD_GATEWAY, b"<html>proxy says no</html>");
        assert_eq!(
            (made.code, made.message.as_str()),
            (
                502,
                "a web page answered, not Kubernetes: is a proxy or a login page on the way? It says: proxy says no"
            )
        );
        let empty = status(StatusCode::NOT_FOUND, b"");
        assert_eq!(
            (empty.message.as_str(), empty.reason),
            ("Not Found", StatusReason::NotFound)
        );
    }
}
