//! Binding: assigns a pod to a node.

use longshore_builtin::{cause::Cause, json as js};
use longshore_model::time;
use serde_json::{Value, json};

use super::{Transaction, replace};
use crate::{Bind, Error, Subject, object};

/// Sets the node name and the condition `PodScheduled`. The node is no longer only nominated.
pub(crate) fn bind(tx: &mut Transaction<'_>, request: &Bind) -> Result<(), Error> {
    let kind = tx
        .kinds()
        .builtin_id("", "Pod")
        .ok_or_else(|| Error::Internal("pods are not served".into()))?;
    let subject = Subject::new(&tx.kinds().entry(kind).info, &request.name);
    if request.node.is_empty() {
        let causes = vec![Cause::required("target.name", "")];
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
    let mut pod = before.clone();
    js::child(&mut pod, "spec").insert("nodeName".into(), request.node.clone().into());
    if !request.annotations.is_empty() {
        let annotations = js::child(js::child(&mut pod, "metadata"), "annotations");
        for (key, value) in &request.annotations {
            annotations.insert(key.clone(), value.clone().into());
        }
    }
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
