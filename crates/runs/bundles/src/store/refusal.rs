//! Interprets the error response to a signed URL.

use std::time::Duration;

use reqwest::{Response, StatusCode};

use super::reason::{says_full, words};

/// The number of bytes of an error response to read.
const LONGEST: usize = 64 * 1024;
/// The maximum time to read a response. The bytes that have arrived until then are interpreted.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The meaning of an error response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The signature is invalid or has expired, or its signer lacks the permission.
    Denied,
    /// The object does not exist.
    Missing,
    /// The signature, or the credentials of its signer, have expired.
    Expired,
    /// The store has no space.
    Full,
    /// The request may succeed later.
    Temporary,
    /// Another error, which is permanent.
    Lasting,
}

/// An error response.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) meaning: Meaning,
    /// The status, and the store's message.
    pub(super) problem: String,
}

impl Refusal {
    /// Reads and interprets a response.
    pub(super) async fn read(mut response: Response) -> Self {
        let mut body = Vec::new();
        let reading = async {
            while let Ok(Some(bytes)) = response.chunk().await {
                body.extend_from_slice(&bytes);
                if body.len() > LONGEST {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(READ_TIMEOUT, reading).await;
        Self::of(response.status(), words(&String::from_utf8_lossy(&body)))
    }

    fn of(status: StatusCode, said: Option<String>) -> Self {
        let said_expired = said.as_deref().is_some_and(says_expired);
        let said_full = said.as_deref().is_some_and(says_full);
        let meaning = match status {
            StatusCode::INSUFFICIENT_STORAGE => Meaning::Full,
            _ if said_full => Meaning::Full,
            // S3 reports this with status 400.
            _ if said_expired && status.is_client_error() => Meaning::Expired,
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => Meaning::Denied,
            StatusCode::NOT_FOUND | StatusCode::GONE => Meaning::Missing,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => Meaning::Temporary,
            _ if status.is_server_error() => Meaning::Temporary,
            _ => Meaning::Lasting,
        };
        let problem = match said {
            Some(said) => format!("{}, {said}", status.as_u16()),
            None => status.to_string(),
        };
        Self { meaning, problem }
    }
}

/// Returns true if a message of a store means that the signature has expired.
fn says_expired(said: &str) -> bool {
    [
        "ExpiredToken",
        "has expired",
        "Signature not valid in the specified time frame",
    ]
    .iter()
    .any(|words| said.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expired_signatures_are_recognized_whatever_the_status_is() {
        let said = Some("ExpiredToken: The provided token has expired".to_owned());
        let found = Refusal::of(StatusCode::BAD_REQUEST, said);
        assert_eq!(found.meaning, Meaning::Expired);
        assert!(found.problem.starts_with("400, ExpiredToken"));
        for said in [
            "AccessDenied: Request has expired",
            "AuthenticationFailed: Signature not valid in the specified time frame: Start …",
        ] {
            let found = Refusal::of(StatusCode::FORBIDDEN, Some(said.to_owned()));
            assert_eq!(found.meaning, Meaning::Expired, "{said}");
        }
    }

    #[test]
    fn a_full_store_is_recognized_by_its_status_or_its_message() {
        for (status, said) in [
            (507, None),
            (
                507,
                Some(
                    "XMinioStorageFull: Storage backend has reached its minimum free drive threshold",
                ),
            ),
            (403, Some("QuotaExceeded")),
            (
                400,
                Some("XMinioAdminBucketQuotaExceeded: Bucket quota exceeded"),
            ),
        ] {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            let found = Refusal::of(status, said.map(str::to_owned));
            assert_eq!(found.meaning, Meaning::Full, "{status} {said:?}");
        }
    }

    #[test]
    fn the_status_decides_otherwise() {
        for (status, meaning) in [
            (401, Meaning::Denied),
            (403, Meaning::Denied),
            (404, Meaning::Missing),
            (410, Meaning::Missing),
            (408, Meaning::Temporary),
            (429, Meaning::Temporary),
            (503, Meaning::Temporary),
            (400, Meaning::Lasting),
        ] {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            assert_eq!(Refusal::of(status, None).meaning, meaning, "{status}");
        }
    }
}
