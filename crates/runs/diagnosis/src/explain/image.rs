//! Classifies the runtime's messages about images that cannot be pulled.

use super::{
    Cause, Explanation, WaitLimit,
    text::{has_any, short, with_message},
};

/// Explains why an image cannot be pulled. `said` is the most specific message, from the
/// container's state or from an event.
pub(super) fn not_pulled(image: &str, said: &str) -> (Explanation, WaitLimit) {
    let (kind, remedy) = sort(said);
    let what = match kind {
        Cause::ImageNotFound => format!("the image {image:?} does not exist"),
        Cause::ImageUnauthorized => format!("the registry denies access to the image {image:?}"),
        Cause::RegistryUnreachable => {
            format!("the registry of the image {image:?} does not answer")
        }
        Cause::RegistryLimit => format!("the registry's pull rate limit is reached for {image:?}"),
        Cause::WrongArchitecture => {
            format!("the image {image:?} is not available for the node's architecture")
        }
        _ => format!("the image {image:?} cannot be pulled"),
    };
    let explanation = Explanation::new(kind, with_message(what, &short(said)), remedy);
    (explanation, WaitLimit::seconds(60))
}

fn sort(said: &str) -> (Cause, &'static str) {
    let is = |words: &[&str]| has_any(said, words);
    if is(&["no match for platform", "no matching manifest for"]) {
        (
            Cause::WrongArchitecture,
            "build the image for that architecture, too, or select other nodes with `node_selector`",
        )
    } else if is(&["toomanyrequests", "429 too many requests", "rate limit"]) {
        (
            Cause::RegistryLimit,
            "authenticate with `image_pull_secrets`, or use a mirror of the image",
        )
    } else if is(&[
        "unauthorized",
        "authorization failed",
        "authentication required",
        "pull access denied",
        "no basic auth credentials",
        "insufficient_scope",
        "403 forbidden",
        "denied:",
    ]) {
        (
            Cause::ImageUnauthorized,
            "check the image's name; for a private registry, set a Secret in `image_pull_secrets`",
        )
    } else if is(&[
        "no such host",
        "connection refused",
        "i/o timeout",
        "tls handshake timeout",
        "network is unreachable",
        "no route to host",
        "connection reset",
        "deadline exceeded",
        "client.timeout",
        "request canceled",
        "x509:",
        "registry is unavailable",
        "registryunavailable",
    ]) {
        (
            Cause::RegistryUnreachable,
            "check the registry's name in `image`, and that the nodes can reach it",
        )
    } else if is(&[
        "not found",
        "manifest unknown",
        "name unknown",
        "does not exist",
        "notfound",
    ]) {
        (
            Cause::ImageNotFound,
            "correct the name or the tag in `image`, or push the image",
        )
    } else {
        (
            Cause::ImagePull,
            "check its name and tag; for a private registry, check `image_pull_secrets`",
        )
    }
}
