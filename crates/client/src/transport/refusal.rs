//! The errors that refusing answers stand for.

use std::borrow::Cow;

use http::{Response, StatusCode, header::LOCATION};
use kube_client::client::Body;
use longshore_model::{Status, StatusReason};

use super::{body, call::Call, retry};
use crate::{data::page, error::Error};

/// The usual cause of a redirection.
const ASK: &str = "is a proxy or a login page on the way?";

/// The error that a refusing answer stands for.
pub(super) async fn refusal(call: &Call, response: Response<Body>) -> Error {
    let code = response.status();
    let headers = response.headers().clone();
    let seconds = retry::retry_after(&headers).map_or(0, |wait| wait.as_secs());
    let body = body::read(response).await.unwrap_or_default();
    let mut status = status(code, &body);
    if let Some(to) = headers.get(LOCATION).filter(|_| code.is_redirection()) {
        // A query may hold what is secret.
        let to = String::from_utf8_lossy(to.as_bytes());
        let to = to.split(['?', '#']).next().unwrap_or_default();
        status.message = format!("it redirects to {to}, which is not followed: {}", ASK);
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
    fn refusals_without_a_status_quote_their_text() {
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
