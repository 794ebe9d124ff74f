//! Parses and reports the `Warning` headers (RFC 7234, section 5.5) of responses. API servers
//! send warnings for unknown fields, deprecated API versions and policy violations.

use std::{fmt, sync::Arc};

use http::{HeaderMap, header::WARNING};

/// The warn-code "miscellaneous persistent warning", the only one that Kubernetes sends.
const PERSISTENT_WARNING: &str = "299";

type Handler = dyn Fn(&str) + Send + Sync;

/// The handler of a cluster's warnings. Without one, they are logged.
#[derive(Clone, Default)]
pub(crate) struct Warnings(Option<Arc<Handler>>);

impl fmt::Debug for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Warnings").field(&self.0.is_some()).finish()
    }
}

impl Warnings {
    pub(crate) fn with_handler(handler: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(handler)))
    }

    /// Reports the warnings in the headers of a response.
    pub(crate) fn report(&self, headers: &HeaderMap) {
        for value in headers.get_all(WARNING) {
            let value = String::from_utf8_lossy(value.as_bytes());
            for text in texts(&value) {
                match &self.0 {
                    Some(handler) => handler(&text),
                    None => tracing::warn!("warning from the server: {text}"),
                }
            }
        }
    }
}

/// Parses the texts of the warnings in a header value. Stops at the first invalid warning.
fn texts(value: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = value;
    while let Some((code, text, after)) = parse_warning(rest) {
        if code == PERSISTENT_WARNING {
            texts.push(text);
        }
        let Some(next) = after.trim_start().strip_prefix(',') else {
            break;
        };
        rest = next;
    }
    texts
}

/// Parses a warning. Returns its code, its text and the rest of the value.
fn parse_warning(value: &str) -> Option<(&str, String, &str)> {
    let (code, rest) = value.trim_start().split_once(' ')?;
    let (_agent, rest) = rest.split_once(' ')?;
    let (text, rest) = quoted(rest)?;
    // The date is optional.
    let after_date = rest.strip_prefix(' ').and_then(quoted);
    Some((code, text, after_date.map_or(rest, |(_, rest)| rest)))
}

/// Parses a quoted string. Returns its text and the rest of the value.
fn quoted(value: &str) -> Option<(String, &str)> {
    let mut chars = value.strip_prefix('"')?.chars();
    let mut text = String::new();
    loop {
        match chars.next()? {
            '"' => return Some((text, chars.as_str())),
            '\\' => text.push(chars.next()?),
            char => text.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_header_can_have_several_warnings() {
        let date = r#""Wed, 21 Oct 2015 07:28:00 GMT""#;
        let value = format!(r#"299 - "a, \"b\" \\" {date}, 112 kube "offline", 299 - "ü""#);
        assert_eq!(texts(&value), [r#"a, "b" \"#, "ü"]);
    }

    #[test]
    fn invalid_warnings_are_ignored() {
        for value in ["", "299", "299 -", r#"299 - "open"#, r#"299 - "\"#, "x"] {
            assert_eq!(texts(value), [""; 0], "{value}");
        }
        assert_eq!(texts(r#"299 - "a" b"#), ["a"]);
    }

    proptest! {
        #[test]
        fn any_text_round_trips(all in prop::collection::vec(".*", 0..4)) {
            let quote = |text: &String| {
                let text = text.replace('\\', r"\\").replace('"', "\\\"");
                format!("299 - \"{text}\"")
            };
            let value = all.iter().map(quote).collect::<Vec<_>>().join(",");
            prop_assert_eq!(texts(&value), all);
        }

        #[test]
        fn parsing_never_panics(value in r#"[29 ,"\\a-]*"#) {
            let _ = texts(&value);
        }
    }
}
