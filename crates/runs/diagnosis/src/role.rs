//! The roles of a run.

use serde::{Deserialize, Serialize};

/// A role of an existing run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRole {
    /// The role's name.
    pub name: String,
    /// The number of tasks.
    pub count: u32,
    /// True if it is a service role, which is stopped when the others have ended.
    #[serde(default)]
    pub service: bool,
}
