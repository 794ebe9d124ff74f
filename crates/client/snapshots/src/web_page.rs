//! Errors for response bodies that are not valid JSON. Web pages, for example of a login
//! page, are recognized.

use crate::unreadable::Unreadable;

/// The message for a web page.
pub const WEB_PAGE: &str = "received a web page instead of a Kubernetes response: check \
     for a proxy or a login page in between";
/// The maximum length of the text of a web page that an error quotes, in bytes.
const MAX_QUOTED_BYTES: usize = 200;

/// Returns the error for an unreadable body. If the body is empty or a web page, this is the
/// message instead of the `problem`.
pub fn unreadable(what: &str, body: &[u8], problem: impl std::fmt::Display) -> Unreadable {
    if body.trim_ascii().is_empty() {
        return Unreadable::new(what, "it is empty");
    }
    match describe_web_page(body) {
        Some(description) => Unreadable::new(what, description),
        None => Unreadable::new(what, problem),
    }
}

/// Returns the message for a body that is a web page, with the beginning of its text.
pub fn describe_web_page(body: &[u8]) -> Option<String> {
    let is_page = body.trim_ascii_start().starts_with(b"<");
    is_page.then(|| {
        let text = text(&String::from_utf8_lossy(body));
        format!("{WEB_PAGE}; the page says: {text}")
    })
}

/// Returns the beginning of a page's text, without its tags.
fn text(page: &str) -> String {
    let mut text = String::new();
    let outside = page
        .split('<')
        .map(|part| part.split_once('>').map_or(part, |(_, after)| after));
    for word in outside.flat_map(str::split_whitespace) {
        if text.len() + word.len() > MAX_QUOTED_BYTES {
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
        assert!(describe_web_page(b"{}").is_none());
    }
}
