//! What RuntimeClasses mean to new pods: admission's part, done by the server
//! itself.

use longshore_model::KindInfo;
use serde_json::{Value, json};

use super::Draftable;
use crate::{Error, Subject, json, state::State};

/// Gives a new pod the overhead and the scheduling of its class.
///
/// # Errors
/// When there is no such class, or the pod says otherwise than the class (403).
pub(super) fn of_pod(state: &State, info: &KindInfo, pod: &mut Draftable) -> Result<(), Error> {
    let subject = Subject::new(info, json::text(pod, "metadata.name"));
    let refused = |reason: String| Error::Forbidden {
        subject: subject.clone(),
        reason,
        causes: Vec::new(),
    };
    let spec = json::child(pod, "spec");
    let named = json::text(spec, "runtimeClassName").to_owned();
    let class = if named.is_empty() {
        Draftable::new()
    } else {
        let missing = || refused(format!("pod rejected: RuntimeClass {named:?} not found"));
        class(state, &named).ok_or_else(missing)?
    };
    let own = spec.get("overhead").and_then(Value::as_object);
    match json::at(&class, "overhead").filter(|overhead| overhead.is_object()) {
        Some(overhead) => {
            let fixed = overhead["podFixed"].as_object();
            if own.is_some_and(|own| !own.is_empty() && Some(own) != fixed) {
                let reason =
                    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
                return Err(refused(reason.to_owned()));
            }
            if let Some(fixed) = fixed {
                spec.insert("overhead".into(), fixed.clone().into());
            }
        }
        None if own.is_some() => {
            let reason = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
            return Err(refused(reason.to_owned()));
        }
        None => {}
    }
    schedule(&class, spec).map_err(refused)
}

fn class(state: &State, name: &str) -> Option<Draftable> {
    let id = state.kinds.builtin_id("node.k8s.io", "RuntimeClass")?;
    let class = state.table(id).objects.get(name)?;
    Some(class.map())
}

/// Adds the labels of nodes and the tolerations of a class.
fn schedule(class: &Draftable, spec: &mut Draftable) -> Result<(), String> {
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
