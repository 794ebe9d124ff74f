//! Human-readable causes of an object store's errors: the store's message without protocol
//! details and secrets.

use std::error::Error;

use object_store::client::{HttpError, HttpErrorKind};

use super::signed::redact;

/// The maximum length of a server's message, in characters.
const WORDS: usize = 300;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Neither the environment nor a metadata service has credentials.
    NoCredentials,
    /// The store denies access.
    Denied,
    /// The bucket or the object does not exist.
    Missing,
    /// The store does not answer.
    Unreachable,
    /// The store is temporarily unavailable.
    Busy,
    /// The store has no space.
    Full,
    /// Plain HTTP is not allowed.
    PlainHttp,
    /// The bucket is in another region.
    Elsewhere,
    /// The store redirects to another address.
    Redirect,
    /// Another error.
    Other,
}

impl Cause {
    /// Returns true if the error is independent of the request and may be temporary.
    pub(super) fn is_lost(self) -> bool {
        matches!(self, Self::Unreachable | Self::Busy)
    }
}

/// The cause of an error, and the message.
pub(crate) fn reason(error: &object_store::Error) -> (Cause, String) {
    let whole = error.to_string();
    let text = words(&whole).unwrap_or_else(|| innermost(error));
    (cause(error, &whole, &text), text)
}

fn cause(error: &object_store::Error, whole: &str, text: &str) -> Cause {
    // The metadata services of clouds are the last source of credentials.
    if ["169.254.", "metadata.google", "metadata/identity"]
        .iter()
        .any(|place| whole.contains(place))
    {
        return Cause::NoCredentials;
    }
    let other_region = text.starts_with("AuthorizationHeaderMalformed") && text.contains("region");
    let redirects = whole.contains("redirect without LOCATION");
    if redirects || other_region || text.starts_with("PermanentRedirect") {
        return Cause::Elsewhere;
    }
    if whole.contains("scheme is not allowed") || text.contains("scheme is not allowed") {
        return Cause::PlainHttp;
    }
    if says_full(text) {
        return Cause::Full;
    }
    match error {
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => Cause::Denied,
        // Some services use another status for expired credentials.
        _ if text.starts_with("ExpiredToken") || text.starts_with("AuthenticationFailed") => {
            Cause::Denied
        }
        object_store::Error::NotFound { .. } => Cause::Missing,
        _ if is_unreachable(error) => Cause::Unreachable,
        _ => match status(whole) {
            Some(301 | 302 | 303 | 307 | 308) => Cause::Redirect,
            Some(401 | 403) => Cause::Denied,
            Some(404) => Cause::Missing,
            Some(507) => Cause::Full,
            Some(408 | 429 | 500..) => Cause::Busy,
            _ => Cause::Other,
        },
    }
}

/// Returns true if the code of an error response means that a store has no space.
pub(super) fn says_full(said: &str) -> bool {
    let code = said.split(':').next().unwrap_or_default();
    ["QuotaExceeded", "StorageFull", "InsufficientStorage"]
        .iter()
        .any(|words| code.ends_with(words))
}

/// The HTTP status of the response.
fn status(whole: &str) -> Option<u16> {
    let (_, rest) = whole.split_once("non-2xx status code: ")?;
    rest.get(..3)?.parse().ok()
}

