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
        ///
        /// ```
        /// # longshore_embedded::example(async |cluster| {
        /// # use longshore_client::Patch;
        /// # use serde_json::json;
        /// # let sets = cluster.replicasets().in_namespace("default")?;
        /// # let pod = json!({"containers": [{"name": "main", "image": "busybox"}]});
        /// # let labels = json!({"app": "web"});
        /// # let template = json!({"metadata": {"labels": labels}, "spec": pod});
        /// # let selector = json!({"matchLabels": labels});
        /// # let spec = json!({"replicas": 3, "selector": selector, "template": template});
        /// # sets.create(&json!({"metadata": {"name": "web"}, "spec": spec})).await?;
        /// # let status = json!({"status": {
        /// #     "replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 2,
        /// #     "availableReplicas": 1, "observedGeneration": 1,
        /// # }});
        /// # sets.patch_status("web", &Patch::merge(status)).await?;
        /// let set = sets.fetch("web").await?;
        /// assert_eq!(set.observed_generation()?, 1);
        /// assert_eq!((set.observed_replicas()?, set.fully_labeled_replicas()?), (3, 3));
        /// assert_eq!((set.ready_replicas()?, set.available_replicas()?), (2, 1));
        /// # Ok(()) });
        /// ```
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
        ///
        /// ```
        /// # longshore_embedded::example(async |cluster| {
        /// # use longshore_client::Patch;
        /// # use serde_json::json;
        /// # let sets = cluster.daemonsets().in_namespace("default")?;
        /// # let pod = json!({"containers": [{"name": "main", "image": "busybox"}]});
        /// # let labels = json!({"app": "web"});
        /// # let template = json!({"metadata": {"labels": labels}, "spec": pod});
        /// # let selector = json!({"matchLabels": labels});
        /// # let spec = json!({"selector": selector, "template": template});
        /// # sets.create(&json!({"metadata": {"name": "web"}, "spec": spec})).await?;
        /// # let status = json!({"status": {
        /// #     "desiredNumberScheduled": 3, "currentNumberScheduled": 3,
        /// #     "updatedNumberScheduled": 2, "numberMisscheduled": 0,
        /// #     "numberReady": 2, "numberAvailable": 1, "observedGeneration": 1,
        /// # }});
        /// # sets.patch_status("web", &Patch::merge(status)).await?;
        /// let set = sets.fetch("web").await?;
        /// assert_eq!(set.observed_generation()?, 1);
        /// assert_eq!((set.desired_number_scheduled()?, set.current_number_scheduled()?), (3, 3));
        /// assert_eq!((set.updated_number_scheduled()?, set.number_misscheduled()?), (2, 0));
        /// assert_eq!((set.number_ready()?, set.number_available()?), (2, 1));
        /// # Ok(()) });
        /// ```
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
        ///
        /// ```
        /// # longshore_embedded::example(async |cluster| {
        /// # use longshore_client::Patch;
        /// # use serde_json::json;
        /// # let deployments = cluster.deployments().in_namespace("default")?;
        /// # let pod = json!({"containers": [{"name": "main", "image": "busybox"}]});
        /// # let labels = json!({"app": "web"});
        /// # let template = json!({"metadata": {"labels": labels}, "spec": pod});
        /// # let selector = json!({"matchLabels": labels});
        /// # let spec = json!({"replicas": 3, "selector": selector, "template": template});
        /// # deployments.create(&json!({"metadata": {"name": "web"}, "spec": spec})).await?;
        /// # let status = json!({"status": {
        /// #     "replicas": 4, "updatedReplicas": 2, "readyReplicas": 3,
        /// #     "availableReplicas": 3, "unavailableReplicas": 1, "observedGeneration": 1,
        /// # }});
        /// # deployments.patch_status("web", &Patch::merge(status)).await?;
        /// // In the middle of a roll-out:
        /// let web = deployments.fetch("web").await?;
        /// assert_eq!(web.observed_generation()?, 1);
        /// assert_eq!((web.observed_replicas()?, web.updated_replicas()?), (4, 2));
        /// assert_eq!((web.ready_replicas()?, web.available_replicas()?), (3, 3));
        /// assert_eq!(web.unavailable_replicas()?, 1);
        /// # Ok(()) });
        /// ```
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
        ///
        /// ```
        /// # longshore_embedded::example(async |cluster| {
        /// # use longshore_client::Patch;
        /// # use serde_json::json;
        /// # let sets = cluster.statefulsets().in_namespace("default")?;
        /// # let pod = json!({"containers": [{"name": "main", "image": "busybox"}]});
        /// # let labels = json!({"app": "web"});
        /// # let template = json!({"metadata": {"labels": labels}, "spec": pod});
        /// # let selector = json!({"matchLabels": labels});
        /// # let spec = json!({"replicas": 3, "selector": selector, "template": template});
        /// # sets.create(&json!({"metadata": {"name": "web"}, "spec": spec})).await?;
        /// # let status = json!({"status": {
        /// #     "replicas": 3, "currentReplicas": 1, "updatedReplicas": 2,
        /// #     "readyReplicas": 2, "availableReplicas": 2, "observedGeneration": 1,
        /// # }});
        /// # sets.patch_status("web", &Patch::merge(status)).await?;
        /// let set = sets.fetch("web").await?;
        /// assert_eq!(set.observed_generation()?, 1);
        /// assert_eq!((set.observed_replicas()?, set.ready_replicas()?), (3, 2));
        /// assert_eq!((set.current_replicas()?, set.updated_replicas()?), (1, 2));
        /// assert_eq!(set.available_replicas()?, 2);
        /// # Ok(()) });
        /// ```
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

/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use longshore_client::Patch;
/// use serde_json::json;
///
/// let cronjobs = cluster.cronjobs().in_namespace("default")?;
/// # let containers = json!([{"name": "main", "image": "busybox"}]);
/// # let pod = json!({"spec": {"restartPolicy": "Never", "containers": containers}});
/// let nightly = cronjobs.create(&json!({
///     "metadata": {"name": "nightly"},
///     "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": pod}}},
/// })).await?;
/// assert_eq!((nightly.schedule()?.as_str(), nightly.suspended()?), ("0 3 * * *", false));
/// assert!(nightly.active()?.is_empty() && nightly.last_schedule_time().is_err());
/// # let status = json!({"status": {
/// #     "active": [{"apiVersion": "batch/v1", "kind": "Job", "name": "nightly-1", "uid": "u1"}],
/// #     "lastScheduleTime": "2026-01-05T03:00:00Z",
/// # }});
/// # nightly.patch_status(&Patch::merge(status)).await?;
///
/// // After three in the morning:
/// let nightly = nightly.fetch().await?;
/// assert_eq!(nightly.active()?[0].name, "nightly-1");
/// assert_eq!(nightly.last_schedule_time()?.to_string(), "2026-01-05T03:00:00Z");
/// # Ok(()) });
/// ```
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
