//! PEM blocks: text with base64-encoded binary data.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Parses the first PEM block of a text: its type, its contents, and the text
/// after it. Headers of the block are ignored.
pub(super) fn block(text: &str) -> Option<(&str, Vec<u8>, &str)> {
    let (_, text) = text.split_once("-----BEGIN ")?;
    let (kind, text) = text.split_once("-----")?;
    let (body, rest) = text.split_once(&format!("-----END {kind}-----"))?;
    let lines = body.lines().filter(|line| !line.contains(':'));
    let body: String = lines.flat_map(str::split_ascii_whitespace).collect();
    Some((kind, STANDARD.decode(body).ok()?, rest))
}

/// Validates the PEM blocks of certificates.
pub(super) fn certificates(mut text: &str) -> Option<String> {
    let mut some = false;
    while let Some((kind, _, rest)) = block(text) {
        if kind != "CERTIFICATE" {
            let problem = "only CERTIFICATE PEM blocks are allowed, found";
            return Some(format!("{problem} {kind:?}"));
        }
        (some, text) = (true, rest);
    }
    let missing = "must contain at least one CERTIFICATE PEM block";
    (!some).then(|| missing.to_owned())
}
