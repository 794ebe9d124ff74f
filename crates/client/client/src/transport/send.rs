//! Sends requests. Retries them by the rules in `retry.rs`, renews rejected credentials
//! once, and converts error responses into errors.

use bytes::Bytes;
use http::{Response, StatusCode, header::USER_AGENT};
use kube_client::client::Body;
use serde::de::DeserializeOwned;

use super::{
    Transport,
    body::{self, MAX_BODY_BYTES, ReadError},
    call::Call,
    error_response::error_response,
    explain::explain,
    request_metrics, response, retry,
};
use crate::error::{Error, Result};

impl Transport {
    /// Sends a request.
    ///
    /// # Errors
    /// [`Error::Api`] or [`Error::NotFound`] for a status code other than 2xx,
    /// [`Error::Unreachable`] without a response, [`Error::Closed`] after a close.
    pub(crate) async fn send(&self, call: &Call) -> Result<Response<Body>> {
        // Boxed to keep the futures of all callers small and their nesting below the
        // compiler's limit.
        let sending = Box::pin(self.send_with_retries(call));
        tokio::select! {
            biased;
            () = self.closed().cancelled() => Err(Error::Closed),
            response = request_metrics::request(call, sending) => response,
        }
    }

    /// Sends a request and reads the whole response.
    pub(crate) async fn bytes(&self, call: &Call) -> Result<Bytes> {
        let response = self.send(call).await?;
        self.read(call, response, 0, |_| false).await
    }

    /// Sends a request and parses the JSON of the response.
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: &Call) -> Result<T> {
        response::parse(call, &self.bytes(call).await?)
    }

    /// Reads the whole body of the response to `call`, of about `expected` bytes. `inspect` is
    /// called with the body read so far, until it returns false.
    ///
    /// # Errors
    /// [`Error::Decode`] if it is larger than [`Call::max_bytes`].
    pub(crate) async fn read(
        &self,
        call: &Call,
        response: Response<Body>,
        expected: usize,
        inspect: impl FnMut(&[u8]) -> bool,
    ) -> Result<Bytes> {
        tokio::select! {
            biased;
            () = self.closed().cancelled() => Err(Error::Closed),
            bytes = body::read(response, call.max_bytes, expected, inspect) => {
                bytes.map_err(|error| match error {
                    ReadError::Connection(error) => self.unreachable(&error),
                    ReadError::TooLarge => too_large(call),
                })
            }
        }
    }

    async fn send_with_retries(&self, call: &Call) -> Result<Response<Body>> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(Error::Config(
                "requests need a tokio runtime: call this function inside one".to_owned(),
            ));
        }
        let (mut attempt, mut renewed) = (0, false);
        loop {
            let (client, generation) = self.unexpired_client().await;
            let mut request = call.request()?;
            request
                .headers_mut()
                .insert(USER_AGENT, self.settings.agent.clone());
            let may_retry = attempt < self.timing().retries && !call.once;
            let response = match client.send(request).await {
                Ok(response) => response,
                Err(error) if may_retry && retry::is_retryable(&call.method, &error) => {
                    let wait = self.timing().backoff().wait(attempt);
                    request_metrics::retry(call, &explain(&error), wait);
                    attempt += 1;
                    tokio::time::sleep(wait).await;
                    continue;
                }
                Err(error) => return Err(self.unreachable(&error)),
            };
            self.settings.warnings.report(response.headers());
            let code = response.status();
            if code.is_success() {
                return Ok(response);
            }
            if code == StatusCode::UNAUTHORIZED && !renewed && self.renew(generation).await {
                renewed = true;
                continue;
            }
            let wait = retry::delay(
                &call.method,
                code,
                response.headers(),
                attempt,
                self.timing().backoff(),
            );
            match wait {
                Some(wait) if may_retry => {
                    request_metrics::retry(call, code.as_str(), wait);
                    attempt += 1;
                    tokio::time::sleep(wait).await;
                }
                _ => return Err(error_response(self.url(), call, response).await),
            }
        }
    }

    /// Returns the error for a request without a response.
    pub(crate) fn unreachable(&self, error: &kube_client::Error) -> Error {
        if let kube_client::Error::Auth(_) = error {
            return Error::Config(format!(
                "no credentials for {}: {}",
                self.url(),
                explain(error)
            ));
        }
        Error::Unreachable {
            url: self.url().to_owned(),
            problem: explain(error),
        }
    }
}

fn too_large(call: &Call) -> Error {
    let mut problem = format!("it is larger than {} MiB", call.max_bytes >> 20);
    if call.max_bytes == MAX_BODY_BYTES {
        problem
            .push_str(": select fewer objects, by namespace or labels, or read them page by page");
    }
    Error::decode(call.response_name(), problem)
}
