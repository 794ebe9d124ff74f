//! The fields of pods and nodes that are read to find, follow and explain the tasks of a job.
//! Reading only these is several times faster than reading whole objects, which have
//! k8s-openapi's types in the crates that create or change them.
//!
//! Absent fields have their default: a text is empty, a list has no entries. Unknown fields
//! are ignored.
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
