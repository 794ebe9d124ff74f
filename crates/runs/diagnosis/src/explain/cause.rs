//! The kinds of causes, whose names are stable.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// The kind of a cause.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Cause {
            $($(#[$doc])* $name,)*
            /// The cause is unknown.
            #[serde(other)]
            Unknown,
        }

        impl Cause {
            /// All causes, in the order of docs/why.md.
            pub const ALL: &[Self] = &[$(Self::$name,)* Self::Unknown];

            /// The name in JSON.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                    Self::Unknown => "unknown",
                }
            }
        }
    };
}

causes! {
    /// The nodes have too little of a resource.
    InsufficientResource = "insufficient-resource",
    /// No node has enough of a resource, even when empty.
    NeverFits = "never-fits",
    /// Nodes have taints that the task does not tolerate.
    Taint = "taint",
    /// No node has the labels that the task selects nodes by.
    NodeSelector = "node-selector",
    /// A PersistentVolumeClaim is missing, unbound or in another location.
    Volume = "volume",
    /// The nodes have reached their limit of pods.
    TooManyPods = "too-many-pods",
    /// The cluster has no nodes, or no node is ready.
    NoNodes = "no-nodes",
    /// The pod has scheduling gates.
    Gated = "gated",
    /// No node can run the task, for another reason.
    Unschedulable = "unschedulable",
    /// The selected node rejected the pod.
    RefusedByNode = "refused-by-node",

    /// The registry does not have the image.
    ImageNotFound = "image-not-found",
    /// The registry requires credentials.
    ImageUnauthorized = "image-unauthorized",
    /// The registry does not answer.
    RegistryUnreachable = "registry-unreachable",
    /// The registry's rate limit is reached.
    RegistryLimit = "registry-limit",
    /// The image name is invalid.
    ImageName = "image-name",
    /// The image is not on the node, and the pull policy forbids pulling it.
    ImageNeverPulled = "image-never-pulled",
    /// The image cannot be pulled, for another reason.
    ImagePull = "image-pull",

    /// A ConfigMap is missing.
    MissingConfigMap = "missing-config-map",
    /// A Secret is missing.
    MissingSecret = "missing-secret",
    /// A ConfigMap or Secret lacks a key.
    MissingKey = "missing-key",
    /// The container cannot be configured, for another reason.
    ContainerConfig = "container-config",
    /// A volume cannot be mounted.
    Mount = "mount",
    /// A volume cannot be attached to the node.
    Attach = "attach",
    /// The node cannot create the pod's sandbox.
    Sandbox = "sandbox",

    /// The command does not exist.
    CommandNotFound = "command-not-found",
    /// The command is not executable.
    NotExecutable = "not-executable",
    /// The program is built for another architecture.
    WrongArchitecture = "wrong-architecture",
    /// The image does not contain the program `longshore`.
    LauncherMissing = "launcher-missing",
    /// The container cannot be started, for another reason.
    ContainerStart = "container-start",
    /// An init container failed.
    InitFailed = "init-failed",
    /// A task has not started in time, for an unknown reason.
    SlowStart = "slow-start",

    /// The command ended with an exit code.
    ExitCode = "exit-code",
    /// The command could not bind its port, because another program uses it.
    AddressInUse = "address-in-use",
    /// A signal terminated the command.
    Signal = "signal",
    /// The task exceeded its memory limit.
    OutOfMemory = "out-of-memory",
    /// The GPUs of the task were idle for longer than `idle_timeout`.
    IdleGpu = "idle-gpu",
    /// The node evicted the pod.
    Evicted = "evicted",
    /// The run exceeded its timeout.
    Deadline = "deadline",
    /// Tasks failed too often, and no pod is left to show the cause.
    BackoffLimit = "backoff-limit",
    /// The Job's pod failure policy ended it.
    FailurePolicy = "failure-policy",

    /// A quota is exceeded.
    Quota = "quota",
    /// A LimitRange rejects the pods.
    LimitRange = "limit-range",
    /// A policy or webhook rejects the pods.
    AdmissionRefused = "admission-refused",
    /// The service account is missing.
    MissingServiceAccount = "missing-service-account",
    /// The priority class is missing.
    MissingPriorityClass = "missing-priority-class",
    /// The runtime class is missing.
    MissingRuntimeClass = "missing-runtime-class",
    /// The cluster does not support the kind of an object.
    MissingKind = "missing-kind",
    /// The queue is missing.
    MissingQueue = "missing-queue",
    /// The cluster rejects the pods, for another reason.
    PodsRefused = "pods-refused",
    /// No pods were created, for an unknown reason.
    NoPods = "no-pods",

    /// The node was lost.
    NodeLost = "node-lost",
    /// The node shut down.
    NodeShutdown = "node-shutdown",
    /// A pod of higher priority preempted the pod.
    Preempted = "preempted",
    /// The pod was evicted through the API, as by a drain.
    Drained = "drained",
    /// The pod was deleted.
    Deleted = "deleted",

    /// The cluster was stopped while the run was in progress.
    ClusterStopped = "cluster-stopped",
    /// The cluster does not answer.
    ClusterAway = "cluster-away",
    /// The namespace is missing or being deleted.
    Namespace = "namespace",
    /// The user lacks permissions.
    Rights = "rights",
    /// The server is too old for a run.
    ServerTooOld = "server-too-old",

    /// The run was cancelled.
    Cancelled = "cancelled",
    /// A queue has not admitted the run.
    Queued = "queued",
    /// The Job is suspended.
    Suspended = "suspended",
}

impl Cause {
    /// The representative of causes that alternate for the same problem: a missing image is
    /// reported as not found, and then as backed off.
    #[must_use]
    pub fn family(self) -> Self {
        match self {
            Self::ImageNotFound
            | Self::ImageUnauthorized
            | Self::RegistryUnreachable
            | Self::RegistryLimit => Self::ImagePull,
            Self::InsufficientResource
            | Self::NeverFits
            | Self::Taint
            | Self::NodeSelector
            | Self::Volume
            | Self::TooManyPods
            | Self::NoNodes => Self::Unschedulable,
            other => other,
        }
    }

    /// Returns true if the cause is less specific than the others of its family.
    pub(crate) fn is_general(self) -> bool {
        matches!(self, Self::ImagePull | Self::Unschedulable)
    }

    /// Returns true if the wait is intended and not a failure of the run.
    pub(crate) fn is_meant(self) -> bool {
        matches!(
            self,
            Self::Suspended | Self::Queued | Self::Cancelled | Self::Gated
        )
    }

    /// Returns true if a pod's status alone explains the cause.
    #[must_use]
    pub fn is_plain(self) -> bool {
        matches!(
            self,
            Self::ExitCode
                | Self::CommandNotFound
                | Self::NotExecutable
                | Self::WrongArchitecture
                | Self::LauncherMissing
                | Self::InitFailed
                | Self::OutOfMemory
                | Self::IdleGpu
                | Self::Evicted
                | Self::Deadline
        )
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_json() {
        for cause in Cause::ALL {
            let json = serde_json::to_value(cause).ok();
            assert_eq!(json, Some(cause.as_str().into()));
        }
        let read: Result<Cause, _> = serde_json::from_str("\"of-tomorrow\"");
        assert_eq!(read.ok(), Some(Cause::Unknown));
    }

    #[test]
    fn each_cause_is_documented() {
        let guide = include_str!("../../../../../docs/why.md");
        for cause in Cause::ALL {
            assert!(guide.contains(&format!("`{cause}`")), "{cause}");
        }
    }
}
