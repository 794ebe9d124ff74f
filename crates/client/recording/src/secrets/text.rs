//! Finds tokens and private keys in texts, by their form.

use std::sync::LazyLock;

use regex::{Regex, bytes::Regex as BytesRegex};

use super::MARKER;

/// A JSON Web Token, the form of tokens of service accounts and identity providers.
const WEB_TOKEN: &str = r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*";

/// The forms of secrets, with their replacements.
static FORMS: LazyLock<Vec<(Regex, String)>> = LazyLock::new(|| {
    let forms = [
        (WEB_TOKEN, MARKER.to_owned()),
        (
            r"(?i)\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{20,}",
            format!("${{1}}${{2}}{MARKER}"),
        ),
        // A bootstrap token: its ID and its secret.
        (
            r"(^|[^A-Za-z0-9._/-])[a-z0-9]{6}\.[a-z0-9]{16}($|[^A-Za-z0-9._/-])",
            format!("${{1}}{MARKER}${{2}}"),
        ),
        (
            r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
            MARKER.to_owned(),
        ),
    ];
    let forms = forms.into_iter();
    forms
        .filter_map(|(form, replacement)| Some((Regex::new(form).ok()?, replacement)))
        .collect()
});

static WEB_TOKEN_IN_BYTES: LazyLock<Option<BytesRegex>> =
    LazyLock::new(|| BytesRegex::new(WEB_TOKEN).ok());

/// Returns the text without its secrets, if it has any.
pub(crate) fn redact_text(text: &str) -> Option<String> {
    let mut redacted = None;
    for (form, replacement) in FORMS.iter() {
        let current = redacted.as_deref().unwrap_or(text);
        if form.is_match(current) {
            redacted = Some(form.replace_all(current, replacement.as_str()).into_owned());
        }
    }
    redacted
}

/// Returns true if bytes that are not text contain a token.
pub(crate) fn contains_token(bytes: &[u8]) -> bool {
    match &*WEB_TOKEN_IN_BYTES {
        Some(form) => form.is_match(bytes),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_compile() {
        assert_eq!(FORMS.len(), 4);
        assert!(WEB_TOKEN_IN_BYTES.is_some());
    }

    #[test]
    fn tokens_and_keys_are_found_in_text() {
        let token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl-_";
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----";
        for (text, expected) in [
            (format!("token={token} used"), "token=REDACTED used"),
            ("a: abcdef.0123456789abcdef".into(), "a: REDACTED"),
            (
                "Authorization: Bearer 0123456789abcdef0123".into(),
                "Authorization: Bearer REDACTED",
            ),
            (format!("x\n{key}\ny"), "x\nREDACTED\ny"),
            ("-----BEGIN PRIVATE KEY-----\nMII".into(), "REDACTED"),
        ] {
            assert_eq!(redact_text(&text).as_deref(), Some(expected), "{text}");
        }
        assert!(contains_token(format!("\0\u{1}{token}\0").as_bytes()));
    }

    #[test]
    fn other_texts_are_unchanged() {
        for text in [
            "bearer of bad news",
            "my-pod.17f3c2d1a4b5c6d7",
            "registry.example.com/worker.aaaaaaaaaaaaaaaa",
            "worker.aaaaaaaaaaaaaaaa.svc",
            "-----BEGIN CERTIFICATE-----\nMII",
        ] {
            assert_eq!(redact_text(text), None);
        }
        assert!(!contains_token(b"k8s\0eyJ"));
    }
}
