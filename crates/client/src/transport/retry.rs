//! When a request is retried, and after which wait: pure rules.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header::RETRY_AFTER};

/// A server that asks for longer than this is not waited for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The server's `Retry-After`, in seconds; its date form is not used by
/// Kubernetes and counts as absent.
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

/// How long to wait before a retry after this response; `None` if there is no
/// retry. Reads are retried on 429 and 503. Other requests are retried only if
/// the response has `Retry-After`, because then the server has not started
/// them.
pub(super) fn after(
    method: &Method,
    code: StatusCode,
    headers: &HeaderMap,
    attempt: u32,
    backoff: Backoff,
) -> Option<Duration> {
    let busy = code == StatusCode::TOO_MANY_REQUESTS || code.is_server_error();
    match retry_after(headers) {
        Some(wait) if busy => {
            (wait <= LONGEST_RETRY_AFTER).then(|| wait + backoff.jitter(wait / 4))
        }
        _ => {
            let temporary = matches!(code.as_u16(), 429 | 503);
            (is_read(method) && temporary).then(|| backoff.wait(attempt))
        }
    }
}

/// Whether a request can be sent again after this error, as in client-go: it is
/// a read, and the connection was lost after it had been established, for
/// example because the server restarts.
pub(super) fn after_lost_connection(
    method: &Method,
    error: &(dyn std::error::Error + 'static),
) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    let lost = causes
        .find_map(|cause| cause.downcast_ref::<hyper_util::client::legacy::Error>())
        .is_some_and(|error| !error.is_connect());
    is_read(method) && lost
}

fn is_read(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD
}

/// Waits that double from `first` to `most`, each shortened at random by up to
/// half so that many clients do not retry at the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    pub(super) first: Duration,
    pub(super) most: Duration,
}

impl Backoff {
    /// The wait before retry `attempt`, which counts from 0.
    pub(crate) fn wait(self, attempt: u32) -> Duration {
        let full = self
            .first
            .saturating_mul(1 << attempt.min(16))
            .min(self.most);
        full / 2 + self.jitter(full / 2)
    }

    fn jitter(self, most: Duration) -> Duration {
        most.mul_f64(fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const BACKOFF: Backoff = Backoff {
        first: Duration::from_millis(100),
        most: Duration::from_secs(5),
    };

    fn headers(seconds: &str) -> HeaderMap {
        HeaderMap::from_iter([(RETRY_AFTER, seconds.parse().unwrap())])
    }

    #[test]
    fn waits_double_up_to_a_bound() {
        for attempt in 0..80 {
            let full = Duration::from_millis(100 << attempt.min(10)).min(Duration::from_secs(5));
            let wait = BACKOFF.wait(attempt);
            assert!(full / 2 <= wait && wait <= full, "{attempt}: {wait:?}");
        }
    }

    #[test]
    fn reads_are_tried_again_when_the_server_is_busy() {
        let none = HeaderMap::new();
        let tried = |method: &Method, code: StatusCode, headers: &HeaderMap| {
            after(method, code, headers, 0, BACKOFF).is_some()
        };
        assert!(tried(&Method::GET, StatusCode::SERVICE_UNAVAILABLE, &none));
        assert!(tried(&Method::GET, StatusCode::TOO_MANY_REQUESTS, &none));
        assert!(!tried(
            &Method::GET,
            StatusCode::INTERNAL_SERVER_ERROR,
            &none
        ));
        assert!(!tried(
            &Method::POST,
            StatusCode::SERVICE_UNAVAILABLE,
            &none
        ));
        assert!(!tried(&Method::GET, StatusCode::NOT_FOUND, &headers("1")));
    }

    #[test]
    fn writes_are_retried_only_with_retry_after() {
        let wait = after(
            &Method::POST,
            StatusCode::TOO_MANY_REQUESTS,
            &headers("2"),
            0,
            BACKOFF,
        );
        assert!(wait.unwrap() >= Duration::from_secs(2));
        let long = after(
            &Method::GET,
            StatusCode::SERVICE_UNAVAILABLE,
            &headers("600"),
            0,
            BACKOFF,
        );
        assert_eq!(long, None);
        let date = headers("Fri, 31 Dec 1999 23:59:59 GMT");
        assert_eq!(
            after(
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
