//! Answers that should be JSON of the API.

use http::{HeaderMap, header::CONTENT_TYPE};
use serde::de::DeserializeOwned;

use super::call::Call;
use crate::{data::unreadable, error::Result};

/// Reads the JSON of an answer.
pub(crate) fn parse<T: DeserializeOwned>(call: &Call, body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| unreadable(&call.answer(), body, error))
}

/// Whether an answer's headers declare a web page.
pub(super) fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}
