//! PEM blocks: texts with something binary in base64.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The type of the first PEM block of a text, what it holds, and what follows.
pub(super) fn block(text: &str) -> Option<(&str, Vec<u8>, &str)> {
    let (_, text) = text.split_once("-----BEGIN ")?;
    let (kind, text) = text.split_once("-----")?;
    let (body, rest) = text.split_once(&format!("-----END {kind}-----"))?;
    let body: String = body.split_ascii_whitespace().collect();
    Some((kind, STANDARD.decode(body).ok()?, rest))
}

/// What is wrong with the PEM blocks of a certificate.
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
