//! Formats URLs and errors for messages, without credentials.

use kube_client::client::AuthError;

/// Formats a URL without user name, password and query.
pub(super) fn display_url(url: &http::Uri) -> String {
    let scheme = url.scheme_str().unwrap_or("http");
    let host = url.host().unwrap_or_default();
    let port = url
        .port()
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    format!(
        "{scheme}://{host}{port}{}",
        url.path().trim_end_matches('/')
    )
}

/// Formats an error and its sources, each once, without credentials.
pub(super) fn explain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<AuthError>() {
            return auth(error);
        }
        let io = error.downcast_ref::<std::io::Error>();
        let text = match io.map(std::io::Error::kind) {
            // The TLS library's message helps only developers of servers.
            Some(std::io::ErrorKind::UnexpectedEof) => {
                texts.push("the server closed the connection".to_owned());
                break;
            }
            _ => error.to_string(),
        };
        // The messages of many errors contain the message of their source.
        texts.retain(|outer| !outer.contains(&text));
        if !texts.iter().any(|known| known == &text) {
            texts.push(text);
        }
        next = error.source();
    }
    texts.join(": ")
}

/// Formats an authentication error. Omits the arguments and the output of a credential
/// plugin, which may contain a token.
fn auth(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecRun { out, .. } => {
            let status = out.status;
            format!("the credential program failed with {status}: run it manually")
        }
        AuthError::AuthExecStart(error) => {
            format!("the credential program cannot be started: {error}")
        }
        AuthError::AuthExecParse(_) | AuthError::ParseTokenKey(_) => {
            "the credential program's output cannot be read".to_owned()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn displayed_urls_have_no_password() {
        let url = "https://user:secret@example.org:6443/base/"
            .parse()
            .unwrap();
        assert_eq!(display_url(&url), "https://example.org:6443/base");
    }

    #[test]
    fn each_cause_is_named_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer: inner")]
        struct Outer(#[source] Inner);
        #[derive(Debug, thiserror::Error)]
        #[error("inner")]
        struct Inner;
        assert_eq!(explain(&Outer(Inner)), "inner");

        #[derive(Debug, thiserror::Error)]
        #[error("sending")]
        struct Sending(#[source] std::io::Error);
        let text = "peer closed connection without sending TLS close_notify";
        let ended = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, text);
        let expected = "sending: the server closed the connection";
        assert_eq!(explain(&Sending(ended)), expected);
    }
}
