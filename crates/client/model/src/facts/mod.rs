//! The fields of pods and nodes that are read to find, follow and explain the tasks of a job.
//! Reading only these is several times faster than reading whole objects, which have
//! k8s-openapi's types in the crates that create or change them.
//!
//! Absent fields and `null` have their default: a text is empty, a list has no entries.
//! Unknown fields are ignored.
//!
//! ```
//! use longshore_model::facts::{PodFacts, Stage};
//! let pod: PodFacts = serde_json::from_str(
//!     r#"{"metadata": {"name": "web"}, "status": {"phase": "Running", "podIP": "10.0.0.7"}}"#,
//! )?;
//! assert_eq!(pod.stage(), Stage::Unready);
//! assert_eq!(pod.ips().collect::<Vec<_>>(), ["10.0.0.7"]);
//! # Ok::<_, serde_json::Error>(())
//! ```

mod condition;
mod node;
mod pod;
mod pod_spec;
mod pod_status;
mod resources;

pub use condition::Condition;
pub use node::{NodeFacts, NodeInfo, NodeSpec, NodeStatus, Taint};
pub use pod::{PodFacts, Stage};
pub use pod_spec::{Container, ContainerPort, LocalName, PodSpec, Toleration};
pub use pod_status::{
    ContainerState, ContainerStatus, Ip, PodStatus, Running, Terminated, Waiting,
};
pub use resources::{Quantities, ResourceNeeds, quantities, quantity};

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    /// Clients that convert objects themselves write `null` for absent fields.
    #[test]
    fn null_is_an_absent_field() {
        let null = Value::Null;
        let pod: PodFacts = serde_json::from_value(json!({
            "metadata": {"name": "web", "labels": null, "ownerReferences": null},
            "spec": {
                "hostname": null, "subdomain": null, "nodeName": null, "nodeSelector": null,
                "affinity": null, "tolerations": null, "volumes": null, "initContainers": null,
                "imagePullSecrets": null, "overhead": null, "priorityClassName": null,
                "containers": [{
                    "name": "main", "image": null, "command": null, "ports": null, "env": null,
                    "envFrom": null, "resources": {"limits": null, "requests": null},
                    "restartPolicy": null,
                }],
            },
            "status": {
                "phase": null, "podIP": null, "podIPs": null, "hostIP": null, "conditions": null,
                "containerStatuses": [{"name": "main", "state": null, "lastState": null}],
            },
        }))
        .unwrap();
        assert_eq!(pod.stage(), Stage::Pending);
        assert_eq!(pod.hostname(), "web");
        let node: NodeFacts = serde_json::from_value(json!({
            "spec": null, "status": {"conditions": null, "allocatable": null},
        }))
        .unwrap();
        assert!(!node.is_ready());
        assert!(serde_json::from_value::<PodFacts>(null).is_err());
    }
}
