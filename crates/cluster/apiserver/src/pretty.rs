//! Indented JSON: for `?pretty=true`, and by default for curl and browsers. The
//! text is indented while it is sent.

use bytes::Bytes;
use http::{HeaderMap, Uri, header};

use crate::{body::Chunks, query::Query};

/// User agents that get indented JSON.
const VIEWERS: &[&str] = &["curl", "Wget", "Mozilla/5.0"];

/// Returns true if the response is to be indented. The rules are Kubernetes'.
pub(crate) fn is_wanted(uri: &Uri, headers: &HeaderMap) -> bool {
    if uri.path().starts_with("/openapi/") {
        return false;
    }
    let query = uri.query().filter(|query| query.contains("pretty"));
    if let Some(Ok(query)) = query.map(|query| Query::parse(Some(query)))
        && let Some(word) = query.first("pretty").filter(|word| !word.is_empty())
    {
        return matches!(word, "1" | "t" | "T" | "true" | "TRUE" | "True");
    }
    let text = |name| {
        let value = headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let agent = text(header::USER_AGENT);
    VIEWERS.iter().any(|viewer| agent.starts_with(viewer))
        || text(header::ACCEPT).contains("pretty=1")
}

/// Indents JSON that arrives in chunks.
pub(crate) fn indent(mut chunks: Chunks) -> Chunks {
    let mut indenter = Indenter::default();
    Box::new(std::iter::from_fn(move || {
        let chunk = chunks.next()?;
        let mut out = Vec::with_capacity(chunk.len() * 2);
        for byte in chunk {
            indenter.push(byte, &mut out);
        }
        Some(Bytes::from(out))
    }))
}

/// The state of the indentation.
#[derive(Default)]
struct Indenter {
    depth: usize,
    in_text: bool,
    escaped: bool,
    /// A bracket was opened, and its content has not begun.
    opened: bool,
}

impl Indenter {
    fn line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', self.depth * 2));
    }

    fn push(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.in_text {
            out.push(byte);
            self.in_text = self.escaped || byte != b'"';
            self.escaped = !self.escaped && byte == b'\\';
            return;
        }
        if byte.is_ascii_whitespace() {
            return;
        }
        let closes = matches!(byte, b'}' | b']');
        match (std::mem::take(&mut self.opened), closes) {
            (true, false) => {
                self.depth += 1;
                self.line(out);
            }
            (false, true) => {
                self.depth = self.depth.saturating_sub(1);
                self.line(out);
            }
            _ => {}
        }
        out.push(byte);
        match byte {
            b'"' => self.in_text = true,
            b'{' | b'[' => self.opened = true,
            b',' => self.line(out),
            b':' => out.push(b' '),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn indented(text: &str, size: usize) -> String {
        let chunks: Vec<Bytes> = text
            .as_bytes()
            .chunks(size)
            .map(Bytes::copy_from_slice)
            .collect();
        let out: Vec<u8> = indent(Box::new(chunks.into_iter())).flatten().collect();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn indentation_matches_serde_for_all_chunk_sizes() {
        for value in [
            json!({}),
            json!([]),
            json!({"a": [], "b": {}, "c": [[], {}], "d": [1, {"e": null}]}),
            json!({"a\"\\": "\\\"{}[],: \\", "b": [true, -1.5e7, "x\\"]}),
            json!("text"),
        ] {
            let value: Value = value;
            let expected = serde_json::to_string_pretty(&value).unwrap();
            for size in 1..8 {
                assert_eq!(indented(&value.to_string(), size), expected);
            }
        }
    }

    #[test]
    fn viewers_get_indented_json() {
        let wanted = |uri: &str, agent: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::USER_AGENT, agent.parse().unwrap());
            is_wanted(&uri.parse().unwrap(), &headers)
        };
        assert!(wanted("/api?pretty=true", "x"));
        assert!(wanted("/api?pretty=1", "x"));
        assert!(wanted("/api", "curl/8"));
        assert!(wanted("/api?pretty=", "curl/8"));
        for (uri, agent) in [
            ("/api", "x"),
            ("/api?pretty=foo", "curl/8"),
            ("/api?pretty=false", "curl/8"),
            ("/api?labelSelector=pretty", "x"),
            ("/openapi/v3?pretty=1", "x"),
        ] {
            assert!(!wanted(uri, agent), "{uri} {agent}");
        }
    }
}
