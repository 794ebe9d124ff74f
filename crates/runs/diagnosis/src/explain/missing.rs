//! Missing objects that a pod refers to, parsed from messages.

use super::{
    Cause, Explanation, WaitLimit,
    text::{between, short, with_message},
};

/// A cause that lasts until the object is created.
fn named(kind: Cause, cause: String, remedy: String) -> (Explanation, WaitLimit) {
    (
        Explanation::new(kind, cause, remedy),
        WaitLimit::seconds(10),
    )
}

/// Parses the missing Secret, ConfigMap, key or claim from a message.
pub(super) fn object(message: &str) -> Option<(Explanation, WaitLimit)> {
    key(message).or_else(|| whole(message))
}

/// `couldn't find key K in Secret ns/name`, `references non-existent secret key: K`.
fn key(message: &str) -> Option<(Explanation, WaitLimit)> {
    if let Some((_, rest)) = message.split_once("couldn't find key ") {
        let (key, rest) = rest.split_once(" in ")?;
        let (kind, place) = rest.split_once(' ')?;
        let name = place.rsplit('/').next()?.trim();
        return Some(named(
            Cause::MissingKey,
            format!("the {kind} {name:?} has no key {key:?}"),
            format!("add the key {key:?} to the {kind} {name:?}, or correct the name of the key"),
        ));
    }
    for (words, kind) in [
        ("references non-existent secret key: ", "Secret"),
        ("references non-existent config key: ", "ConfigMap"),
    ] {
        if let Some((before, key)) = message.split_once(words) {
            let key = key.trim();
            let volume = between(before, "volume \"", "\"").unwrap_or("its volume");
            return Some(named(
                Cause::MissingKey,
                format!("the {kind} of its volume {volume:?} has no key {key:?}"),
                format!("add the key {key:?} to the {kind}, or correct the volume's `items`"),
            ));
        }
    }
    None
}

/// `secret "x" not found`, `configmap "x" not found`, and the API server's form,
/// `secrets "x" not found`.
fn whole(message: &str) -> Option<(Explanation, WaitLimit)> {
    let lower = message.to_ascii_lowercase();
    let find = |words: &[&str]| {
        words.iter().find_map(|word| {
            let at = lower.find(&format!("{word} \""))?;
            let rest = message.get(at + word.len() + 2..)?;
            let (name, after) = rest.split_once('"')?;
            after.starts_with(" not found").then(|| name.to_owned())
        })
    };
    if let Some(name) = find(&["secret", "secrets"]) {
        return Some(named(
            Cause::MissingSecret,
            format!("the Secret {name:?} is missing"),
            format!("create it with `kubectl create secret generic {name} …`, or correct its name"),
        ));
    }
    if let Some(name) = find(&["configmap", "configmaps"]) {
        return Some(named(
            Cause::MissingConfigMap,
            format!("the ConfigMap {name:?} is missing"),
            format!("create it with `kubectl create configmap {name} …`, or correct its name"),
        ));
    }
    let name = find(&["persistentvolumeclaim"])?;
    Some(named(
        Cause::Volume,
        format!("the PersistentVolumeClaim {name:?} is missing"),
        "create the claim, or correct its name".to_owned(),
    ))
}

/// Explains why a container cannot be configured.
pub(super) fn config(message: &str) -> (Explanation, WaitLimit) {
    if let Some(found) = object(message) {
        return found;
    }
    if message.contains("runAsNonRoot") {
        return (
            Explanation::new(
                Cause::ContainerConfig,
                with_message("the container may not run as root", &short(message)),
                "use an image with a non-root user, or set `runAsUser`",
            ),
            WaitLimit::None,
        );
    }
    let explanation = Explanation::new(
        Cause::ContainerConfig,
        with_message("the container cannot be configured", &short(message)),
        "create what it refers to (a Secret, a ConfigMap), or correct the name",
    );
    (explanation, WaitLimit::seconds(10))
}
