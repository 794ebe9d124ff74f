//! Restarts: the values that a run's configuration, its plan and its pods share.

use std::fmt;

use rand::RngExt as _;
use serde::{Deserialize, Serialize};

/// The settings of restarts for the pods of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodRestarts {
    /// The settings for restarting all tasks together, if a failed task restarts all tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub together: Option<Together>,
    /// The time limit of each attempt of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_limit: Option<TaskLimit>,
    /// The folder of all checkpoints, on a volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_dir: Option<String>,
}

impl PodRestarts {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The settings for tasks that restart together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Together {
    /// The port on which the first task waits for the others.
    pub port: u16,
    /// The key with which the tasks recognize each other.
    pub key: RunKey,
    /// The maximum time that a task waits for the others, in seconds.
    pub timeout: u64,
}

/// The time limit of each attempt of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLimit {
    /// The limit in seconds.
    pub seconds: u64,
    /// The time between the warning signal and the limit, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<u64>,
    /// The signal.
    pub signal: WarningSignal,
}

/// The signals that can warn of a time limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum WarningSignal {
    Hup,
    Int,
    Quit,
    Term,
    #[default]
    Usr1,
    Usr2,
}

impl WarningSignal {
    /// The signals with their names.
    pub const ALL: [(&'static str, Self); 6] = [
        ("HUP", Self::Hup),
        ("INT", Self::Int),
        ("QUIT", Self::Quit),
        ("TERM", Self::Term),
        ("USR1", Self::Usr1),
        ("USR2", Self::Usr2),
    ];

    /// The name without `SIG`.
    #[must_use]
    pub fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(_, signal)| *signal == self)
            .map_or("", |(name, _)| name)
    }

    /// The signal with a name, with or without `SIG`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let mut all = Self::ALL.iter();
        all.find(|(known, _)| *known == name)
            .map(|(_, signal)| *signal)
    }
}

/// A random key that only the tasks of a run know: 32 bytes in hexadecimal. It is not shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunKey(String);

impl RunKey {
    /// Creates a key.
    #[must_use]
    pub fn random() -> Self {
        let mut random = rand::rng();
        let bytes: [u8; 32] = random.random();
        Self(crate::bundle::hexadecimal(&bytes))
    }

    /// The bytes of the key's text.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunKey")
    }
}
