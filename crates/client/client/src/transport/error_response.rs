//! Converts error responses into errors.

use std::{borrow::Cow, sync::Arc};

use http::{Response, StatusCode, header::LOCATION};
use kube_client::client::Body;
use longshore_model::{Status, StatusReason};

use super::{body, call::Call, retry};
use crate::error::{Error, ErrorResponse};
use longshore_snapshots::describe_web_page;

/// The maximum number of characters of a response body that an error quotes.
const MAX_QUOTED_CHARS: usize = 300;

/// Returns the error for a response with a status code other than 2xx. `base` is the URL of the
/// server.
pub(super) async fn error_response(base: &str, call: &Call, response: Response<Body>) -> Error {
    let code = response.status();
    let headers = response.headers().clone();
    let seconds = retry::retry_after(&headers).map_or(0, |wait| wait.as_secs());
    let body = body::read_error(response).await;
    let mut status = status(code, &body);
    if let Some(to) = headers.get(LOCATION).filter(|_| code.is_redirection()) {
        // A query may contain secrets.
        let to = String::from_utf8_lossy(to.as_bytes());
        let to = to.split(['?', '#']).next().unwrap_or_default();
        status.message = format!(
            "the server redirects to {to}: check for a proxy or a login page in between; \
             redirects are not followed"
        );
    }
    if seconds > 0 {
        let details = status.details.get_or_insert_default();
        if details.retry_after_seconds == 0 {
            details.retry_after_seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        }
    }
    let response = ErrorResponse {
        url: format!("{}{}", base.trim_end_matches('/'), call.path),
        headers,
        body,
    };
    Error::of_response(call.name(), status, Some(Arc::new(response)))
}

/// Parses the body of an error response. If it is not a `Status`, returns one with the
/// beginning of the body as its message.
pub(crate) fn status(code: StatusCode, body: &[u8]) -> Status {
    let mut status = serde_json::from_slice::<Status>(body)
        .ok()
        .filter(|status| status.kind == "Status" && status.status != "Success")
        .unwrap_or_else(|| {
            let start = |text: Cow<'_, str>| text.trim().chars().take(MAX_QUOTED_CHARS).collect();
            let text: String =
                describe_web_page(body).unwrap_or_else(|| start(String::from_utf8_lossy(body)));
            let default = code.canonical_reason().unwrap_or("no message").to_owned();
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
            Status::failure(reason, if text.is_empty() { default } else { text })
        });
    status.code = code.as_u16();
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_without_a_status_quote_the_body() {
        let page = status(StatusCode::BAD_GATEWAY, b"<html>proxy says no</html>");
        assert_eq!(
            (page.code, page.message.as_str()),
            (
                502,
                "received a web page instead of a Kubernetes response: check for a proxy or a login page in between; the page says: proxy says no"
            )
        );
        let empty = status(StatusCode::NOT_FOUND, b"");
        assert_eq!(
            (empty.message.as_str(), empty.reason),
            ("Not Found", StatusReason::NotFound)
        );
    }
}
