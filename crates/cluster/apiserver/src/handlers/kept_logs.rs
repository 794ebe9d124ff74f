//! The logs of deleted pods, which nodes keep until the Job that controlled the pod is removed.
//! Kubernetes does not have this feature.
//!
//! `GET /api/v1/namespaces/{namespace}/pods/{name}/log?uid={uid}` reads the log of the pod with
//! this uid, even if the pod was deleted, or another pod has its name. Other servers ignore `uid`.
//! `GET /api/v1/namespaces/{namespace}/pods/*/log` lists the logs of the pods of Jobs, optionally
//! with a `labelSelector`. On other servers no pod has this name. Both need the permission for
//! `get` of `pods/log`, because authorization depends only on the form of a path.

use http::StatusCode;
use longshore_engine::Target;
use longshore_model::{ObjectMeta, meta::OwnerReference};
use longshore_node_api::{LogOwner, PodLogs};
use serde_json::{Value, json};

use crate::{
    call::Call,
    params::Selection,
    reply::{self, Reply},
    status_error::StatusError,
};

/// The name of the path that lists logs. No pod can have it.
pub(super) const ALL: &str = "*";

/// Lists the logs of the pods of Jobs in a namespace. `missing` is the response if no node keeps
/// logs of deleted pods.
pub(super) async fn list(call: Call, target: &Target, missing: StatusError) -> Reply {
    let selection = Selection::parse(&call.query)?;
    let namespace = target.namespace.as_deref().unwrap_or_default();
    let listing = call.shared.node_logs.list(namespace);
    let mut found = listing.await.ok_or(missing)?;
    found.retain(|pod| selection.labels.matches(&pod.labels));
    found.sort_by(|a, b| (a.created, &a.pod, &a.uid).cmp(&(b.created, &b.pod, &b.uid)));
    let document = json!({
        "kind": "PodLogsList",
        "apiVersion": "longshore.dev/v1",
        "items": found.into_iter().map(item).collect::<Vec<Value>>(),
    });
    Ok(reply::value(StatusCode::OK, &document))
}

/// The pod's metadata, with its logs.
fn item(pod: PodLogs) -> Value {
    let reference = |owner: LogOwner| OwnerReference {
        api_version: owner.api_version,
        kind: owner.kind,
        name: owner.name,
        uid: owner.uid,
        controller: Some(true),
        ..OwnerReference::default()
    };
    let instance = |log: &longshore_node_api::InstanceLog| json!({"restart": log.restart, "isCut": log.is_cut});
    let containers = pod.containers.iter().map(|container| {
        let instances: Vec<Value> = container.instances.iter().map(instance).collect();
        json!({"name": container.name, "instances": instances})
    });
    let mut item = json!({
        "owner": reference(pod.owner),
        "containers": containers.collect::<Vec<Value>>(),
    });
    item["metadata"] = json!(ObjectMeta {
        name: pod.pod,
        namespace: Some(pod.namespace),
        uid: pod.uid,
        creation_timestamp: pod.created,
        labels: pod.labels,
        annotations: pod.annotations,
        owner_references: vec![reference(pod.controller)],
        ..ObjectMeta::default()
    });
    if let Some(deleted) = pod.deleted {
        item["deleted"] = json!(deleted);
    }
    if let Some(removed) = pod.removed {
        item["removed"] = json!(removed);
    }
    item
}

#[cfg(test)]
mod tests {
    use longshore_node_api::{ContainerLogs, InstanceLog};

    use super::*;

    #[test]
    fn an_item_has_the_pod_and_its_logs() {
        let owner = LogOwner {
            api_version: "batch/v1".to_owned(),
            kind: "Job".to_owned(),
            name: "train".to_owned(),
            uid: "j".to_owned(),
        };
        let logs = ContainerLogs {
            name: "main".to_owned(),
            instances: vec![InstanceLog {
                restart: 1,
                is_cut: true,
            }],
        };
        let mut pod = PodLogs {
            namespace: "team".to_owned(),
            pod: "train-0".to_owned(),
            uid: "u".to_owned(),
            controller: owner.clone(),
            owner,
            containers: vec![logs],
            ..PodLogs::default()
        };
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j",
            "controller": true,
        });
        let mut expected = json!({
            "metadata": {
                "name": "train-0", "namespace": "team", "uid": "u", "ownerReferences": [job],
            },
            "owner": job,
            "containers": [{"name": "main", "instances": [{"restart": 1, "isCut": true}]}],
        });
        assert_eq!(item(pod.clone()), expected);
        pod.deleted = Some(jiff::Timestamp::UNIX_EPOCH);
        pod.removed = Some("why".to_owned());
        expected["deleted"] = json!("1970-01-01T00:00:00Z");
        expected["removed"] = json!("why");
        assert_eq!(item(pod), expected);
    }
}
