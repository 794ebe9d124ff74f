//! ReplicaSets, ReplicationControllers, DaemonSets, Deployments, StatefulSets
//! and CronJobs.
//!
//! The counts stand in the status, and the API leaves some of them out while
//! they are 0: such a count is an [`Error::Status`](crate::Error::Status), as
//! any status field that is absent.

use jiff::Timestamp;
use serde::Deserialize;

use crate::{
    error::Result,
    item::Item,
    kinds::{CronJob, DaemonSet, Deployment, ReplicaSet, ReplicationController, StatefulSet},
};

/// Numbers of a status, each by its field.
macro_rules! counts {
    ($($($kind:ident),+ => $fields:tt)*) => {
        $($(counts!(@of $kind $fields);)+)*
    };
    (@of $kind:ident { $($(#[$doc:meta])* $name:ident = $field:literal;)* }) => {
        impl Item<$kind> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                #[doc = concat!("[`Error::Status`](crate::Error::Status) when `status.", $field, "` is absent.")]
                pub fn $name(&self) -> Result<u64> {
                    self.status_field(&[$field])
                }
            )*
        }
    };
}

counts! {
    ReplicaSet, ReplicationController => {
        /// Pods that are ready and have been for `minReadySeconds`.
        available_replicas = "availableReplicas";
        /// Pods with all the labels of the template.
        fully_labeled_replicas = "fullyLabeledReplicas";
        /// The generation that the controller has seen.
        observed_generation = "observedGeneration";
        /// Pods that there are.
        observed_replicas = "replicas";
        /// Pods that are ready.
        ready_replicas = "readyReplicas";
    }
    DaemonSet => {
        /// Nodes that have the pod and should.
        current_number_scheduled = "currentNumberScheduled";
        /// Nodes that should have the pod.
        desired_number_scheduled = "desiredNumberScheduled";
        /// Nodes that have the pod and should not.
        number_misscheduled = "numberMisscheduled";
        /// Nodes whose pod is ready.
        number_ready = "numberReady";
        /// Nodes whose pod is ready and has been for `minReadySeconds`.
        number_available = "numberAvailable";
        /// Nodes whose pod is of the newest template.
        updated_number_scheduled = "updatedNumberScheduled";
        /// The generation that the controller has seen.
        observed_generation = "observedGeneration";
    }
    Deployment => {
        /// Pods that are ready and have been for `minReadySeconds`.
        available_replicas = "availableReplicas";
        /// The generation that the controller has seen.
        observed_generation = "observedGeneration";
        /// Pods that there are, of all templates.
        observed_replicas = "replicas";
        /// Pods that are ready.
        ready_replicas = "readyReplicas";
        /// Pods that are wanted and not available yet.
        unavailable_replicas = "unavailableReplicas";
        /// Pods of the newest template.
        updated_replicas = "updatedReplicas";
    }
    StatefulSet => {
        /// Pods that are ready and have been for `minReadySeconds`.
        available_replicas = "availableReplicas";
        /// Pods of the current revision.
        current_replicas = "currentReplicas";
        /// The generation that the controller has seen.
        observed_generation = "observedGeneration";
        /// Pods that there are.
        observed_replicas = "replicas";
        /// Pods that are ready.
        ready_replicas = "readyReplicas";
        /// Pods of the newest revision.
        updated_replicas = "updatedReplicas";
    }
}

/// What a CronJob's status says of a Job that runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ActiveJob {
    /// The Job's name, in the CronJob's namespace.
    pub name: String,
    /// The Job's uid.
    #[serde(default)]
    pub uid: String,
}

impl Item<CronJob> {
    /// When Jobs are made, as `*/5 * * * *`.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when it is no text.
    pub fn schedule(&self) -> Result<String> {
        Ok(self.field(&["spec", "schedule"])?.unwrap_or_default())
    }

    /// Whether no Jobs are made for now.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when it is neither true nor
    /// false.
    pub fn suspended(&self) -> Result<bool> {
        Ok(self.field(&["spec", "suspend"])?.unwrap_or(false))
    }

    /// The Jobs that run; empty when none does.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when the status is malformed.
    pub fn active(&self) -> Result<Vec<ActiveJob>> {
        Ok(self.field(&["status", "active"])?.unwrap_or_default())
    }

    /// When a Job was last made.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) when none was.
    pub fn last_schedule_time(&self) -> Result<Timestamp> {
        self.status_field(&["lastScheduleTime"])
    }
}
