//! Answers that should be JSON of the API: reading them, and saying what they
//! are instead.

use http::{HeaderMap, header::CONTENT_TYPE};
use serde::de::DeserializeOwned;

use crate::{
    cluster::Cluster,
    error::{Error, Result},
    transport::Call,
};

/// Where such answers come from.
pub(crate) const ASK: &str = "is a proxy or a login page on the way?";
/// What to say of a web page.
pub(crate) const PAGE: &str =
    "a web page answered, not Kubernetes: is a proxy or a login page on the way?";
/// So much of a web page's text is told.
const TOLD: usize = 200;

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

/// The error for a body that `problem` is with; what the body is instead, when
/// that can be seen, tells more.
pub(crate) fn unreadable(what: &str, body: &[u8], problem: impl std::fmt::Display) -> Error {
    if body.trim_ascii().is_empty() {
        return Error::decode(what, "it is empty");
    }
    match page(body) {
        Some(page) => Error::decode(what, page),
        None => Error::decode(what, problem),
    }
}

/// What to say of a body that is a web page.
pub(crate) fn page(body: &[u8]) -> Option<String> {
    let is_page = body.trim_ascii_start().starts_with(b"<");
    is_page.then(|| format!("{PAGE} It says: {}", text(&String::from_utf8_lossy(body))))
}

/// Whether an answer says of itself that it is a web page.
pub(crate) fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

/// The beginning of what a page says, without its tags.
fn text(page: &str) -> String {
    let mut text = String::new();
    let outside = page
        .split('<')
        .map(|part| part.split_once('>').map_or(part, |(_, after)| after));
    for word in outside.flat_map(str::split_whitespace) {
        if text.len() + word.len() > TOLD {
            break;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_told_by_their_text() {
        let page = "<!DOCTYPE html>\n<head><title>Sign in</title></head>\n<p class=a>Please  <b>log</b> in";
        assert_eq!(text(page), "Sign in Please log in");
        assert_eq!(text("<"), "");
        assert_eq!(text(&"word ".repeat(1000)).len(), 199);
        assert!(super::page(b"{}").is_none());
    }
}
