//! The service account of new pods, checked and completed like by Kubernetes' admission plugin
//! ServiceAccount.

use std::sync::Arc;

use longshore_builtin::{MIRROR_POD, PodReferences, json as js};
use longshore_model::{KindInfo, name};
use serde::Deserialize as _;
use serde_json::Value;

use super::{JsonObject, token_volume};
use crate::{Error, Object, Subject, object, options::Ids, state::State};

/// The account of pods that do not name an account.
const DEFAULT: &str = "default";

const SECRETS: &str = "imagePullSecrets";
const AUTOMOUNT: &str = "automountServiceAccountToken";

/// Returns true if the JSON text of an account may contain a field. Few accounts have the fields
/// that pods inherit, so searching the text is faster than decoding it.
pub(super) fn may_have(json: &[u8], field: &str) -> bool {
    let mut windows = json.windows(field.len());
    windows.any(|window| window == field.as_bytes())
}

/// The service account of a pod.
pub(super) fn of_pod<'a>(state: &'a State, pod: &JsonObject) -> Option<&'a Arc<Object>> {
    let key = object::key(Some(js::text(pod, "metadata.namespace")), name_of(pod));
    let kind = state.kinds.builtin_id("", "ServiceAccount")?;
    state.table(kind).objects.get(&*key)
}

/// The name of the service account of a pod.
fn name_of(pod: &JsonObject) -> &str {
    let named = ["spec.serviceAccountName", "spec.serviceAccount"];
    let mut named = named.into_iter().map(|path| js::text(pod, path));
    named.find(|name| !name.is_empty()).unwrap_or(DEFAULT)
}

/// Requires the service account of a new pod, and adds the volume with its token and its secrets
/// for pulling images.
///
/// # Errors
/// Fails if the account does not exist, or if a mirror pod refers to an account or to Secrets
/// (403).
pub(super) fn apply_to_pod(
    state: &State,
    info: &KindInfo,
    ids: &dyn Ids,
    pod: &mut JsonObject,
) -> Result<(), Error> {
    if !state.creates_accounts {
        return Ok(());
    }
    let annotations = js::at(pod, "metadata.annotations").and_then(Value::as_object);
    if annotations.is_some_and(|all| all.contains_key(MIRROR_POD)) {
        return check_mirror_pod(info, pod);
    }
    let name = name_of(pod);
    let namespace = js::text(pod, "metadata.namespace");
    let Some(account) = of_pod(state, pod) else {
        if name::dns_subdomain("service account", name).is_err() {
            // Validation reports the invalid name, with all other problems.
            return Ok(());
        }
        let reason = format!(
            "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
        );
        return Err(forbidden(info, pod, reason));
    };
    let automounts = || match may_have(account.bytes(), AUTOMOUNT) {
        true => account.map().get(AUTOMOUNT).and_then(Value::as_bool),
        false => None,
    };
    if token_volume::is_wanted(pod, automounts) {
        token_volume::add(pod, || ids.suffix());
    }
    let own = js::at(pod, "spec.imagePullSecrets").and_then(Value::as_array);
    if own.is_none_or(Vec::is_empty)
        && may_have(account.bytes(), SECRETS)
        && let Some(Value::Array(secrets)) = account.map().get(SECRETS)
        && !secrets.is_empty()
    {
        let spec = js::child(pod, "spec");
        spec.insert("imagePullSecrets".into(), secrets.clone().into());
    }
    Ok(())
}

/// Refuses a mirror pod that uses a service account or Secrets, because the node that creates it
/// would get access to them. Other mirror pods stay unchanged.
fn check_mirror_pod(info: &KindInfo, pod: &JsonObject) -> Result<(), Error> {
    let value = Value::Object(pod.clone());
    let Ok(references) = PodReferences::deserialize(&value) else {
        // Validation reports it.
        return Ok(());
    };
    let has_account = !references.service_account().is_empty()
        // The deprecated name of the field.
        || !js::text(pod, "spec.serviceAccount").is_empty();
    let has_token = |source: &Value| {
        let token = source.get("serviceAccountToken");
        token.is_some_and(|token| !token.is_null())
    };
    let reason = if has_account {
        "a mirror pod may not reference service accounts"
    } else if references.secrets().next().is_some() {
        "a mirror pod may not reference secrets"
    } else if references.projected_sources().any(has_token) {
        "a mirror pod may not use ServiceAccountToken volume projections"
    } else {
        return Ok(());
    };
    Err(forbidden(info, pod, reason.to_owned()))
}

fn forbidden(info: &KindInfo, pod: &JsonObject, reason: String) -> Error {
    let name = match js::text(pod, "metadata.name") {
        "" => js::text(pod, "metadata.generateName"),
        name => name,
    };
    Error::Forbidden {
        subject: Subject::new(info, name),
        reason,
        causes: Vec::new(),
    }
}
