//! Tracing spans of requests, and metrics with the feature `metrics`. They contain only
//! methods, paths and status codes, because a query or a body may be confidential.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use http::Response;
use tracing::{Instrument, field::Empty};

use super::call::Call;
use crate::error::Error;

/// Runs `sending` in a span and records its outcome. The code is 0 without a response.
pub(super) async fn request<B>(
    call: &Call,
    sending: impl Future<Output = Result<Response<B>, Error>>,
) -> Result<Response<B>, Error>
where
    B: http_body::Body<Data = Bytes>,
{
    let span =
        tracing::debug_span!("request", method = %call.method, path = call.path, code = Empty);
    #[cfg(feature = "metrics")]
    let start = std::time::Instant::now();
    let outcome = sending.instrument(span.clone()).await;
    let code = match &outcome {
        Ok(response) => response.status().as_u16(),
        Err(error) => error.code().unwrap_or(0),
    };
    span.record("code", code);
    #[cfg(feature = "metrics")]
    {
        let method = call.method.to_string();
        metrics::counter!("longshore_requests", "method" => method.clone(), "code" => code.to_string())
            .increment(1);
        metrics::histogram!("longshore_request_seconds", "method" => method)
            .record(start.elapsed());
    }
    outcome
}

/// Records a retry of a request. The cause is a status code or a connection error.
pub(super) fn retry(call: &Call, cause: &str, wait: Duration) {
    tracing::debug!(request = call.name(), cause, ?wait, "retry");
    #[cfg(feature = "metrics")]
    metrics::counter!("longshore_request_retries", "method" => call.method.to_string())
        .increment(1);
}
