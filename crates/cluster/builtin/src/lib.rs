//! Rules of the built-in kinds: one table with one entry ([`KindRules`]) per kind. The entry names
//! the functions that default, validate and print the kind's objects, and says how they are named,
//! updated and deleted.
//!
//! The crate contains only pure functions of JSON objects: it has no stored objects, no clock and
//! no HTTP. The engine calls the functions when it writes objects. Rules that depend on other
//! objects of the cluster ([`Admission`], [`Lifecycle`]) are named here and implemented by the
//! engine.
//!
//! ```
//! use longshore_builtin::{find, validate};
//!
//! let job = longshore_model::kind::builtin("batch", "Job").unwrap();
//! let rules = find("batch", "Job").unwrap();
//! let object = serde_json::json!({"metadata": {"name": "A"}, "spec": {"parallelism": -1}});
//! let causes = validate::object(job, rules, object.as_object().unwrap());
//! assert!(causes.iter().any(|cause| cause.field == "metadata.name"));
//! assert!(causes.iter().any(|cause| cause.field == "spec.parallelism"));
//! ```

mod behaviour;
pub mod cause;
pub mod defaults;
pub mod definition;
pub mod json;
mod kinds;
mod pod_references;
pub mod pod_security;
mod rules;
pub mod selectable;
pub mod table;
pub mod validate;

/// The annotation of mirror pods: copies of pods that a node runs from a file.
pub const MIRROR_POD: &str = "kubernetes.io/config.mirror";

pub use behaviour::Behaviour;
pub use kinds::{all, find, find_served};
pub use pod_references::PodReferences;
pub use rules::{
    Admission, CUSTOM, Generation, KindRules, Lifecycle, NameRule, OtherVersion, PLAIN,
    PodSelector, SentStatus,
};
