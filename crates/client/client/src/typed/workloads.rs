//! The counts in the status of ReplicaSets, ReplicationControllers, DaemonSets and
//! Deployments. The API omits counts that are 0.

use crate::{
    cluster::Connection,
    error::Result,
    item::Item,
    kinds::{DaemonSet, Deployment, ReplicaSet, ReplicationController},
};

/// Generates a method for each count of a status.
macro_rules! counts {
    ($($($kind:ident),+ => $fields:tt)*) => {
        $($(counts!(@of $kind $fields);)+)*
    };
    (@of $kind:ident { $($(#[$doc:meta])* $name:ident = $field:literal;)* }) => {
        impl<C: Connection> Item<$kind, C> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                #[doc = concat!("[`Error::Decode`](crate::Error::Decode) when `status.", $field, "` is not a count.")]
                pub fn $name(&self) -> Result<u64> {
                    Ok(self.field(&["status", $field])?.unwrap_or_default())
                }
            )*
        }
    };
}

counts! {
    ReplicaSet, ReplicationController => {
        /// Pods that have been ready for at least `minReadySeconds`.
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
        /// Pods with all labels of the template.
        fully_labeled_replicas = "fullyLabeledReplicas";
        /// The generation that the controller last observed.
        observed_generation = "observedGeneration";
        /// Existing pods.
        observed_replicas = "replicas";
        /// Ready pods.
        ready_replicas = "readyReplicas";
    }
    DaemonSet => {
        /// Nodes that run the pod and should.
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
        /// Nodes that should run the pod.
        desired_number_scheduled = "desiredNumberScheduled";
        /// Nodes that run the pod and should not.
        number_misscheduled = "numberMisscheduled";
        /// Nodes with a ready pod.
        number_ready = "numberReady";
        /// Nodes whose pod has been ready for at least `minReadySeconds`.
        number_available = "numberAvailable";
        /// Nodes with a pod of the current template.
        updated_number_scheduled = "updatedNumberScheduled";
        /// The generation that the controller last observed.
        observed_generation = "observedGeneration";
    }
    Deployment => {
        /// Pods that have been ready for at least `minReadySeconds`.
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
        /// // During a rollout:
        /// let web = deployments.fetch("web").await?;
        /// assert_eq!(web.observed_generation()?, 1);
        /// assert_eq!((web.observed_replicas()?, web.updated_replicas()?), (4, 2));
        /// assert_eq!((web.ready_replicas()?, web.available_replicas()?), (3, 3));
        /// assert_eq!(web.unavailable_replicas()?, 1);
        /// # Ok(()) });
        /// ```
        available_replicas = "availableReplicas";
        /// The generation that the controller last observed.
        observed_generation = "observedGeneration";
        /// Existing pods of all templates.
        observed_replicas = "replicas";
        /// Ready pods.
        ready_replicas = "readyReplicas";
        /// Desired pods that are not available yet.
        unavailable_replicas = "unavailableReplicas";
        /// Pods of the current template.
        updated_replicas = "updatedReplicas";
    }
}
