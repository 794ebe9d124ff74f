//! What is told of requests: spans, and numbers where they are wanted. Paths
//! and codes alone: a query or a body may hold what is nobody's business.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use http::{Response, StatusCode};
use tracing::{Instrument, field::Empty};

use crate::{error::Error, transport::Call};

/// Tells of a request around sending it.
pub(crate) async fn request<B>(
    call: &Call,
    sending: impl Future<Output = Result<Response<B>, Error>>,
) -> Result<Response<B>, Error>
where
    B: http_body::Body<Data = Bytes>,
{
    let span =
        tracing::debug_span!("request", method = %call.method, path = call.path, code = Empty);
    #[cfg(feature = "metrics")]
    let begun = std::time::Instant::now();
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
            .record(begun.elapsed());
    }
    outcome
}

/// Tells that a request is sent again.
pub(crate) fn retry(call: &Call, code: StatusCode, wait: Duration) {
    tracing::debug!(request = call.name(), %code, ?wait, "trying again");
    #[cfg(feature = "metrics")]
    metrics::counter!("longshore_request_retries", "method" => call.method.to_string())
        .increment(1);
}
