//! Asks a cluster for the tasks of a job, waits for who is missing, follows
//! who comes and goes.

mod groups;
mod live;
mod select;
mod wait;
mod watch;

use std::{
    collections::BTreeMap,
    net::{IpAddr, UdpSocket},
};

use futures::{StreamExt, stream};
use longshore_client::{Cluster, LabelSelector};

pub use watch::{Generation, Generations};

use crate::{
    accelerators::TaskAccelerators,
    error::Error,
    facts::NodeFacts,
    identity::Identity,
    spec::ClusterSpec,
    tasks::{Assembly, Task, Tasks},
};

/// So many nodes are asked for at a time.
const AT_ONCE: usize = 16;

/// Resolves label selectors over pods into the tasks of a job, and their
/// addresses as a [`ClusterSpec`].
///
/// The defaults are those of TensorFlow's `KubernetesClusterResolver`: one
/// role `worker` with the pods `job-name=tensorflow`, port 8470, `grpc`. Unlike
/// it, a resolver looks into one namespace (the cluster's default, which in a
/// pod is the pod's own), orders numbers as numbers, and uses the pods' own
/// addresses; [`Assembly::tensorflow`] has that class's ways.
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
    /// the selectors' order; a role that comes twice has the selectors of both.
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

    /// The namespace to look into; `None`: all of them.
    #[must_use]
    pub fn with_namespace(mut self, namespace: Option<&str>) -> Self {
        self.namespace = namespace.map(str::to_owned);
        self
    }

    /// Port, kind of address, order, and what to do about pods that are not
    /// simply running.
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

    /// The reader is the pod that it runs in: asks the cluster which task that
    /// is.
    ///
    /// # Errors
    /// As [`Resolver::own_task`].
    pub async fn with_own_task(self) -> Result<Self, Error> {
        let own = self.own_task().await?;
        Ok(self.with_task(Some(&own.role), Some(own.index)))
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

    /// The tasks as they are now. Asks the cluster each time: all selectors at
    /// once, and in one request if they have a label in common.
    ///
    /// # Errors
    /// [`Error::Pods`] for a pod that does not fit, [`Error::Forbidden`] for a
    /// token that may not list pods, [`Error::Cluster`].
    pub async fn tasks(&self) -> Result<Tasks, Error> {
        self.tasks_as(&self.assembly).await
    }

    /// The addresses of the tasks as they are now. Asks the cluster each time.
    ///
    /// # Errors
    /// As [`Resolver::tasks`].
    pub async fn cluster_spec(&self) -> Result<ClusterSpec, Error> {
        Ok(self.tasks().await?.spec())
    }

    /// The address of a task as a URL: arguments win over the resolver's own
    /// task; empty when either is missing. Asks the cluster each time.
    ///
    /// # Errors
    /// As [`Resolver::tasks`], and [`Error::Spec`].
    pub async fn master(
        &self,
        task_type: Option<&str>,
        task_id: Option<u32>,
        rpc_layer: Option<&str>,
    ) -> Result<String, Error> {
        let task_type = task_type.or(self.task_type.as_deref());
        let task_id = task_id.or(self.task_id);
        // Without a task there is nothing to ask for.
        if task_type.is_none() || task_id.is_none() {
            return Ok(String::new());
        }
        let layer = rpc_layer.unwrap_or(&self.rpc_layer);
        Ok(self.tasks().await?.master(task_type, task_id, layer)?)
    }

    /// Who this process is, as far as it knows: to find its task among tasks that
    /// are there already ([`Identity::find`]).
    #[must_use]
    pub fn identity(&self) -> Identity {
        let mut identity = Identity::here();
        identity.ips.extend(self.own_address());
        identity
    }

    /// The task whose pod this process runs in.
    ///
    /// # Errors
    /// [`Error::NotATask`], and as [`Resolver::tasks`].
    pub async fn own_task(&self) -> Result<Task, Error> {
        self.task_of(&self.identity()).await
    }

    /// The task whose pod it is.
    ///
    /// # Errors
    /// As [`Resolver::own_task`].
    pub async fn task_of(&self, identity: &Identity) -> Result<Task, Error> {
        identity.find(&self.tasks().await?).cloned()
    }

    /// The address from which the cluster is asked. No packet is sent.
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
        // Everybody is at home there.
        (!own.is_loopback()).then_some(own)
    }

    /// The accelerators of each task: from the limits of its containers, and
    /// what they are from the labels of its node, if the token may get nodes.
    ///
    /// # Errors
    /// As [`Resolver::tasks`].
    pub async fn accelerators(&self) -> Result<Vec<TaskAccelerators>, Error> {
        let tasks = self.tasks().await?;
        let equipped = tasks.iter().filter(|task| !task.accelerators.is_empty());
        let mut names: Vec<&str> = equipped
            .filter_map(|task| task.pod.node.as_deref())
            .collect();
        names.sort_unstable();
        names.dedup();
        let nodes = self.cluster.nodes();
        let asked = names.into_iter().map(|name| {
            let (nodes, name) = (nodes.clone(), name.to_owned());
            async move {
                let node = nodes.fetch(&name).await;
                (name, node.and_then(|node| node.typed::<NodeFacts>()))
            }
        });
        let asked: Vec<_> = asked.collect();
        let found: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
        let mut nodes: BTreeMap<String, NodeFacts> = BTreeMap::new();
        for (name, facts) in found {
            match facts {
                Ok(facts) => drop(nodes.insert(name, facts)),
                // Gone meanwhile, or not to be seen: the number is known.
                Err(error) if error.code().is_some() => {
                    tracing::debug!(%error, "what accelerators a node has is not known");
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

    /// How many accelerators a task has, by what frameworks call the device:
    /// `{"GPU": 2}`. Of a role, of the resolver's own task where nothing is
    /// given, else of all tasks: what every one of them has.
    ///
    /// # Errors
    /// As [`Resolver::tasks`], and [`Error::Spec`] for a task that is not there.
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
