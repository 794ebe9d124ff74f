//! Binding: assigns a pod to a node.

use longshore_builtin::{cause::Cause, json as js};
use longshore_model::{name, time};
use serde_json::{Value, json};

use super::{Transaction, namespace, replace, topology_labels};
use crate::{Bind, Error, Subject, object};

/// Sets the node name and the condition `PodScheduled`, and removes the nomination of a node.
pub(crate) fn bind(tx: &mut Transaction<'_>, request: &Bind) -> Result<(), Error> {
    let kind = tx
        .kinds()
        .builtin_id("", "Pod")
        .ok_or_else(|| Error::Internal("pods are not served".into()))?;
    let info = tx.kinds().entry(kind).info.clone();
    let subject = Subject::new(&info, &request.name);
    namespace::check(tx.state(), &info, &request.namespace, &request.name)?;
    let invalid = match name::dns_subdomain("node", &request.node) {
        _ if request.node.is_empty() => Some(Cause::required("target.name", "")),
        Ok(()) => None,
        Err(error) => Some(Cause::invalid(
            "target.name",
            &*request.node,
            &error.to_string(),
        )),
    };
    if let Some(cause) = invalid {
        let causes = vec![cause];
        let subject = Subject {
            kind: "Binding".into(),
            ..subject
        };
        return Err(Error::Invalid { subject, causes });
    }
    let old = tx
        .get(kind, &object::key(Some(&request.namespace), &request.name))
        .cloned()
        .ok_or_else(|| Error::NotFound(subject.clone()))?;
    let conflict = |reason| {
        Err(Error::Conflict {
            subject: subject.clone().subresource("binding"),
            reason,
        })
    };
    if let Some(uid) = request
        .uid
        .as_deref()
        .filter(|uid| !uid.is_empty() && *uid != old.uid())
    {
        return conflict(format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            old.uid()
        ));
    }
    let expected = request.version.as_deref();
    let version = old.revision().to_string();
    if let Some(expected) = expected.filter(|expected| *expected != version) {
        return conflict(format!(
            "Precondition failed: ResourceVersion in precondition: {expected}, ResourceVersion in object meta: {version}"
        ));
    }
    let before = old.map();
    let name = &request.name;
    if js::at(&before, "metadata.deletionTimestamp").is_some() {
        return conflict(format!(
            "pod {name} is being deleted, cannot be assigned to a host"
        ));
    }
    let node = js::text(&before, "spec.nodeName");
    if !node.is_empty() {
        return conflict(format!("pod {name} is already assigned to node {node:?}"));
    }
    let gates = js::at(&before, "spec.schedulingGates").and_then(Value::as_array);
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return conflict(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    let mut pod = before.clone();
    js::child(&mut pod, "spec").insert("nodeName".into(), request.node.clone().into());
    for (field, added) in [
        ("annotations", &request.annotations),
        ("labels", &request.labels),
    ] {
        if !added.is_empty() {
            let added = added.iter();
            let added = added.map(|(key, value)| (key.clone(), value.clone().into()));
            js::child(js::child(&mut pod, "metadata"), field).extend(added);
        }
    }
    topology_labels::apply_to_pod(tx.state(), &mut pod);
    let status = js::child(&mut pod, "status");
    status.remove("nominatedNodeName");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Value::Array(conditions) = conditions {
        conditions.retain(|condition| condition["type"] != "PodScheduled");
        conditions.push(json!({
            "type": "PodScheduled", "status": "True",
            "lastProbeTime": null, "lastTransitionTime": time::seconds(tx.now),
        }));
    }
    replace::store(tx, kind, &old, &before, &pod).map(drop)
}
