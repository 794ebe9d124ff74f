//! Asks a cluster for the pods of each role, and waits for who is missing.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream::FuturesUnordered};
use longshore_client::{Cache, Cluster, LabelSelector, View, kinds::Pod};

use crate::{
    ClusterSpec, SpecError,
    pods::{self, Assembly, PodError, PodFacts, Policy, Selected},
};

/// Why there is no spec, or no answer from it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The cluster refused, or did not answer.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
    /// The pods do not make a spec.
    #[error(transparent)]
    Pods(#[from] PodError),
    /// The spec has no such job or task.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Not all were there in time.
    #[error("not all tasks were ready within {} s: {}", waited.as_secs(), missing.join("; "))]
    Missing {
        /// For each role that lacks tasks: who is missing and why.
        missing: Vec<String>,
        /// How long the wait was.
        waited: Duration,
    },
    /// The connection was closed during a wait.
    #[error("the connection to the cluster was closed while waiting for pods")]
    Closed,
}

/// Resolves label selectors over pods into a [`ClusterSpec`].
///
/// The defaults are those of TensorFlow's `KubernetesClusterResolver`: one
/// role `worker` with the pods `job-name=tensorflow`, port 8470, `grpc`. Unlike
/// it, a resolver looks into one namespace (the cluster's default, unless told
/// otherwise), orders numbers as numbers, and uses the pods' own addresses.
///
/// ```no_run
/// # async fn example(cluster: longshore_client::Cluster) -> Result<(), Box<dyn std::error::Error>> {
/// use longshore_resolver::Resolver;
/// let resolver = Resolver::new(cluster)
///     .with_mapping([("worker", vec!["role=worker".parse()?]), ("ps", vec!["role=ps".parse()?])]);
/// println!("{}", resolver.cluster_spec().await?.as_dict());
/// println!("{}", resolver.master(Some("worker"), Some(0), None).await?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Resolver {
    cluster: Cluster,
    namespace: Option<String>,
    mapping: Vec<(String, Vec<LabelSelector>)>,
    assembly: Assembly,
    rpc_layer: String,
    task_type: Option<String>,
    task_id: Option<u32>,
}

impl Resolver {
    /// A resolver with the defaults.
    #[must_use]
    pub fn new(cluster: Cluster) -> Self {
        let tensorflow = LabelSelector::exactly([("job-name", "tensorflow")]).unwrap_or_default();
        Self {
            namespace: Some(cluster.default_namespace().to_owned()),
            cluster,
            mapping: vec![("worker".to_owned(), vec![tensorflow])],
            assembly: Assembly::default(),
            rpc_layer: "grpc".to_owned(),
            task_type: None,
            task_id: None,
        }
    }

    /// The roles and their selectors. The pods of a role's selectors come in
    /// the selectors' order.
    #[must_use]
    pub fn with_mapping<R: Into<String>>(
        mut self,
        mapping: impl IntoIterator<Item = (R, Vec<LabelSelector>)>,
    ) -> Self {
        self.mapping = mapping
            .into_iter()
            .map(|(role, selectors)| (role.into(), selectors))
            .collect();
        self
    }

    /// The namespace to look into; `None`: all of them.
    #[must_use]
    pub fn with_namespace(mut self, namespace: Option<&str>) -> Self {
        self.namespace = namespace.map(str::to_owned);
        self
    }

    /// Port, kind of address, order, and what to do about pods that are not
    /// running.
    #[must_use]
    pub fn with_assembly(mut self, assembly: Assembly) -> Self {
        self.assembly = assembly;
        self
    }

    /// The protocol in front of a master's address; empty for none.
    #[must_use]
    pub fn with_rpc_layer(mut self, rpc_layer: &str) -> Self {
        rpc_layer.clone_into(&mut self.rpc_layer);
        self
    }

    /// Who the reader is.
    #[must_use]
    pub fn with_task(mut self, task_type: Option<&str>, task_id: Option<u32>) -> Self {
        self.task_type = task_type.map(str::to_owned);
        self.task_id = task_id;
        self
    }

    /// The reader's role.
    #[must_use]
    pub fn task_type(&self) -> Option<&str> {
        self.task_type.as_deref()
    }

    /// The reader's index.
    #[must_use]
    pub fn task_id(&self) -> Option<u32> {
        self.task_id
    }

    /// The protocol in front of a master's address.
    #[must_use]
    pub fn rpc_layer(&self) -> &str {
        &self.rpc_layer
    }

