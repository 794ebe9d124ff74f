//! Signed URLs. Anyone with such a URL can read the bundle, so they are secrets.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A URL to download a bundle without credentials. Its output contains only scheme, host and
/// path, without the signature.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SignedUrl(String);

impl SignedUrl {
    /// Wraps a URL.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The whole URL, which is secret.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Scheme, host and path.
    #[must_use]
    pub fn place(&self) -> String {
        place(&self.0)
    }
}

impl fmt::Display for SignedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place())
    }
}

impl fmt::Debug for SignedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignedUrl({}?…)", self.place())
    }
}

fn place(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit('@').next().unwrap_or(host);
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

/// Reduces each URL in a text to scheme, host and path.
pub(super) fn redact(text: &str) -> String {
    let end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '(' | ')' | '`');
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(found) = rest.find("://") {
        let word = rest[..found].rfind(end).map_or(0, |blank| {
            blank + rest[blank..].chars().next().map_or(1, char::len_utf8)
        });
        let after = rest[found..].find(end).map_or(rest.len(), |at| found + at);
        shown.push_str(&rest[..word]);
        shown.push_str(&place(&rest[word..after]));
        rest = &rest[after..];
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const URL: &str = "https://u:p@s3.example:9000/b/bundles/ab.tar.gz?X-Amz-Signature=hush#hush";

    #[test]
    fn only_the_location_is_shown() {
        let url = SignedUrl::new(URL);
        assert_eq!(
            url.to_string(),
            "https://s3.example:9000/b/bundles/ab.tar.gz"
        );
        assert!(!format!("{url:?} {url}").contains("hush"));
        assert_eq!(url.secret(), URL);
        let text = serde_json::to_string(&url).unwrap();
        assert_eq!(serde_json::from_str::<SignedUrl>(&text).unwrap(), url);
    }

    #[test]
    fn urls_in_texts_are_redacted() {
        let text = format!("GET {URL} in 2 s: “x” <a href=\"{URL}\"> ({URL}) http://h?k=hush");
        assert_eq!(
            redact(&text),
            "GET https://s3.example:9000/b/bundles/ab.tar.gz in 2 s: “x” <a href=\"https://s3.example:9000/b/bundles/ab.tar.gz\"> (https://s3.example:9000/b/bundles/ab.tar.gz) http://h"
        );
        assert_eq!(redact("no url: //"), "no url: //");
    }
}
