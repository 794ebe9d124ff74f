//! Explains the state of a run from the objects of the cluster. Pure: callers query the cluster.
//!
//! - [`names`]: names, labels, annotations and paths of a run. [`escape`]: text that
//!   Kubernetes would expand.
//! - [`usage`]: the resource usage of a task, in its termination message.
//! - [`evidence`]: the fields of objects that an explanation needs, parsed from JSON.
//! - [`fit`]: checks that a node could ever run a task, and that tasks fit the nodes now.
//! - [`explain`]: explains why a task does not start, or failed: one cause and one remedy.
//! - [`outcome`], [`progress`] and [`role`]: the end of a run, its progress, and its roles.
//! - [`track`]: the state machine that derives them from the evidence.
//!
//! A module imports only from those before it.
//!
//! ```
//! use longshore_diagnosis::explain::{Cause, ClusterEvidence, failure};
//! use longshore_model::facts::PodFacts;
//!
//! let pod: PodFacts = serde_json::from_value(serde_json::json!({
//!     "metadata": {"name": "digits-worker-0"},
//!     "status": {"phase": "Failed", "containerStatuses": [
//!         {"name": "main", "state": {"terminated": {"exitCode": 3}}},
//!     ]},
//! }))?;
//! let (why, _) = failure(&pod, None, &ClusterEvidence::default());
//! assert_eq!(why.kind, Cause::ExitCode);
//! assert_eq!(why.cause, "its command ended with exit code 3");
//! # Ok::<(), serde_json::Error>(())
//! ```

pub mod escape;
pub mod evidence;
pub mod explain;
pub mod fit;
pub mod names;
pub mod outcome;
pub mod progress;
pub mod role;
pub mod start_problem;
pub mod track;
pub mod usage;
