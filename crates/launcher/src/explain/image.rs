//! Images that cannot be had: what the runtime says, sorted.

use super::{
    Cause, Explanation, Patience,
    text::{has_any, short, with_message},
};

/// Why an image cannot be pulled. `said` is the most telling message there
/// is: that of the state, or of an event.
pub(super) fn not_pulled(image: &str, said: &str) -> (Explanation, Patience) {
    let (kind, remedy) = sort(said);
    let what = match kind {
        Cause::ImageNotFound => format!("the image {image:?} is not there"),
        Cause::ImageUnauthorized => format!("the registry does not give out the image {image:?}"),
        Cause::RegistryUnreachable => {
            format!("the registry of the image {image:?} does not answer")
        }
        Cause::RegistryLimit => format!("the registry lets nobody pull {image:?} for now"),
        Cause::WrongArchitecture => {
            format!("the image {image:?} is not there for the node's sort of processor")
        }
        _ => format!("the image {image:?} cannot be pulled"),
    };
    let explanation = Explanation::new(kind, with_message(what, &short(said)), remedy);
    (explanation, Patience::seconds(60))
}

fn sort(said: &str) -> (Cause, &'static str) {
    let is = |words: &[&str]| has_any(said, words);
    if is(&["no match for platform", "no matching manifest for"]) {
        (
            Cause::WrongArchitecture,
            "build the image for that sort of processor, too, or choose other nodes with `node_selector`",
        )
    } else if is(&["toomanyrequests", "429 too many requests", "rate limit"]) {
        (
            Cause::RegistryLimit,
            "sign in with `image_pull_secrets`, or use a mirror of the image",
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
            "check the image's name, and for a private registry name a Secret in `image_pull_secrets`",
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
            "check its name and tag, and for a private registry `image_pull_secrets`",
        )
    }
}
