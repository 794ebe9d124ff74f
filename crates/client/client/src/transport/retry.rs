//! Decides whether and when to retry a request. All rules are pure functions.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header::RETRY_AFTER};

/// The maximum `Retry-After`. Requests are not retried after a longer one; watches, which continue, wait
/// no longer.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Returns the value of `Retry-After` in seconds. A date counts as absent; Kubernetes does
/// not send dates.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
        .map(Duration::from_secs)
}

/// Returns the delay before a retry after this error response, `None` for no retry. Reads
/// are retried on 429 and 503. Other requests are retried only if the response has
/// `Retry-After`, because then the server has not processed them.
pub(super) fn delay(
    method: &Method,
    code: StatusCode,
    headers: &HeaderMap,
    attempt: u32,
    backoff: Backoff,
) -> Option<Duration> {
    let busy = code == StatusCode::TOO_MANY_REQUESTS || code.is_server_error();
    match retry_after(headers) {
        Some(wait) if busy => (wait <= MAX_RETRY_AFTER).then(|| wait + backoff.jitter(wait / 4)),
        _ => {
            let temporary = matches!(code.as_u16(), 429 | 503);
            (is_read(method) && temporary).then(|| backoff.wait(attempt))
        }
    }
}

/// Returns true if a request can be retried after this error. As in client-go, only reads are
/// retried, and only if an established connection was lost, for example because the server
/// restarts.
pub(super) fn is_retryable(method: &Method, error: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    let lost = causes
        .find_map(|cause| cause.downcast_ref::<hyper_util::client::legacy::Error>())
        .is_some_and(|error| !error.is_connect());
    is_read(method) && lost
}

fn is_read(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD
}

/// Exponential backoff: delays double from `initial` up to `max`. Each is shortened at
/// random by up to half, so that many clients do not retry at the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    pub(super) initial: Duration,
    pub(super) max: Duration,
}

impl Backoff {
    /// Returns the delay before the retry with this number. The first retry is 0.
    pub(crate) fn wait(self, attempt: u32) -> Duration {
        let full = self
            .initial
            .saturating_mul(1 << attempt.min(16))
            .min(self.max);
        full / 2 + self.jitter(full / 2)
    }

    fn jitter(self, max: Duration) -> Duration {
        max.mul_f64(fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const BACKOFF: Backoff = Backoff {
        initial: Duration::from_millis(100),
        max: Duration::from_secs(5),
    };

    fn headers(seconds: &str) -> HeaderMap {
        HeaderMap::from_iter([(RETRY_AFTER, seconds.parse().unwrap())])
    }

    #[test]
    fn delays_double_up_to_a_maximum() {
        for attempt in 0..80 {
            let full = Duration::from_millis(100 << attempt.min(10)).min(Duration::from_secs(5));
            let delay = BACKOFF.wait(attempt);
            assert!(full / 2 <= delay && delay <= full, "{attempt}: {delay:?}");
        }
    }

    #[test]
    fn reads_are_retried_if_the_server_is_busy() {
        let none = HeaderMap::new();
        let retried = |method: &Method, code: StatusCode, headers: &HeaderMap| {
            delay(method, code, headers, 0, BACKOFF).is_some()
        };
        assert!(retried(
            &Method::GET,
            StatusCode::SERVICE_UNAVAILABLE,
            &none
        ));
        assert!(retried(&Method::GET, StatusCode::TOO_MANY_REQUESTS, &none));
        assert!(!retried(
            &Method::GET,
            StatusCode::INTERNAL_SERVER_ERROR,
            &none
        ));
        assert!(!retried(
            &Method::POST,
            StatusCode::SERVICE_UNAVAILABLE,
            &none
        ));
        assert!(!retried(&Method::GET, StatusCode::NOT_FOUND, &headers("1")));
    }

    #[test]
    fn writes_are_retried_only_with_retry_after() {
        let wait = delay(
            &Method::POST,
            StatusCode::TOO_MANY_REQUESTS,
            &headers("2"),
            0,
            BACKOFF,
        );
        assert!(wait.unwrap() >= Duration::from_secs(2));
        let long = delay(
            &Method::GET,
            StatusCode::SERVICE_UNAVAILABLE,
            &headers("600"),
            0,
            BACKOFF,
        );
        assert_eq!(long, None);
        let date = headers("Fri, 31 Dec 1999 23:59:59 GMT");
        assert_eq!(
            delay(
                &Method::PUT,
                StatusCode::SERVICE_UNAVAILABLE,
                &date,
                0,
                BACKOFF
            ),
            None
        );
    }
}
