//! A running embedded cluster. Starts and stops its parts in order.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::future::BoxFuture;
use longshore_apiserver::{ApiServer, AuditLog, Authority, Faults};
use longshore_client::Cluster;
use longshore_engine::{ClusterClock, Engine, Snapshot};
use longshore_files::remove_tree;
use longshore_node::{ApiAccess, Error as NodeError, NodeAgent};
use tokio::{
    net::TcpListener,
    sync::{Mutex, oneshot},
    task::{JoinHandle, JoinSet},
};

use crate::{
    AuditOptions, Error, MAX_NODES, Options, controllers, descriptors,
    end::End,
    engine::{self, Opened},
    files::Durability,
    keys::Keys,
    kubeconfig,
    layout::Layout,
    lock::Lock,
    namespaces,
    node_link::NodeLink,
    node_names,
    place::{bind, has_lost_store, open_folder, take_lock},
    publish,
    settings::Settings,
    start::{self, Part, Writes},
    temporary::{TemporaryFolder, set_aside},
};

/// A running embedded cluster. Stop it with [`EmbeddedCluster::stop`]. Dropping it
/// closes the endpoint without waiting for anything.
pub struct EmbeddedCluster {
    engine: Engine,
    cluster: Cluster,
    /// The client of the cluster's own components. Injected faults do not affect
    /// it.
    internal: Cluster,
    faults: Faults,
    audit: Option<AuditLog>,
    endpoint: Option<Endpoint>,
    controllers: Option<controllers::Running>,
    /// The tasks of the API server: they recreate the system namespaces, and aggregate other API
    /// servers. They are aborted on drop.
    tasks: JoinSet<()>,
    /// The agent, which starts later than the cluster if the API refuses its nodes.
    node: Arc<Mutex<Option<NodeAgent>>>,
    layout: Layout,
    ephemeral: bool,
    // Fields are dropped in declaration order. The lock must be dropped before the
    // temporary folder that contains it.
    lock: Lock,
    folder: Option<TemporaryFolder>,
    /// Problems of the start, as sentences for the user.
    warnings: Vec<String>,
}

/// A part of the start, for errors.
const POLICY: &str = "default roles and bindings";

/// The TLS endpoint.
struct Endpoint {
    url: String,
    kubeconfig: PathBuf,
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
}

