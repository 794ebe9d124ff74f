//! Gets the tasks of a job from a cluster, waits for missing tasks, and watches for
//! changes.

mod groups;
mod pod_feeds;
mod select;
mod unmatched;
mod wait;
mod watch;

use std::{
    collections::BTreeMap,
    net::{IpAddr, UdpSocket},
};

use futures::{StreamExt, stream};
use longshore_client::{Cluster, LabelSelector};
use longshore_model::facts::NodeFacts;

pub use unmatched::Unmatched;
pub use watch::{Generation, Generations};

use crate::{
    accelerators::TaskAccelerators,
    error::Error,
    identity::Identity,
    spec::ClusterSpec,
    tasks::{Assembly, Task, Tasks},
};

/// The number of nodes to fetch in parallel.
const CONCURRENCY: usize = 16;

/// Resolves label selectors over pods into the tasks of a job, and their
/// addresses as a [`ClusterSpec`].
///
/// The defaults are the same as in TensorFlow's `KubernetesClusterResolver`: one role `worker` with
/// the pods `job-name=tensorflow`, port 8470 and `grpc`. There are three differences: a resolver
/// uses a single namespace (the cluster's default, which in a pod is the pod's own), sorts numbers
/// in names numerically, and uses pod addresses. Use [`Assembly::tensorflow`] for TensorFlow's
/// behaviour.
///
/// ```
/// # longshore_embedded::example_with_pods(async |cluster| {
/// use longshore_resolver::Resolver;
/// let resolver = Resolver::new(cluster).with_mapping([
///     ("worker", vec!["job-name=none".parse()?]),
///     ("ps", vec!["job-name=ps-1".parse()?, "job-name=ps-2".parse()?]),
/// ]);
/// let spec = resolver.cluster_spec().await?;
/// assert_eq!(spec.as_dict().to_string(), r#"{"ps":[],"worker":[]}"#);
/// # Ok(()) });
/// ```
#[derive(Debug, Clone)]
pub struct Resolver {
    cluster: Cluster,
    namespace: Option<String>,
    mapping: groups::Mapping,
    assembly: Assembly,
    rpc_layer: String,
    task_type: Option<String>,
    task_id: Option<u32>,
}

impl Resolver {
    /// Creates a resolver with the defaults.
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

    /// Sets the roles and their selectors. The pods of a role are in the order of
    /// its selectors. If a role occurs twice, its selectors are combined.
    #[must_use]
    pub fn with_mapping<R: Into<String>>(
        mut self,
        mapping: impl IntoIterator<Item = (R, Vec<LabelSelector>)>,
    ) -> Self {
        self.mapping.clear();
        for (role, selectors) in mapping {
            let role = role.into();
            match self.mapping.iter_mut().find(|(known, _)| *known == role) {
                Some((_, known)) => known.extend(selectors),
                None => self.mapping.push((role, selectors)),
            }
        }
        self
    }

    /// Sets the namespace to search. `None` searches all namespaces.
    #[must_use]
    pub fn with_namespace(mut self, namespace: Option<&str>) -> Self {
        self.namespace = namespace.map(str::to_owned);
        self
    }

    /// Sets the port, the kind of address, the order, and the policy for pods that
    /// are not running and ready.
    #[must_use]
    pub fn with_assembly(mut self, assembly: Assembly) -> Self {
        self.assembly = assembly;
        self
    }

    /// Sets the protocol in front of a master's address. An empty string means
    /// none.
    #[must_use]
    pub fn with_rpc_layer(mut self, rpc_layer: &str) -> Self {
        rpc_layer.clone_into(&mut self.rpc_layer);
        self
    }

    /// Sets the resolver's own role and index.
    #[must_use]
    pub fn with_task(mut self, task_type: Option<&str>, task_id: Option<u32>) -> Self {
        self.task_type = task_type.map(str::to_owned);
        self.task_id = task_id;
        self
    }

    /// Sets the resolver's own role and index to the role and index of the pod that this process
    /// runs in. Requests them from the cluster.
    ///
    /// # Errors
    /// See [`Resolver::own_task`].
    pub async fn with_own_task(self) -> Result<Self, Error> {
        let own = self.own_task().await?;
        Ok(self.with_task(Some(&own.role), Some(own.index)))
    }

    /// Returns the resolver's own role.
    #[must_use]
    pub fn task_type(&self) -> Option<&str> {
        self.task_type.as_deref()
    }

    /// Returns the resolver's own index.
    #[must_use]
    pub fn task_id(&self) -> Option<u32> {
        self.task_id
    }

    /// Returns the protocol in front of a master's address.
    #[must_use]
    pub fn rpc_layer(&self) -> &str {
        &self.rpc_layer
    }

