//! The service account of new pods, as the admission plugin ServiceAccount of Kubernetes
//! checks it. The node publishes the account's token without a volume in the pod.

use longshore_builtin::json as js;
use longshore_model::{KindInfo, name};
use serde_json::Value;

use super::JsonObject;
use crate::{Error, Subject, object, state::State};

/// The account of pods that name none.
const DEFAULT: &str = "default";
/// The annotation of pods that a node created from a file.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The JSON text of an account with secrets for pulling images contains this.
const SECRETS: &[u8] = b"imagePullSecrets";

/// Few accounts name such secrets, so searching the JSON text is faster than decoding it.
fn names_secrets(json: &[u8]) -> bool {
    json.windows(SECRETS.len()).any(|window| window == SECRETS)
}

/// Requires the service account of a new pod, and adds its secrets for pulling images.
///
/// # Errors
/// Fails if the account does not exist (403).
pub(super) fn apply_to_pod(
    state: &State,
    info: &KindInfo,
    pod: &mut JsonObject,
) -> Result<(), Error> {
    if !state.creates_accounts {
        return Ok(());
    }
    let annotations = js::at(pod, "metadata.annotations").and_then(Value::as_object);
    if annotations.is_some_and(|all| all.contains_key(MIRROR)) {
        return Ok(());
    }
    let named = ["spec.serviceAccountName", "spec.serviceAccount"];
    let named = named.into_iter().map(|path| js::text(pod, path));
    let name = named.into_iter().find(|name| !name.is_empty());
    let name = name.unwrap_or(DEFAULT).to_owned();
    let namespace = js::text(pod, "metadata.namespace");
    let key = object::key(Some(namespace), &name);
    let kind = state.kinds.builtin_id("", "ServiceAccount");
    let account = kind.and_then(|kind| state.table(kind).objects.get(&*key));
    let Some(account) = account else {
        if name::dns_subdomain("service account", &name).is_err() {
            // Validation reports the invalid name, with all other problems.
            return Ok(());
        }
        return Err(Error::Forbidden {
            subject: Subject::new(info, js::text(pod, "metadata.name")),
            reason: format!(
                "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
            ),
            causes: Vec::new(),
        });
    };
    let own = js::at(pod, "spec.imagePullSecrets").and_then(Value::as_array);
    if own.is_none_or(Vec::is_empty)
        && names_secrets(account.bytes())
        && let Some(Value::Array(secrets)) = account.map().get("imagePullSecrets")
        && !secrets.is_empty()
    {
        let spec = js::child(pod, "spec");
        spec.insert("imagePullSecrets".into(), secrets.clone().into());
    }
    Ok(())
}
