//! Sends requests. Retries as `retry.rs` says, renews credentials once, and turns
//! refusals into errors.

use bytes::Bytes;
use http::{Response, StatusCode, header::USER_AGENT};
use kube_client::client::Body;
use serde::de::DeserializeOwned;

use super::{
    Transport, answer, body, call::Call, explain::explain, refusal::refusal, request_metrics, retry,
};
use crate::error::{Error, Result};

impl Transport {
    /// Sends a request; an answer other than 2xx is an error.
    pub(crate) async fn send(&self, call: &Call) -> Result<Response<Body>> {
        // Boxed: the futures that hold this one, up to the callers', are
        // smaller and less deep, which compilers limit.
        let sending = Box::pin(self.send_open(call));
        tokio::select! {
            biased;
            () = self.closed().cancelled() => Err(Error::Closed),
            response = request_metrics::request(call, sending) => response,
        }
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn bytes(&self, call: &Call) -> Result<Bytes> {
        let response = self.send(call).await?;
        self.read(response, 0, |_| false).await
    }

    /// Sends a request and reads the JSON of the answer.
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: &Call) -> Result<T> {
        answer::parse(call, &self.bytes(call).await?)
    }

    /// Reads a whole answer, of about so many bytes as are `expected`; `look` sees
    /// what of it has come so far, as long as it wants to.
    pub(crate) async fn read(
        &self,
        response: Response<Body>,
        expected: usize,
        look: impl FnMut(&[u8]) -> bool,
    ) -> Result<Bytes> {
        tokio::select! {
            biased;
            () = self.closed().cancelled() => Err(Error::Closed),
            bytes = body::read_with(response, expected, look) => {
                bytes.map_err(|error| self.unreachable(&error))
            }
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
            request
                .headers_mut()
                .insert(USER_AGENT, self.settings.agent.clone());
            let may_retry = attempt < self.timing().retries && !call.once;
            let response = match client.send(request).await {
                Ok(response) => response,
                Err(error) if may_retry && retry::after_lost_connection(&call.method, &error) => {
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
            let wait = retry::after(
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
                _ => return Err(refusal(call, response).await),
            }
        }
    }

    pub(super) fn unreachable(&self, error: &kube_client::Error) -> Error {
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
