//! The sorts of causes, each a word that stays the same.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// What sort of cause it is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Cause {
            $($(#[$doc])* $name,)*
            /// One that this version does not know.
            #[serde(other)]
            Unknown,
        }

        impl Cause {
            /// All of them, in the order of docs/why.md.
            pub const ALL: &[Self] = &[$(Self::$name,)* Self::Unknown];

            /// The word, as in JSON.
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
    /// No node, even an empty one, has enough of a resource.
    NeverFits = "never-fits",
    /// Nodes have taints that the task does not tolerate.
    Taint = "taint",
    /// No node has the labels that the task selects nodes by.
    NodeSelector = "node-selector",
    /// A claim to storage is missing, unbound or elsewhere.
    Volume = "volume",
    /// The nodes run as many pods as they may.
    TooManyPods = "too-many-pods",
    /// No node is there, or none is ready.
    NoNodes = "no-nodes",
    /// The scheduler waits for something else to let the pod go.
    Gated = "gated",
    /// No node can take the task, for another reason.
    Unschedulable = "unschedulable",
    /// The node that was chosen would not have the pod.
    RefusedByNode = "refused-by-node",

    /// The registry has no such image.
    ImageNotFound = "image-not-found",
    /// The registry wants credentials.
    ImageUnauthorized = "image-unauthorized",
    /// The registry does not answer.
    RegistryUnreachable = "registry-unreachable",
    /// The registry lets nobody pull for now.
    RegistryLimit = "registry-limit",
    /// The image's name cannot be read.
    ImageName = "image-name",
    /// The image is not on the node and may not be pulled.
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
    /// The node cannot make the pod's sandbox.
    Sandbox = "sandbox",

    /// The command is not there.
    CommandNotFound = "command-not-found",
    /// The command may not be executed.
    NotExecutable = "not-executable",
    /// The program is built for another sort of processor.
    WrongArchitecture = "wrong-architecture",
    /// The image lacks the program `longshore`.
    LauncherMissing = "launcher-missing",
    /// The container cannot be started, for another reason.
    ContainerStart = "container-start",
    /// What prepares the pod failed: an init container.
    InitFailed = "init-failed",
    /// A task has not started in time, and nothing says why.
    SlowStart = "slow-start",

    /// The command ended with an exit code.
    ExitCode = "exit-code",
    /// The command could not bind its port, which another program has.
    AddressInUse = "address-in-use",
    /// The command was ended by a signal.
    Signal = "signal",
    /// It had more memory than it may.
    OutOfMemory = "out-of-memory",
    /// The node evicted the pod.
    Evicted = "evicted",
    /// The run took longer than it may.
    Deadline = "deadline",
    /// Tasks failed too often, and no pod is left that tells why.
    BackoffLimit = "backoff-limit",
    /// A rule of the Job about failures ended it.
    FailurePolicy = "failure-policy",

    /// A quota leaves no room.
    Quota = "quota",
    /// A LimitRange refuses the pods.
    LimitRange = "limit-range",
    /// A policy or a webhook refuses the pods.
    AdmissionRefused = "admission-refused",
    /// The service account is missing.
    MissingServiceAccount = "missing-service-account",
    /// The priority class is missing.
    MissingPriorityClass = "missing-priority-class",
    /// The runtime class is missing.
    MissingRuntimeClass = "missing-runtime-class",
    /// The cluster does not know the kind of an object.
    MissingKind = "missing-kind",
    /// The queue is missing.
    MissingQueue = "missing-queue",
    /// The cluster refuses the pods, for another reason.
    PodsRefused = "pods-refused",
    /// No pods were made, and nothing says why.
    NoPods = "no-pods",

    /// The node was lost.
    NodeLost = "node-lost",
    /// The node shut down.
    NodeShutdown = "node-shutdown",
    /// A more important pod took the place.
    Preempted = "preempted",
    /// The pod was evicted by a request, as a drain makes them.
    Drained = "drained",
    /// Somebody deleted the pod.
    Deleted = "deleted",

    /// The cluster was stopped while the run was in progress.
    ClusterStopped = "cluster-stopped",
    /// The cluster does not answer.
    ClusterAway = "cluster-away",
    /// The namespace is missing, or going away.
    Namespace = "namespace",
    /// The user lacks rights.
    Rights = "rights",
    /// The server is older than what a run needs.
    ServerTooOld = "server-too-old",

    /// The run was cancelled.
    Cancelled = "cancelled",
    /// A queue holds the run back.
    Queued = "queued",
    /// The Job is suspended.
    Suspended = "suspended",
}

impl Cause {
    /// The cause that stands for all that are told of the same trouble: one
    /// and the same image is now not found, now backed off from.
    pub(crate) fn family(self) -> Self {
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

    /// Whether it says less than the others of its family.
    pub(crate) fn is_general(self) -> bool {
        matches!(self, Self::ImagePull | Self::Unschedulable)
    }

    /// Whether somebody wants the wait: no failure of the run.
    pub(crate) fn is_meant(self) -> bool {
        matches!(
            self,
            Self::Suspended | Self::Queued | Self::Cancelled | Self::Gated
        )
    }

    /// Whether a pod's status alone tells all there is to tell.
    pub(crate) fn is_plain(self) -> bool {
        matches!(
            self,
            Self::ExitCode
                | Self::CommandNotFound
                | Self::NotExecutable
                | Self::WrongArchitecture
                | Self::LauncherMissing
                | Self::InitFailed
                | Self::OutOfMemory
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
    fn the_words_are_those_of_json() {
        for cause in Cause::ALL {
            let json = serde_json::to_value(cause).ok();
            assert_eq!(json, Some(cause.as_str().into()));
        }
        let read: Result<Cause, _> = serde_json::from_str("\"of-tomorrow\"");
        assert_eq!(read.ok(), Some(Cause::Unknown));
    }

    #[test]
    fn each_is_in_the_guide() {
        let guide = include_str!("../../../../docs/why.md");
        for cause in Cause::ALL {
            assert!(guide.contains(&format!("`{cause}`")), "{cause}");
        }
    }
}
