//! The RuntimeClass admission plugin.

use longshore_builtin::json;
use longshore_model::KindInfo;
use serde_json::{Value, json};

use super::JsonObject;
use crate::{Error, Subject, state::State};

/// Sets the overhead and the scheduling constraints of a new pod from its
/// class.
///
/// # Errors
/// Fails if the class does not exist or the pod contradicts it (403).
pub(super) fn apply_to_pod(
    state: &State,
    info: &KindInfo,
    pod: &mut JsonObject,
) -> Result<(), Error> {
    let subject = Subject::new(info, json::text(pod, "metadata.name"));
    let forbidden = |reason: String| Error::Forbidden {
        subject: subject.clone(),
        reason,
        causes: Vec::new(),
    };
    let spec = json::child(pod, "spec");
    let named = json::text(spec, "runtimeClassName").to_owned();
    let class = if named.is_empty() {
        JsonObject::new()
    } else {
        let missing = || forbidden(format!("pod rejected: RuntimeClass {named:?} not found"));
        class(state, &named).ok_or_else(missing)?
    };
    let own = spec.get("overhead").and_then(Value::as_object);
    match json::at(&class, "overhead").filter(|overhead| overhead.is_object()) {
        Some(overhead) => {
            let fixed = overhead["podFixed"].as_object();
            if own.is_some_and(|own| !own.is_empty() && Some(own) != fixed) {
                let reason =
                    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
                return Err(forbidden(reason.to_owned()));
            }
            if let Some(fixed) = fixed {
                spec.insert("overhead".into(), fixed.clone().into());
            }
        }
        None if own.is_some() => {
            let reason = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
            return Err(forbidden(reason.to_owned()));
        }
        None => {}
    }
    schedule(&class, spec).map_err(forbidden)
}

fn class(state: &State, name: &str) -> Option<JsonObject> {
    let id = state.kinds.builtin_id("node.k8s.io", "RuntimeClass")?;
    let class = state.table(id).objects.get(name)?;
    Some(class.map())
}

/// Merges the node selector and the tolerations of a class into a pod.
fn schedule(class: &JsonObject, spec: &mut JsonObject) -> Result<(), String> {
    let wanted = json::at(class, "scheduling.nodeSelector").and_then(Value::as_object);
    for (key, value) in wanted.into_iter().flatten() {
        let selector = json::child(spec, "nodeSelector");
        let own = selector.get(key).filter(|own| *own != value);
        if let Some(own) = own {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                text(value),
                text(own)
            ));
        }
        selector.insert(key.clone(), value.clone());
    }
    let tolerations = json::at(class, "scheduling.tolerations").and_then(Value::as_array);
    for toleration in tolerations.into_iter().flatten() {
        let own = spec.entry("tolerations").or_insert_with(|| json!([]));
        if let Value::Array(own) = own
            && !own.contains(toleration)
        {
            own.push(toleration.clone());
        }
    }
    Ok(())
}
