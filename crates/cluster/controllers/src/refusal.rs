//! Interprets error responses of the server.

use longshore_client::Error;

/// Returns true if a create request failed because the namespace is terminating.
pub(crate) fn is_terminating(error: &Error) -> bool {
    error
        .status()
        .and_then(|status| status.details.as_ref())
        .is_some_and(|details| {
            details
                .causes
                .iter()
                .any(|c| c.reason == "NamespaceTerminating")
        })
}

/// Returns the server's message without a description of the request.
pub(crate) fn message(error: &Error) -> String {
    match error.status() {
        Some(status) => status.message.clone(),
        None => error.to_string(),
    }
}