impl EmbeddedCluster {
    /// Starts a cluster and waits until it is ready: its API server answers, and its nodes take
    /// pods. As in Kubernetes, the controllers start concurrently, and act on objects that were
    /// created before.
    ///
    /// # Errors
    /// Another process uses the folder, a file cannot be used, or a component
    /// failed to start. No component keeps running after an error.
    pub fn start(options: Options) -> BoxFuture<'static, Result<Self, Error>> {
        // Boxed, so that this crate compiles the future, not each crate that awaits it.
        Box::pin(Self::begin(options))
    }

    async fn begin(options: Options) -> Result<Self, Error> {
        if let Some(address) = options.listen.filter(|address| !address.ip().is_loopback()) {
            return Err(Error::NotLoopback(address));
        }
        if options.nodes > MAX_NODES {
            return Err(Error::TooManyNodes(options.nodes));
        }
        let (layout, folder) = open_folder(options.data_dir.as_deref())?;
        let lock = take_lock(&layout).await?;
        if let (Some(path), Some(_)) = (&options.kubeconfig, options.listen) {
            kubeconfig::check_place(path)?;
        }

        let audit = options
            .audit
            .as_ref()
            .map(AuditOptions::start)
            .transpose()?;
        let keys = tokio::task::spawn_blocking({
            let certificates = layout.certificates();
            let (ephemeral, serves) = (options.ephemeral, options.listen.is_some());
            move || Keys::load_or_create(&certificates, ephemeral, serves)
        });
        let mut writes = Writes::new();
        let has_lost_store = !options.ephemeral && has_lost_store(&layout);
        if has_lost_store {
            let store = layout.store();
            tracing::warn!(
                file = %store.display(),
                "the store of the cluster is missing: the cluster starts without its objects"
            );
            writes.warnings.push(format!(
                "the objects of the folder's last cluster are lost: {} is missing, so the cluster \
                 starts empty",
                store.display()
            ));
        }
        let opened = Opened::open(&options, &layout).await;
        let node_link = NodeLink::default();
        let settings = Settings::load_or_new(&layout);
        // Before any error can return, because files in the folder must not be written after it is
        // unlocked.
        let keys = keys.await.map_err(Error::part("certificates"))?;
        let (opened, settings, keys) = (opened?, settings?, keys?);
        let Opened {
            engine,
            mut has_policy,
        } = opened;
        let server = ApiServer::new(longshore_apiserver::Options {
            engine: engine.clone(),
            token_key: Some(keys.tokens.clone()),
            token: options.listen.map(|_| settings.token.clone()),
            node_logs: Arc::new(node_link.clone()),
            node_streams: Arc::new(node_link.clone()),
            faults: options.faults,
            authorization: options.authorization,
            // Without the built-in controllers, the user's own controllers may act.
            warn_unhandled_kinds: options.controllers,
        });
        if let Some(log) = &audit {
            server.record_to(log.clone());
        }
        if options.ephemeral && !has_policy {
            let ensured = server.ensure_default_policy().await;
            ensured.map_err(Error::part(POLICY))?;
            engine::keep_new(&engine, &options);
            has_policy = true;
        }
        let mut started = Self {
            engine,
            cluster: Cluster::from_service(server.service(), "default"),
            internal: Cluster::from_service(server.sheltered_service(), "default"),
            faults: server.faults().clone(),
            audit,
            endpoint: None,
            controllers: None,
            tasks: JoinSet::new(),
            node: Arc::default(),
            ephemeral: options.ephemeral,
            layout,
            lock,
            folder,
            warnings: Vec::new(),
        };
        // From here on, a failed start must stop the components that are already running.
        let parts = started.start_parts(
            &options,
            (&server, has_policy),
            (settings, keys),
            (&mut writes, &node_link),
            has_lost_store,
        );
        match parts.await {
            Ok(()) => {
                started.warnings = writes.warnings;
                Ok(started)
            }
            Err(error) => {
                started.stop().await;
                Err(error)
            }
        }
    }

    async fn start_parts(
        &mut self,
        options: &Options,
        (server, has_policy): (&ApiServer, bool),
        (settings, keys): (Settings, Keys),
        (writes, node_link): (&mut Writes, &NodeLink),
        has_lost_store: bool,
    ) -> Result<(), Error> {
        let volumes = self.layout.volumes(true);
        if options.ephemeral {
            // A process that did not exit cleanly may have left files.
            set_aside(&volumes).map_err(Error::file("empty", &volumes))?;
        }
        let authority = &keys.authority;
        let bound = match options.listen {
            Some(address) => {
                descriptors::raise_limit();
                let listener = bind(address, settings.port).await?;
                let local = listener.local_addr();
                let local = local.map_err(|source| Error::Listen { address, source })?;
                Some((listener, local))
            }
            None => None,
        };
        let access = bound.as_ref().zip(authority.as_ref());
        let access = access.map(|((_, local), authority)| ApiAccess {
            host: local.ip().to_string(),
            port: local.port(),
            ca_pem: authority.ca_pem(),
        });
        let node = async {
            if options.nodes == 0 {
                return Ok(None);
            }
            let data_dir = self.layout.node(options.ephemeral);
            if options.ephemeral {
                set_aside(&data_dir).map_err(Error::file("empty", &data_dir))?;
            }
            let last_end = End::read(&self.layout).map_err(Error::part("node"))?;
            let options = longshore_node::Options {
                cluster: self.internal.clone().with_user_agent("longshore-node"),
                nodes: node_names(options.nodes),
                data_dir,
                path_prepend: options.program_dir.clone(),
                access,
                log_limits: options.log_limits,
                keep_logs: options.keep_logs,
                kept_logs_limit: Some(self.layout.kept_logs_limit()),
                image_entrypoints: options.image_entrypoints.clone(),
                image_users: options.image_users.clone(),
                device_root: options.device_root.clone(),
                fill_volumes: options.fill_volumes.clone(),
                collect_files: options.collect_files.clone(),
                clock: options.clock.clone(),
                last_end: last_end.map(|end| longshore_node::LastEnd {
                    at: end.at,
                    cause: end.sentence(),
                }),
            };
            let start = move || start::nodes(options.clone());
            let part = writes.part(&mut self.tasks, "nodes", start).await;
            Ok::<_, Error>(Some(part))
        };
        let policy = async {
            match has_policy {
                true => Ok(()),
                false => server.ensure_default_policy().await,
            }
        };
        let (node, policy) = tokio::join!(node, policy);
        policy.map_err(Error::part(POLICY))?;
        let (mut has_nodes, mut late_nodes) = (false, None);
        match node? {
            Some(Part::Done(agent)) => {
                let agent = agent.map_err(Error::part("node"))?;
                node_link.fill(&agent);
                *self.node.lock().await = Some(agent);
                has_nodes = true;
            }
            Some(Part::Later(agent)) => late_nodes = Some(agent),
            None => {}
        }
        if options.controllers {
            // After the nodes, which clients wait for.
            let cluster = self.internal.clone().with_user_agent(controllers::AGENT);
            let settings = controllers::settings(options, &self.layout, &keys);
            if let Some(local) = &settings.local_volumes {
                let installed = async {
                    match has_lost_store {
                        true => local.install_new(&cluster).await,
                        false => local.install(&cluster).await,
                    }
                };
                writes.once("default storage class", installed).await;
            }
            if has_nodes {
                // A new node is tainted as not ready until a controller has seen that it is ready.
                let tainted = longshore_controllers::taint_nodes(&cluster, &options.clock);
                writes.once("nodes' taints", tainted).await;
            }
            self.controllers = Some(controllers::Running::start(cluster, settings));
            let cluster = self.internal.clone().with_user_agent("kube-apiserver");
            self.tasks.spawn(namespaces::keep(cluster));
        }
        self.tasks.spawn(server.aggregate());
        self.tasks
            .spawn(engine::end_definitions(self.engine.clone()));
        match bound.zip(keys.authority) {
            Some((bound, authority)) => {
                let bound = (bound, options.kubeconfig.clone());
                self.listen(bound, (server, settings), authority, writes)
                    .await?;
            }
            None => self.sync().await?,
        }
        if let Some(agent) = late_nodes {
            self.tasks
                .spawn(start_later(agent, self.node.clone(), node_link.clone()));
        }
        Ok(())
    }

    /// Makes the objects that the start has written durable, and begins to run pods.
    async fn sync(&self) -> Result<(), Error> {
        self.engine.sync().await.map_err(Error::part("store"))?;
        if let Some(node) = &*self.node.lock().await {
            node.run_pods().await;
        }
        Ok(())
    }

    async fn listen(
        &mut self,
        ((listener, local), kubeconfig_path): ((TcpListener, SocketAddr), Option<PathBuf>),
        (server, mut settings): (&ApiServer, Settings),
        authority: Arc<Authority>,
        writes: &mut Writes,
    ) -> Result<(), Error> {
        let identity = authority
            .server(&[local.ip().to_string()])
            .map_err(Error::part("certificates"))?;

        let publisher = self.internal.clone().with_user_agent("kube-apiserver");
        let cluster = publisher.clone();
        let work = move || {
            let cluster = cluster.clone();
            async move {
                let published = publish::publish(&cluster, local).await;
                published.map_err(start::refused)
            }
        };
        let what = "endpoints of the API server";
        writes.part(&mut self.tasks, what, work).await;
        let request_headers = server.request_headers();
        let request_headers = request_headers.map_err(Error::part("certificates"))?;
        let client_ca = Some(authority.ca_pem());
        let work = move || {
            let cluster = publisher.clone();
            let (headers, client_ca) = (request_headers.clone(), client_ca.clone());
            async move {
                let published = publish::publish_authentication(&cluster, headers, client_ca);
                published.await.map_err(start::refused)
            }
        };
        let what = "settings of aggregated API servers";
        writes.part(&mut self.tasks, what, work).await;

        let url = format!("https://{local}");
        settings.port = local.port();
        let durability = match self.folder {
            Some(_) => Durability::Volatile,
            None => Durability::Durable,
        };
        // The disk stores the files and the objects at the same time.
        let files = tokio::task::spawn_blocking({
            let (layout, url) = (self.layout.clone(), url.clone());
            move || -> Result<String, Error> {
                settings.save(&layout, durability)?;
                let administrator = authority
                    .administrator(&layout.certificates())
                    .map_err(Error::part("certificates"))?;
                let authority = authority.ca_pem();
                let text = kubeconfig::text(&url, &authority, &settings.token, &administrator);
                // The instance always keeps its own copy. The file at another path belongs to the
                // user, who also removes it.
                let own = layout.kubeconfig();
                longshore_files::replace_if_changed(&own, text.as_bytes(), durability)?;
                Ok(text)
            }
        });
        let (synced, files) = tokio::join!(self.sync(), files);
        let text = files.map_err(Error::part("files"))??;
        synced?;
        if let Some(path) = &kubeconfig_path {
            longshore_files::replace_output(path, text.as_bytes())?;
        }
        let kubeconfig = kubeconfig_path.unwrap_or_else(|| self.layout.kubeconfig());

        let (shutdown, ended) = oneshot::channel::<()>();
        let server = server.clone();
        let task = tokio::spawn(async move {
            let ended = async {
                let _ = ended.await;
            };
            server.serve(listener, identity, ended).await
        });
        self.endpoint = Some(Endpoint {
            url,
            kubeconfig,
            shutdown: Some(shutdown),
            task,
        });
        Ok(())
    }

    /// Returns a client that calls the API server in process, without sockets or
    /// TLS.
    #[must_use]
    pub fn cluster(&self) -> Cluster {
        self.cluster.clone()
    }

    /// Returns the client of the cluster's own components. Injected faults do not
    /// affect it.
    pub(crate) fn internal(&self) -> Cluster {
        self.internal.clone()
    }

    /// Returns a snapshot of all objects. Takes microseconds for any number of
    /// objects. Other clusters can start from it ([`Options::snapshot`]), and this
    /// cluster can return to it ([`EmbeddedCluster::restore`]).
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use longshore_embedded::{EmbeddedCluster, Options};
    ///
    /// let prepared = longshore_embedded::start_server().await?;
    /// // … create what every test needs …
    /// let mut options = Options::server();
    /// options.snapshot = Some(prepared.snapshot());
    /// let first = EmbeddedCluster::start(options.clone()).await?;
    /// let second = EmbeddedCluster::start(options).await?;
    /// // Neither sees the changes of the other.
    /// # for cluster in [prepared, first, second] { cluster.stop().await; }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.engine.snapshot()
    }

    /// Returns to a snapshot: the cluster then has exactly the objects of the snapshot, with their
    /// names, UIDs and resource versions. Watches end with `410 Expired`, so that clients list
    /// again; informers and caches do this on their own. Pods that are not in the snapshot end.
    ///
    /// # Errors
    /// The cluster stores its objects on disk.
    pub async fn restore(&self, snapshot: &Snapshot) -> Result<(), Error> {
        let restored = self.engine.restore(snapshot).await;
        restored.map_err(Error::Restore)
    }

    /// Returns the clock of the cluster. A manual clock ([`Options::clock`]) stands still
    /// until it is advanced.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use longshore_embedded::{Clock, EmbeddedCluster, Options};
    ///
    /// let mut options = Options::server();
    /// options.clock = Clock::manual("2026-01-01T00:00:00Z".parse()?);
    /// let embedded = EmbeddedCluster::start(options).await?;
    /// embedded.clock().advance(Duration::from_secs(3600)).await?;
    /// assert_eq!(embedded.clock().now().to_string(), "2026-01-01T01:00:00Z");
    /// # embedded.stop().await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn clock(&self) -> ClusterClock {
        self.engine.clock()
    }

    /// Expires the watch history now, as a cluster does after some minutes. Watches
    /// and list pages that start at an earlier resource version get `410 Expired`.
    /// Use it to test programs that must handle this error.
    pub async fn expire_history(&self) {
        self.faults.expire_history().await;
    }

    /// Returns the fault injection, for tests of programs that use this cluster
    /// over its endpoint or with [`EmbeddedCluster::cluster`]. Faults do not affect
    /// the cluster's own components.
    ///
    /// ```
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use longshore_embedded::FaultRule;
    ///
    /// let embedded = longshore_embedded::start().await?;
    /// let rule = FaultRule::answer(409).verbs(["update", "patch"]).times(2);
    /// let id = embedded.faults().add(rule)?;
    /// // … run the code under test …
    /// assert_eq!(embedded.faults().fired(&id), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Returns the URL of the endpoint; `None` without an endpoint.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.endpoint.as_ref().map(|endpoint| endpoint.url.as_str())
    }

    /// Returns the path of the kubeconfig for other programs; `None` without an
    /// endpoint.
    #[must_use]
    pub fn kubeconfig_path(&self) -> Option<&Path> {
        self.endpoint
            .as_ref()
            .map(|endpoint| endpoint.kubeconfig.as_path())
    }

    /// Returns the layout of the instance's folder.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Stops the controllers first, so that they do not create further objects, then the node with
    /// every process that it started, then the endpoint. Returns when all have stopped.
    pub fn stop(self) -> BoxFuture<'static, ()> {
        // Boxed, so that this crate compiles the future, not each crate that awaits it.
        Box::pin(self.end())
    }

    /// Returns true if the folder of the cluster still has the path that it had when the cluster
    /// started.
    pub(crate) fn has_folder(&self) -> bool {
        self.lock.is_at(&self.layout.lock())
    }

    /// Returns the problems of the start, as sentences for the user.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    async fn end(mut self) {
        self.tasks.shutdown().await;
        if let Some(controllers) = self.controllers.take() {
            controllers.stop().await;
        }
        let node = self.node.lock().await.take();
        if let Some(node) = node {
            node.stop().await;
        }
        if let Some(mut endpoint) = self.endpoint.take() {
            if let Some(shutdown) = endpoint.shutdown.take() {
                let _ = shutdown.send(());
            }
            match (&mut endpoint.task).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the endpoint failed"),
                Err(error) => tracing::warn!(%error, "the endpoint task failed"),
            }
        }
        self.cluster.close();
        self.internal.close();
        if let Some(log) = self.audit.take() {
            log.flush().await;
        }
        if self.ephemeral && self.has_folder() {
            for dir in [self.layout.node(true), self.layout.volumes(true)] {
                let removed = dir.clone();
                let removal = tokio::task::spawn_blocking(move || remove_tree(&removed)).await;
                if let Err(error) = removal.unwrap_or_else(|error| Err(error.into())) {
                    tracing::warn!(%error, dir = %dir.display(), "cannot remove a folder of the node");
                }
            }
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Uses an agent that starts later than its cluster.
async fn start_later(
    agent: oneshot::Receiver<Result<NodeAgent, NodeError>>,
    place: Arc<Mutex<Option<NodeAgent>>>,
    node_link: NodeLink,
) {
    match agent.await {
        Ok(Ok(agent)) => {
            node_link.fill(&agent);
            agent.run_pods().await;
            tracing::info!("the nodes are registered");
            *place.lock().await = Some(agent);
        }
        Ok(Err(error)) => tracing::error!(%error, "the nodes cannot start"),
        // The cluster is stopping.
        Err(_) => {}
    }
}
