//! The object caches and the clock that all controllers share.

use std::sync::{Arc, Weak};

use longshore_client::{
    Cache, Cluster, Error,
    kinds::{Any, Job, Namespace, Node, Pod, ServiceAccount},
};
use longshore_clock::{Clock, Component, Newest};
use longshore_model::{KindInfo, kind::BUILTIN};

use crate::progress;

/// Caches of all kinds, so that each kind is watched only once.
#[derive(Debug)]
pub(crate) struct Caches {
    /// The clock of all controllers.
    pub(crate) clock: Clock,
    pub(crate) pods: Cache<Pod>,
    pub(crate) nodes: Cache<Node>,
    pub(crate) jobs: Cache<Job>,
    pub(crate) namespaces: Cache<Namespace>,
    pub(crate) service_accounts: Cache<ServiceAccount>,
    /// The other kinds that can have owners or dependents: all except Events.
    pub(crate) others: Vec<(Arc<KindInfo>, Cache<Any>)>,
}

const OWN: [&str; 5] = ["Pod", "Node", "Job", "Namespace", "ServiceAccount"];

impl Caches {
    /// Lists and watches every kind.
    pub(crate) async fn open(cluster: &Cluster, clock: Clock) -> Result<Self, Error> {
        let other = BUILTIN
            .iter()
            .filter(|kind| kind.gvk.kind != "Event" && !OWN.contains(&kind.gvk.kind.as_ref()));
        let others = other.map(async |kind| {
            let kind = Arc::new(kind.clone());
            let view = cluster.view_of::<Any>(kind.clone());
            match view.cache().await {
                // A different release of Kubernetes may not serve the kind.
                Err(error) if error.is_not_found() => Ok(None),
                cache => Ok::<_, Error>(Some((kind, cache?))),
            }
        });
        let others = futures::future::try_join_all(others).await?;
        let others = others.into_iter().flatten().collect();
        // Owners are listed before their dependents, so that a controller that sees a pod already
        // knows its Job.
        let jobs = cluster.jobs().cache().await?;
        Ok(Self {
            clock,
            jobs,
            nodes: cluster.nodes().cache().await?,
            namespaces: cluster.namespaces().cache().await?,
            service_accounts: cluster.serviceaccounts().cache().await?,
            pods: cluster.pods().cache().await?,
            others,
        })
    }

    /// Reports the changes that controllers have not processed yet as work, to the clock.
    pub(crate) fn follow_progress(self: &Arc<Self>) {
        let component: Weak<dyn Component> = Arc::downgrade(self) as _;
        self.clock.add(component);
    }

    /// The CustomResourceDefinitions.
    pub(crate) fn definitions(&self) -> Option<&Cache<Any>> {
        self.other("CustomResourceDefinition")
    }

    pub(crate) fn config_maps(&self) -> Option<&Cache<Any>> {
        self.other("ConfigMap")
    }

    /// The ClusterRoles, with their kind.
    pub(crate) fn cluster_roles(&self) -> Option<&(Arc<KindInfo>, Cache<Any>)> {
        self.of("rbac.authorization.k8s.io", "ClusterRole")
    }

    pub(crate) fn cron_jobs(&self) -> Option<&Cache<Any>> {
        self.other("CronJob")
    }

    /// Returns a kind and its cache, if it is one of the other kinds.
    pub(crate) fn of(&self, group: &str, kind: &str) -> Option<&(Arc<KindInfo>, Cache<Any>)> {
        let mut others = self.others.iter();
        others.find(|(info, _)| info.gvk.group == group && info.gvk.kind == kind)
    }

    fn other(&self, name: &str) -> Option<&Cache<Any>> {
        let mut others = self.others.iter();
        let found = others.find(|(kind, _)| kind.gvk.kind == name);
        found.map(|(_, cache)| cache)
    }
}

impl Component for Caches {
    fn pending(&self, newest: &Newest<'_>) -> Option<String> {
        let own = progress::pending("", "Node", &self.nodes, newest)
            .or_else(|| progress::pending("batch", "Job", &self.jobs, newest))
            .or_else(|| progress::pending("", "Pod", &self.pods, newest))
            .or_else(|| progress::pending("", "Namespace", &self.namespaces, newest))
            .or_else(|| progress::pending("", "ServiceAccount", &self.service_accounts, newest));
        own.or_else(|| {
            let mut others = self.others.iter();
            others.find_map(|(kind, cache)| {
                progress::pending(&kind.gvk.group, &kind.gvk.kind, cache, newest)
            })
        })
    }

    fn steps(&self) -> u64 {
        // Changes of caches are changes of the cluster.
        0
    }
}
