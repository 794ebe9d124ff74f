//! What the server says when it refuses a request.

use longshore_client::Error;

/// Whether a create was refused because its namespace is going.
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

/// The server's message, without the request that it answered.
pub(crate) fn message(error: &Error) -> String {
    match error.status() {
        Some(status) => status.message.clone(),
        None => error.to_string(),
    }
}
