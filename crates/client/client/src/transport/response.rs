//! Reads responses that must be JSON.

use http::{HeaderMap, header::CONTENT_TYPE};
use serde::de::DeserializeOwned;

use super::call::Call;
use crate::error::Result;
use longshore_snapshots::unreadable;

/// Parses the JSON body of the response to `call`.
///
/// # Errors
/// [`Error::Decode`](crate::Error::Decode) names the request.
pub(crate) fn parse<T: DeserializeOwned>(call: &Call, body: &[u8]) -> Result<T> {
    let parsed = serde_json::from_slice(body);
    Ok(parsed.map_err(|error| unreadable(&call.response_name(), body, error))?)
}

/// Returns true if a response is a web page by its headers.
pub(super) fn is_web_page(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE);
    media_type.is_some_and(|value| value.as_bytes().starts_with(b"text/html"))
}
