//! Service accounts that limit the Secrets of their pods. Kubernetes' admission plugin
//! ServiceAccount enforces the same rules.

use longshore_builtin::{MIRROR_POD, json as js};
use longshore_model::KindInfo;
use serde_json::Value;

use super::{JsonObject, service_account};
use crate::{Error, Object, Subject, state::State};

/// Annotation of accounts whose pods may use only the Secrets that the account lists.
const ENFORCED: &str = "kubernetes.io/enforce-mountable-secrets";
/// The lists of containers of a new pod, with their names in messages.
const LISTS: [(&str, &str); 2] = [
    ("initContainers", "init container"),
    ("containers", "container"),
];

/// Checks a new pod, and new ephemeral containers of a pod (403).
pub(super) fn check(
    state: &State,
    info: &KindInfo,
    pod: &JsonObject,
    before: Option<&JsonObject>,
) -> Result<(), Error> {
    if !info.gvk.group.is_empty() || info.gvk.kind != "Pod" || !state.creates_accounts {
        return Ok(());
    }
    let ephemeral = [("ephemeralContainers", "ephemeral container")];
    let is_same = |before: &JsonObject| {
        let path = "spec.ephemeralContainers";
        js::at(before, path) == js::at(pod, path)
    };
    let annotations = js::at(pod, "metadata.annotations").and_then(Value::as_object);
    if before.is_some_and(is_same) || annotations.is_some_and(|all| all.contains_key(MIRROR_POD)) {
        return Ok(());
    }
    let account = service_account::of_pod(state, pod).filter(|account| is_enforced(account));
    let Some(account) = account else {
        return Ok(());
    };
    let lists = match before {
        None => &LISTS[..],
        Some(_) => &ephemeral[..],
    };
    let spec = pod.get("spec").and_then(Value::as_object);
    let refused =
        spec.and_then(|spec| refused_secret(spec, lists, &account.map(), before.is_none()));
    refused.map_or(Ok(()), |refused| {
        let account = account.name();
        let kind = match refused.starts_with("imagePullSecrets") {
            true => "imagePullSecret",
            false => "secret",
        };
        Err(Error::Forbidden {
            subject: Subject::new(info, js::text(pod, "metadata.name")),
            reason: format!(
                "{refused} is not allowed because service account {account} does not reference that {kind}"
            ),
            causes: Vec::new(),
        })
    })
}

fn is_enforced(account: &Object) -> bool {
    let may_have = service_account::may_have(account.bytes(), ENFORCED);
    may_have && {
        let account = account.map();
        let annotations = js::at(&account, "metadata.annotations");
        let value = annotations.and_then(|all| all.get(ENFORCED)?.as_str());
        // The strings that Go parses as true.
        matches!(value, Some("1" | "t" | "T" | "true" | "TRUE" | "True"))
    }
}

/// Describes the first reference to a Secret that the account does not list.
fn refused_secret(
    spec: &JsonObject,
    lists: &[(&str, &str)],
    account: &JsonObject,
    is_new: bool,
) -> Option<String> {
    let names = |list| js::items(account, list).map(|secret| js::text(secret, "name"));
    let is_refused = |name: &str| names("secrets").all(|known| known != name);
    if is_new {
        let volumes = js::items(spec, "volumes");
        let mut secrets = volumes.filter(|volume| volume.contains_key("secret"));
        let secret = secrets.find_map(|volume| {
            let name = js::text(volume, "secret.secretName");
            is_refused(name).then_some(name)
        });
        if let Some(name) = secret {
            return Some(format!("volume with secret.secretName=\"{name}\""));
        }
    }
    for (list, word) in lists {
        for container in js::items(spec, list) {
            if let Some(reference) = refused_reference(container, &is_refused) {
                let container = js::text(container, "name");
                return Some(format!("{word} {container} with {reference}"));
            }
        }
    }
    let pulled = js::items(spec, "imagePullSecrets").map(|secret| js::text(secret, "name"));
    let mut pulled = pulled.enumerate().filter(|_| is_new);
    let refused = pulled.find(|(_, name)| names("imagePullSecrets").all(|known| known != *name));
    refused.map(|(at, name)| format!("imagePullSecrets[{at}].name=\"{name}\""))
}

/// Describes the first variable of a container whose Secret is refused.
fn refused_reference(container: &JsonObject, is_refused: &impl Fn(&str) -> bool) -> Option<String> {
    for variable in js::items(container, "env") {
        if js::at(variable, "valueFrom.secretKeyRef").is_none() {
            continue;
        }
        let name = js::text(variable, "valueFrom.secretKeyRef.name");
        if is_refused(name) {
            let variable = js::text(variable, "name");
            return Some(format!(
                "envVar {variable} referencing secret.secretName=\"{name}\""
            ));
        }
    }
    let sources = js::items(container, "envFrom");
    let mut sources = sources.filter(|source| source.contains_key("secretRef"));
    let refused = sources.find_map(|source| {
        let name = js::text(source, "secretRef.name");
        is_refused(name).then_some(name)
    });
    refused.map(|name| format!("envFrom referencing secret.secretName=\"{name}\""))
}