fn is_unreachable(error: &(dyn Error + 'static)) -> bool {
    is_interrupted(error) || has_kind(error, &[HttpErrorKind::Connect])
}

/// Returns true if a connection ended, or transferred nothing for too long.
pub(super) fn is_interrupted(error: &(dyn Error + 'static)) -> bool {
    has_kind(
        error,
        &[
            HttpErrorKind::Timeout,
            HttpErrorKind::Request,
            HttpErrorKind::Interrupted,
            HttpErrorKind::Decode,
        ],
    )
}

fn has_kind(error: &(dyn Error + 'static), kinds: &[HttpErrorKind]) -> bool {
    let mut errors = chain(error).filter_map(|error| error.downcast_ref::<HttpError>());
    errors.any(|error| kinds.contains(&error.kind()))
}

pub(super) fn chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

/// The innermost source of an error, which is the most specific.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    let last = chain(error).last().map(ToString::to_string);
    let last = last.unwrap_or_default();
    let text = last.trim_start_matches("Server returned non-2xx status code: ");
    short(&redact(text.trim_end_matches([':', ' '])))
}

/// The code and message of an object store's XML error response.
pub(super) fn words(body: &str) -> Option<String> {
    let part = |name: &str| {
        let (_, rest) = body.split_once(&format!("<{name}>"))?;
        let (inside, _) = rest.split_once(&format!("</{name}>"))?;
        // Azure appends the request ID and the time.
        Some(redact(inside.trim().lines().next().unwrap_or_default()))
    };
    let code = part("Code")?;
    Some(match part("Message") {
        Some(message) if !message.is_empty() => short(&format!("{code}: {message}")),
        _ => short(&code),
    })
}

fn short(text: &str) -> String {
    // A server must not send control characters to a terminal.
    let text = text.replace(char::is_control, " ");
    let text = text.trim().trim_end_matches('.');
    match text.char_indices().nth(WORDS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &'static str) -> (Cause, String) {
        reason(&object_store::Error::Generic {
            store: "S3",
            source: text.into(),
        })
    }

    #[test]
    fn causes_are_distinguished() {
        let cases = [
            (
                "400 Bad Request: <Code>AuthorizationHeaderMalformed</Code><Message>the region 'us-east-1' is wrong; expecting 'eu-west-1'</Message>",
                Cause::Elsewhere,
            ),
            (
                "Received redirect without LOCATION, this normally indicates an incorrectly configured region",
                Cause::Elsewhere,
            ),
            (
                "Error performing PUT http://169.254.169.254/latest/api/token in 1s",
                Cause::NoCredentials,
            ),
            ("<Code>ExpiredToken</Code>", Cause::Denied),
            ("<Code>SlowDown</Code>", Cause::Other),
            (
                "<Code>QuotaExceeded</Code><Message>full</Message>",
                Cause::Full,
            ),
            (
                "Server returned non-2xx status code: 507 Insufficient Storage: ",
                Cause::Full,
            ),
            (
                "Server returned non-2xx status code: 503 Service Unavailable: <Code>SlowDown</Code>",
                Cause::Busy,
            ),
            (
                "Server returned non-2xx status code: 404 Not Found: <Code>NoSuchUpload</Code>",
                Cause::Missing,
            ),
            (
                "Server returned non-2xx status code: 400 Bad Request: <Code>InvalidPart</Code>",
                Cause::Other,
            ),
        ];
        for (text, cause) in cases {
            assert_eq!(of(text).0, cause, "{text}");
        }
        let (_, text) = of(cases[0].0);
        assert!(text.ends_with("expecting 'eu-west-1'"), "{text}");
    }

    #[test]
    fn error_responses_are_reduced_to_code_and_message() {
        let body = "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>Request has expired.</Message><Expires>x</Expires></Error>";
        assert_eq!(
            words(body).as_deref(),
            Some("AccessDenied: Request has expired")
        );
        let long = format!("<Code>X</Code><Message>{}</Message>", "é".repeat(1000));
        assert_eq!(
            words(&long).map(|text| text.chars().count()),
            Some(WORDS + 1)
        );
        let leaky = "<Code>X</Code><Message>no https://h/p?sig=hush here\nRequestId</Message>";
        assert_eq!(words(leaky).as_deref(), Some("X: no https://h/p here"));
        let writes = "<Code>X\u{1b}[2J</Code>";
        assert_eq!(words(writes).as_deref(), Some("X [2J"));
        assert_eq!(words("<html>busy</html>"), None);
        assert_eq!(words("<Code>X"), None);
    }
}