    /// Returns an empty string. TensorFlow's resolvers use it for environments
    /// other than Google's own.
    #[must_use]
    pub fn environment(&self) -> &'static str {
        ""
    }

    /// Returns the current tasks. Each call sends requests to the cluster: all
    /// selectors at the same time, and in a single request if they have a label in
    /// common.
    ///
    /// # Errors
    /// [`Error::Pods`] for a pod that cannot become a task, [`Error::Forbidden`] if
    /// the token cannot list pods, [`Error::Cluster`].
    pub async fn tasks(&self) -> Result<Tasks, Error> {
        self.tasks_as(&self.assembly).await
    }

    /// Returns the addresses of the current tasks. Each call sends requests to the
    /// cluster.
    ///
    /// # Errors
    /// See [`Resolver::tasks`].
    pub async fn cluster_spec(&self) -> Result<ClusterSpec, Error> {
        Ok(self.tasks().await?.spec())
    }

    /// Returns the address of a task as a URL. The arguments override the
    /// resolver's own task. The URL is empty if the role or the index is missing.
    /// Each call sends requests to the cluster.
    ///
    /// # Errors
    /// See [`Resolver::tasks`]; also [`Error::Spec`].
    pub async fn master(
        &self,
        task_type: Option<&str>,
        task_id: Option<u32>,
        rpc_layer: Option<&str>,
    ) -> Result<String, Error> {
        let task_type = task_type.or(self.task_type.as_deref());
        let task_id = task_id.or(self.task_id);
        // Without a task, no request is needed.
        if task_type.is_none() || task_id.is_none() {
            return Ok(String::new());
        }
        let layer = rpc_layer.unwrap_or(&self.rpc_layer);
        Ok(self.tasks().await?.master(task_type, task_id, layer)?)
    }

    /// Returns the identity of this process, to find its task among tasks that are
    /// already known ([`Identity::find`]).
    #[must_use]
    pub fn identity(&self) -> Identity {
        let mut identity = Identity::here();
        identity.ips.extend(self.own_address());
        identity
    }

    /// Returns the task whose pod this process runs in.
    ///
    /// # Errors
    /// [`Error::NotATask`]; also see [`Resolver::tasks`].
    pub async fn own_task(&self) -> Result<Task, Error> {
        self.task_of(&self.identity()).await
    }

    /// Returns the task whose pod has this identity.
    ///
    /// # Errors
    /// See [`Resolver::own_task`].
    pub async fn task_of(&self, identity: &Identity) -> Result<Task, Error> {
        identity.find(&self.tasks().await?).cloned()
    }

    /// Returns the local address of connections to the cluster. Sends no packet.
    fn own_address(&self) -> Option<IpAddr> {
        let url: http::Uri = self.cluster.url().parse().ok()?;
        let (host, port) = (url.host()?, url.port_u16().unwrap_or(443));
        let host = host.trim_matches(['[', ']']).parse::<IpAddr>().ok()?;
        let any: IpAddr = match host {
            IpAddr::V4(_) => [0; 4].into(),
            IpAddr::V6(_) => [0; 16].into(),
        };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((host, port)).ok()?;
        let own = socket.local_addr().ok()?.ip();
        // A loopback address does not identify a pod.
        (!own.is_loopback()).then_some(own)
    }

    /// Returns the accelerators of each task: the counts from the limits of its
    /// containers, and the model from the labels of its node if the token can get
    /// nodes.
    ///
    /// # Errors
    /// See [`Resolver::tasks`].
    pub async fn accelerators(&self) -> Result<Vec<TaskAccelerators>, Error> {
        let tasks = self.tasks().await?;
        let equipped = tasks.iter().filter(|task| !task.accelerators.is_empty());
        let mut names: Vec<&str> = equipped
            .filter_map(|task| task.pod.node.as_deref())
            .collect();
        names.sort_unstable();
        names.dedup();
        let nodes = self.cluster.nodes();
        let requests = names.into_iter().map(|name| {
            let (nodes, name) = (nodes.clone(), name.to_owned());
            async move {
                let node = nodes.fetch(&name).await;
                (name, node.and_then(|node| node.typed::<NodeFacts>()))
            }
        });
        let requests: Vec<_> = requests.collect();
        let found: Vec<_> = stream::iter(requests).buffered(CONCURRENCY).collect().await;
        let mut nodes: BTreeMap<String, NodeFacts> = BTreeMap::new();
        for (name, facts) in found {
            match facts {
                Ok(facts) => drop(nodes.insert(name, facts)),
                // The node was deleted, or the token cannot get it. The counts are
                // still known.
                Err(error) if error.code().is_some() => {
                    tracing::debug!(%error, "the accelerator model of a node is unknown");
                }
                Err(error) => return Err(error.into()),
            }
        }
        let of_task = |task: &Task| {
            let node = task.pod.node.as_deref();
            TaskAccelerators::new(task, node.and_then(|node| nodes.get(node)))
        };
        Ok(tasks.iter().map(of_task).collect())
    }

    /// Returns the number of accelerators, by the device names that frameworks use: `{"GPU": 2}`.
    /// Without arguments, it is the number of the resolver's own task. For a role, or for all
    /// tasks, it is the number that every one of the tasks has.
    ///
    /// # Errors
    /// See [`Resolver::tasks`]; also [`Error::Spec`] if the task does not exist.
    pub async fn num_accelerators(
        &self,
        task_type: Option<&str>,
        task_id: Option<u32>,
    ) -> Result<BTreeMap<String, u64>, Error> {
        let task_type = task_type.or(self.task_type.as_deref());
        let task_id = task_id.or(self.task_id);
        let tasks = self.tasks().await?;
        Ok(tasks.num_accelerators(task_type, task_id)?)
    }
}
