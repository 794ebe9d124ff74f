//! Bodies that should be JSON of the API but are something else: what to say of
//! them, above all of web pages.

use crate::error::Error;

/// What to say of a web page.
pub(crate) const PAGE: &str =
    "a web page answered, not Kubernetes: is a proxy or a login page on the way?";
/// The most characters of a web page's text that an error quotes.
const QUOTED: usize = 200;

/// The error for a body with a `problem`; an empty body and a web page are named as
/// such.
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

/// The beginning of what a page says, without its tags.
fn text(page: &str) -> String {
    let mut text = String::new();
    let outside = page
        .split('<')
        .map(|part| part.split_once('>').map_or(part, |(_, after)| after));
    for word in outside.flat_map(str::split_whitespace) {
        if text.len() + word.len() > QUOTED {
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
    fn pages_are_described_by_their_text() {
        let page = "<!DOCTYPE html>\n<head><title>Sign in</title></head>\n<p class=a>Please  <b>log</b> in";
        assert_eq!(text(page), "Sign in Please log in");
        assert_eq!(text("<"), "");
        assert_eq!(text(&"word ".repeat(1000)).len(), 199);
        assert!(super::page(b"{}").is_none());
    }
}
