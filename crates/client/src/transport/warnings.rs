//! Warnings that a server sends with its answers, in `Warning` headers (RFC 7234,
//! section 5.5): of fields that nothing reads, of versions that will go, of policies.

use std::{fmt, sync::Arc};

use http::{HeaderMap, header::WARNING};

/// The code of the warnings that are for people, and the only one that Kubernetes sends.
const MISCELLANEOUS: &str = "299";

type Handler = dyn Fn(&str) + Send + Sync;

/// What is called with the warnings of a cluster.
#[derive(Clone, Default)]
pub(crate) struct Warnings(Option<Arc<Handler>>);

impl fmt::Debug for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Warnings").field(&self.0.is_some()).finish()
    }
}

impl Warnings {
    pub(crate) fn to(handler: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(handler)))
    }

    /// Reports the warnings of an answer.
    pub(crate) fn report(&self, headers: &HeaderMap) {
        for value in headers.get_all(WARNING) {
            let value = String::from_utf8_lossy(value.as_bytes());
            for text in texts(&value) {
                match &self.0 {
                    Some(handler) => handler(&text),
                    None => tracing::warn!("the server warns: {text}"),
                }
            }
        }
    }
}

/// The texts of a header's value, up to what is no warning.
fn texts(value: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = value;
    while let Some((code, text, after)) = one(rest) {
        if code == MISCELLANEOUS {
            texts.push(text);
        }
        let Some(next) = after.trim_start().strip_prefix(',') else {
            break;
        };
        rest = next;
    }
    texts
}

/// A warning's code and text, and what follows it.
fn one(value: &str) -> Option<(&str, String, &str)> {
    let (code, rest) = value.trim_start().split_once(' ')?;
    let (_agent, rest) = rest.split_once(' ')?;
    let (text, rest) = quoted(rest)?;
    // A date may stand at the end.
    let after_date = rest.strip_prefix(' ').and_then(quoted);
    Some((code, text, after_date.map_or(rest, |(_, rest)| rest)))
}

/// A text in quotes, and what follows it.
fn quoted(value: &str) -> Option<(String, &str)> {
    let mut letters = value.strip_prefix('"')?.chars();
    let mut text = String::new();
    loop {
        match letters.next()? {
            '"' => return Some((text, letters.as_str())),
            '\\' => text.push(letters.next()?),
            letter => text.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn several_in_one_header() {
        let date = r#""Wed, 21 Oct 2015 07:28:00 GMT""#;
        let value = format!(r#"299 - "a, \"b\" \\" {date}, 112 kube "offline", 299 - "ü""#);
        assert_eq!(texts(&value), [r#"a, "b" \"#, "ü"]);
    }

    #[test]
    fn what_is_no_warning_is_left_out() {
        for value in ["", "299", "299 -", r#"299 - "open"#, r#"299 - "\"#, "x"] {
            assert_eq!(texts(value), [""; 0], "{value}");
        }
        assert_eq!(texts(r#"299 - "a" b"#), ["a"]);
    }

    proptest! {
        #[test]
        fn any_text_comes_through(all in prop::collection::vec(".*", 0..4)) {
            let quote = |text: &String| {
                let text = text.replace('\\', r"\\").replace('"', "\\\"");
                format!("299 - \"{text}\"")
            };
            let value = all.iter().map(quote).collect::<Vec<_>>().join(",");
            prop_assert_eq!(texts(&value), all);
        }

        #[test]
        fn no_value_is_too_odd(value in r#"[29 ,"\\a-]*"#) {
            let _ = texts(&value);
        }
    }
}