    /// Always empty: TensorFlow's word for an environment that is not
    /// Google's own.
    #[must_use]
    pub fn environment(&self) -> &'static str {
        ""
    }

    fn view(&self, selector: &LabelSelector) -> Result<View<Pod>, Error> {
        let view = self.cluster.pods().labels(selector.clone());
        Ok(match &self.namespace {
            Some(namespace) => view.in_namespace(namespace)?,
            None => view,
        })
    }

    /// The pods of each selector, all asked for at once.
    async fn select(&self) -> Result<Vec<Selected>, Error> {
        let roles = self.mapping.iter().map(async |(role, selectors)| {
            let lists = selectors.iter().map(async |selector| {
                let list = self.view(selector)?.list().await?;
                let pods: Result<Vec<PodFacts>, _> =
                    list.items.iter().map(|pod| pod.typed()).collect();
                Ok::<_, Error>(pods?)
            });
            let pods = futures::future::try_join_all(lists).await?;
            Ok::<_, Error>((role.clone(), pods))
        });
        futures::future::try_join_all(roles).await
    }

    /// The spec as it is now. Asks the cluster each time.
    ///
    /// # Errors
    /// [`Error::Pods`] for a pod that does not fit, [`Error::Cluster`].
    pub async fn cluster_spec(&self) -> Result<ClusterSpec, Error> {
        Ok(pods::assemble(&self.select().await?, &self.assembly)?)
    }

    /// The address of a task as a URL: arguments win over the resolver's own
    /// task; empty when either is missing. Asks the cluster each time.
    ///
    /// # Errors
    /// As [`Resolver::cluster_spec`], and [`Error::Spec`].
    pub async fn master(
        &self,
        task_type: Option<&str>,
        task_id: Option<u32>,
        rpc_layer: Option<&str>,
    ) -> Result<String, Error> {
        let task_type = task_type.or(self.task_type.as_deref());
        let (Some(task_type), Some(task_id)) = (task_type, task_id.or(self.task_id)) else {
            return Ok(String::new());
        };
        let spec = self.cluster_spec().await?;
        let address = spec.task_address(task_type, task_id)?;
        Ok(match rpc_layer.unwrap_or(&self.rpc_layer) {
            "" => address.to_owned(),
            layer => format!("{layer}://{address}"),
        })
    }

    /// Accelerators per task of a role, from the pods' limits: resource →
    /// number. Tasks differ at times; then the smallest number counts, which
    /// every task has.
    ///
    /// # Errors
    /// As [`Resolver::cluster_spec`].
    pub async fn num_accelerators(&self, task_type: &str) -> Result<BTreeMap<String, u64>, Error> {
        let roles = self.select().await?;
        let pods = roles
            .iter()
            .filter(|(role, _)| role == task_type)
            .flat_map(|(_, lists)| lists);
        let mut least: Option<BTreeMap<String, u64>> = None;
        for pod in pods.flatten().filter(|pod| !pod.is_finished()) {
            let found = pod.accelerators();
            least = Some(match least {
                None => found,
                Some(least) => least
                    .into_iter()
                    .filter_map(|(kind, n)| Some((found.get(&kind)?.min(&n).to_owned(), kind)))
                    .map(|(n, kind)| (kind, n))
                    .collect(),
            });
        }
        Ok(least.unwrap_or_default())
    }

    /// Waits until each role has as many running pods as `needed` says, and
    /// gives the spec of those. Finished pods and such that do not run yet are
    /// left out, whatever the policy.
    ///
    /// # Errors
    /// [`Error::Missing`] after `limit`: who is missing and why.
    pub async fn wait(
        &self,
        needed: &BTreeMap<String, usize>,
        limit: Duration,
    ) -> Result<ClusterSpec, Error> {
        let begin = Instant::now();
        let assembly = Assembly {
            policy: Policy::SkipNotRunning,
            ..self.assembly.clone()
        };
        let mut caches: Vec<(String, Vec<Cache<Pod>>)> = Vec::new();
        for (role, selectors) in &self.mapping {
            let opened = selectors
                .iter()
                .map(async |selector| Ok::<_, Error>(self.view(selector)?.cache().await?));
            caches.push((role.clone(), futures::future::try_join_all(opened).await?));
        }
        let mut changes: Vec<_> = caches
            .iter()
            .flat_map(|(_, caches)| caches)
            .map(Cache::subscribe)
            .collect();
        loop {
            // What is there now covers all changes told so far.
            while changes
                .iter_mut()
                .any(|changes| changes.try_next().is_some())
            {}
            let mut roles: Vec<Selected> = Vec::new();
            for (role, caches) in &caches {
                let mut lists = Vec::new();
                for cache in caches {
                    let pods: Result<Vec<PodFacts>, _> =
                        cache.items().iter().map(|pod| pod.typed()).collect();
                    lists.push(pods?);
                }
                roles.push((role.clone(), lists));
            }
            let missing = pods::missing(&roles, needed, assembly.address);
            if missing.is_empty() {
                return Ok(pods::assemble(&roles, &assembly)?);
            }
            let left = limit.saturating_sub(begin.elapsed());
            let mut next: FuturesUnordered<_> =
                changes.iter_mut().map(|changes| changes.next()).collect();
            match tokio::time::timeout(left, next.next()).await {
                Ok(Some(Some(_))) => {}
                Ok(Some(None)) => return Err(Error::Closed),
                // Without selectors nobody can come.
                Ok(None) | Err(_) => {
                    return Err(Error::Missing {
                        missing,
                        waited: limit,
                    });
                }
            }
        }
    }
}
