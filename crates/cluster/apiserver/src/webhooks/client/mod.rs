//! Calls a webhook over HTTPS.

mod address;
mod connection;
mod room;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use longshore_engine::Engine;
use rustls::ClientConfig;
use serde_json::Value;
use tokio::sync::Semaphore;

use self::connection::Pool;
pub(super) use self::{
    address::Address,
    room::{Room, size},
};
use crate::{
    limits,
    remote::{connect, trust},
};

/// The client of a webhook. Keeps connections for later calls.
#[derive(Debug)]
pub(crate) struct Client {
    address: Address,
    /// Created at the first call.
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
    pool: Pool,
    /// Limits the number of concurrent calls. Otherwise, a webhook whose calls cause further calls
    /// of itself would take all descriptors and memory.
    calls: Semaphore,
}

impl Client {
    pub(super) fn new(address: Address) -> Self {
        Self {
            address,
            tls: OnceLock::new(),
            pool: Pool::default(),
            calls: Semaphore::new(limits::WEBHOOK_CALLS),
        }
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Posts a JSON document and returns the body of the response.
    ///
    /// # Errors
    /// The problem, in the words of Kubernetes.
    pub(super) async fn post(
        &self,
        engine: &Engine,
        (body, room): (Bytes, Room),
        timeout: Duration,
    ) -> Result<Bytes, String> {
        let uri = self.address.uri(timeout);
        let posted = async {
            // The semaphore is never closed.
            let _call = self.calls.acquire().await;
            self.try_post(engine, &uri, body).await
        };
        let posted = tokio::time::timeout(room.rest(timeout), posted);
        let failed = |problem: &str| format!("Post {:?}: {problem}", uri);
        match posted.await {
            Ok(Ok((code, body))) if code.is_success() => Ok(body),
            Ok(Ok((code, body))) => Err(http_problem(code, &body)),
            Ok(Err(problem)) => Err(failed(&problem)),
            Err(_) => Err(failed("context deadline exceeded")),
        }
    }

    /// Waits for memory for a request of a size. Call this before the request is created.
    ///
    /// # Errors
    /// The problem, in the words of Kubernetes.
    pub(super) async fn room(&self, bytes: usize, timeout: Duration) -> Result<Room, String> {
        let late = || {
            let uri = self.address.uri(timeout);
            format!("Post {uri:?}: context deadline exceeded")
        };
        Room::take(bytes, timeout).await.ok_or_else(late)
    }

    async fn try_post(
        &self,
        engine: &Engine,
        uri: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), String> {
        let tls = self
            .tls
            .get_or_init(|| trust::config(&self.address.bundle, None));
        let tls = tls.as_ref().map_err(Clone::clone)?;
        let (host, path) = self.address.split(uri);
        let request = || {
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = http::Method::POST;
            *request.uri_mut() = path.parse().map_err(|error| format!("{error}"))?;
            let headers = request.headers_mut();
            let host = HeaderValue::from_str(host).map_err(|error| error.to_string())?;
            headers.insert(header::HOST, host);
            for (name, value) in [
                (header::CONTENT_TYPE, "application/json"),
                (header::ACCEPT, "application/json"),
                (header::USER_AGENT, "kube-apiserver-admission"),
            ] {
                headers.insert(name, HeaderValue::from_static(value));
            }
            Ok::<_, String>(request)
        };
        let sockets = self.address.resolve(engine).await?;
        let name = self.address.server_name()?;
        // A connection that was idle may just have been closed.
        while let Some(mut connection) = self.pool.take(&sockets) {
            if let Ok(response) = connection.sender.send_request(request()?).await {
                return self.finish(connection, response).await;
            }
        }
        let mut connection = connection::open(&sockets, name, tls.clone()).await?;
        let response = connection.sender.send_request(request()?).await;
        let response = response.map_err(|error| connect::problem(&error))?;
        self.finish(connection, response).await
    }

    /// Reads the body of a response and keeps the connection.
    async fn finish(
        &self,
        connection: connection::Connection,
        response: http::Response<Incoming>,
    ) -> Result<(StatusCode, Bytes), String> {
        let (parts, body) = response.into_parts();
        let body = room::read(body).await?;
        self.pool.put(connection);
        Ok((parts.status, body))
    }
}

/// Returns the problem that a response with an error code reports: the message of its `Status`, or
/// the code in the words of client-go. Redirects are not followed.
fn http_problem(code: StatusCode, body: &[u8]) -> String {
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    if let ("Status", Some(message)) = (
        status["kind"].as_str().unwrap_or_default(),
        status["message"].as_str(),
    ) {
        return message.to_owned();
    }
    let text = String::from_utf8_lossy(body);
    let text: String = text.trim().chars().take(2048).collect();
    let text = if text.is_empty() { "unknown" } else { &text };
    match code.as_u16() {
        400 => "the server rejected our request for an unknown reason".into(),
        401 => "the server has asked for the client to provide credentials".into(),
        403 | 406 | 415 => text.to_owned(),
        404 => "the server could not find the requested resource".into(),
        405 => "the server does not allow this method on the requested resource".into(),
        409 => "the server reported a conflict".into(),
        422 => "the server rejected our request due to an error in our request".into(),
        429 => {
            "the server has received too many requests and has asked us to try again later".into()
        }
        503 => "the server is currently unable to handle the request".into(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request".into(),
        500.. => format!("an error on the server ({text:?}) has prevented the request from succeeding"),
        code => format!(
            "the server responded with the status code {code} but did not return more information"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_error_codes() {
        for (code, body, expected) in [
            (
                StatusCode::NOT_FOUND,
                "x",
                "the server could not find the requested resource",
            ),
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                "boom\n",
                "an error on the server (\"boom\") has prevented the request from succeeding",
            ),
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                r#"{"kind":"Status","message":"no"}"#,
                "no",
            ),
            (
                StatusCode::FOUND,
                "",
                "the server responded with the status code 302 but did not return more information",
            ),
        ] {
            assert_eq!(http_problem(code, body.as_bytes()), expected);
        }
    }
}
