//! Answers that should be JSON of the API: reading them, and saying what they
//! are instead.

use http::{HeaderMap, header::CONTENT_TYPE};
use serde::de::DeserializeOwned;

use crate::{cluster::Cluster, data::unreadable, error::Result, transport::Call};

/// Where such answers come from.
pub(crate) const ASK: &str = "is a proxy or a login page on the way?";
impl Cluster {
    /// Sends a request and reads the answer.
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: &Call) -> Result<T> {
        let body = self.bytes(call).await?;
        serde_json::from_slice(&body).map_err(|error| unreadable(&what(call), &body, error))
    }
}

/// How errors name the answer to a request.
pub(crate) fn what(call: &Call) -> String {
    format!("the answer to {}", call.name())
}

/// Whether an answer says of itself that it is a web page.
pub(crate) fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}
