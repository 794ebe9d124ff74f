//! A running embedded cluster and the order in which its parts start and stop.

use std::{
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use longshore_apiserver::{ApiServer, Authority, Faults, TokenKey};
use longshore_client::Cluster;
use longshore_controllers::Controllers;
use longshore_engine::{Engine, OpenError, Storage};
use longshore_node::{ApiAccess, NodeAgent};
use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

use crate::{
    Error, NAME, Options, abandoned, descriptors, end::End, files::Durability, kubeconfig,
    layout::Layout, lock::Lock, logs::LogBridge, namespaces, publish, settings::Settings,
    streams::StreamBridge,
};

/// A running embedded cluster. Stop it with [`EmbeddedCluster::stop`]; a drop
/// closes the endpoint, but does not wait for anything.
pub struct EmbeddedCluster {
    cluster: Cluster,
    /// What the cluster's own parts use: no fault on demand reaches it.
    sheltered: Cluster,
    faults: Faults,
    endpoint: Option<Endpoint>,
    controllers: Option<Controllers>,
    /// Keeps the system namespaces; aborted when it is dropped.
    namespaces: JoinSet<()>,
    node: Option<NodeAgent>,
    layout: Layout,
    ephemeral: bool,
    // The lock goes before the temporary folder it is in: fields are dropped
    // in the order in which they stand here.
    _lock: Lock,
    folder: Option<tempfile::TempDir>,
}

/// The TLS endpoint.
struct Endpoint {
    url: String,
    kubeconfig: PathBuf,
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
}

impl EmbeddedCluster {
    /// Starts a cluster and waits until it serves.
    ///
    /// # Errors
    /// The folder is another process's, a file cannot be used, or a part does
    /// not start. Nothing is left running then.
    pub async fn start(options: Options) -> Result<Self, Error> {
        if let Some(address) = options.listen.filter(|address| !address.ip().is_loopback()) {
            return Err(Error::NotLoopback(address));
        }
        let (layout, folder) = open_folder(options.data_dir.as_deref())?;
        let lock = take_lock(&layout).await?;
        if let (Some(path), Some(_)) = (&options.kubeconfig, options.listen) {
            kubeconfig::check_place(path)?;
        }

        let engine = open_store(&options, &layout).await?;
        let bridges = (LogBridge::default(), StreamBridge::default());
        let settings = Settings::load_or_new(&layout)?;
        // One that is kept needs a key that is kept: its tokens stay valid.
        let token_key = match options.ephemeral && options.listen.is_none() {
            true => TokenKey::ephemeral(),
            false => TokenKey::load_or_create(&layout.certificates()),
        };
        let server = ApiServer::new(longshore_apiserver::Options {
            engine,
            token_key: Some(token_key.map_err(Error::part("service account key"))?),
            token: options.listen.map(|_| settings.token.clone()),
            node_logs: Arc::new(bridges.0.clone()),
            node_streams: Arc::new(bridges.1.clone()),
            faults: options.faults,
            // Without our controllers, those of others may act.
            warn_idle: options.controllers,
        });
        let mut started = Self {
            cluster: Cluster::from_service(server.service(), "default"),
            sheltered: Cluster::from_service(server.sheltered_service(), "default"),
            faults: server.faults().clone(),
            endpoint: None,
            controllers: None,
            namespaces: JoinSet::new(),
            node: None,
            ephemeral: options.ephemeral,
            layout,
            _lock: lock,
            folder,
        };
        // From here on a failure has something to stop.
        match started
            .start_parts(&options, &server, settings, &bridges)
            .await
        {
            Ok(()) => Ok(started),
            Err(error) => {
                started.stop().await;
                Err(error)
            }
        }
    }

    async fn start_parts(
        &mut self,
        options: &Options,
        server: &ApiServer,
        settings: Settings,
        (logs, streams): &(LogBridge, StreamBridge),
    ) -> Result<(), Error> {
        let authority = match options.listen {
            Some(_) => Some(
                Authority::load_or_create(&self.layout.certificates())
                    .map_err(Error::part("certificates"))?,
            ),
            None => None,
        };
        let controllers = async {
            if !options.controllers {
                return Ok(None);
            }
            let cluster = self.sheltered.clone();
            let cluster = cluster.with_user_agent("longshore-controllers");
            let mut options = longshore_controllers::Options::default();
            options.root_ca = authority.as_ref().map(Authority::ca_pem);
            Controllers::start_with(cluster, options).await.map(Some)
        };
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
            if !options.node {
                return Ok(None);
            }
            let data_dir = self.layout.node(options.ephemeral);
            if options.ephemeral && data_dir.exists() {
                // Left by a process that could not tidy up.
                std::fs::remove_dir_all(&data_dir).map_err(Error::file("empty", &data_dir))?;
            }
            let last_end = End::read(&self.layout).map_err(Error::part("node"))?;
            NodeAgent::start(longshore_node::Options {
                cluster: self.sheltered.clone().with_user_agent("longshore-node"),
                name: NAME.to_owned(),
                data_dir,
                path_prepend: options.program_dir.clone(),
                access,
                log_limits: options.log_limits,
                image_entrypoints: options.image_entrypoints.clone(),
                device_root: options.device_root.clone(),
                fill_volumes: options.fill_volumes.clone(),
                last_end: last_end.map(|end| longshore_node::LastEnd {
                    at: end.at,
                    cause: end.sentence(),
                }),
            })
            .await
            .map(Some)
            .map_err(Error::part("node"))
        };
        let (controllers, node) = tokio::join!(controllers, node);
        // Both are kept before either is checked, so that a stop finds them.
        let controllers = controllers.map(|parts| self.controllers = parts);
        let node = node.map(|agent| self.node = agent);
        controllers.map_err(Error::part("controllers"))?;
        node?;
        if options.controllers {
            let cluster = self.sheltered.clone().with_user_agent("kube-apiserver");
            self.namespaces.spawn(namespaces::keep(cluster));
        }
        if let Some(node) = &self.node {
            logs.fill(node.logs());
            streams.fill(node.sessions());
        }
        if let (Some(bound), Some(authority)) = (bound, authority) {
            let place = options.kubeconfig.as_deref();
            self.listen((bound, place), server, settings, &authority)
                .await?;
        }
        Ok(())
    }

    async fn listen(
        &mut self,
        ((listener, local), place): ((TcpListener, SocketAddr), Option<&Path>),
        server: &ApiServer,
        mut settings: Settings,
        authority: &Authority,
    ) -> Result<(), Error> {
        let identity = authority
            .server(&[local.ip().to_string()])
            .map_err(Error::part("certificates"))?;

        let publisher = self.sheltered.clone().with_user_agent("kube-apiserver");
        publish::publish(&publisher, local)
            .await
            .map_err(Error::part("endpoints of the API server"))?;

        let url = format!("https://{local}");
        settings.port = local.port();
        let durability = match self.folder {
            Some(_) => Durability::Volatile,
            None => Durability::Durable,
        };
        settings.save(&self.layout, durability)?;
        let administrator = authority
            .administrator(&self.layout.certificates())
            .map_err(Error::part("certificates"))?;
        let text = kubeconfig::text(&url, &authority.ca_pem(), &settings.token, &administrator);
        // Our own copy always: another place is its owner's to tidy.
        let own = self.layout.kubeconfig();
        longshore_files::replace_if_changed(&own, text.as_bytes(), durability)?;
        let kubeconfig = place.map_or(own, Path::to_owned);
        if place.is_some() {
            longshore_files::replace_output(&kubeconfig, text.as_bytes())?;
        }

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

    /// A client of the cluster, in process: no socket, no TLS.
    #[must_use]
    pub fn cluster(&self) -> Cluster {
        self.cluster.clone()
    }

    /// The client of the cluster's own parts: no fault on demand reaches it.
    pub(crate) fn sheltered(&self) -> Cluster {
        self.sheltered.clone()
    }

    /// Forgets the history now, as a cluster does after some minutes: watches
    /// and pages that begin before this moment get `410 Expired`. For
    /// tests of programs that must bear that.
    pub async fn expire_history(&self) {
        self.faults.expire_history().await;
    }

    /// Faults on demand, for tests of programs that talk to this cluster: over
    /// its endpoint or by [`EmbeddedCluster::cluster`]. The cluster's own parts
    /// do not feel them.
    ///
    /// ```
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use longshore_embedded::FaultRule;
    ///
    /// let embedded = longshore_embedded::start().await?;
    /// let rule = FaultRule::answer(409).verbs(["update", "patch"]).times(2);
    /// let id = embedded.faults().add(rule)?;
    /// // … what is tested runs …
    /// assert_eq!(embedded.faults().fired(&id), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Where other processes reach it; `None` without an endpoint.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.endpoint.as_ref().map(|endpoint| endpoint.url.as_str())
    }

    /// The kubeconfig that leads other programs to it; `None` without an
    /// endpoint.
    #[must_use]
    pub fn kubeconfig_path(&self) -> Option<&Path> {
        self.endpoint
            .as_ref()
            .map(|endpoint| endpoint.kubeconfig.as_path())
    }

    /// The folder of the instance.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Stops everything: first the controllers, so that nothing new begins,
    /// then the node with every process it started, then the endpoint. Returns
    /// when all of it has gone.
    pub async fn stop(mut self) {
        self.namespaces.shutdown().await;
        if let Some(controllers) = self.controllers.take() {
            controllers.stop().await;
        }
        if let Some(node) = self.node.take() {
            node.stop().await;
        }
        if let Some(mut endpoint) = self.endpoint.take() {
            if let Some(shutdown) = endpoint.shutdown.take() {
                let _ = shutdown.send(());
            }
            match (&mut endpoint.task).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the endpoint ended with an error"),
                Err(error) => tracing::warn!(%error, "the endpoint ended badly"),
            }
        }
        self.cluster.close();
        self.sheltered.close();
        if self.ephemeral {
            let dir = self.layout.node(true);
            if let Err(error) = std::fs::remove_dir_all(&dir)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!(%error, dir = %dir.display(), "the node's folder stays");
            }
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn open_folder(dir: Option<&Path>) -> Result<(Layout, Option<tempfile::TempDir>), Error> {
    match dir {
        // Absolute, because the kubeconfig's path is handed to others.
        Some(dir) => Ok((Layout::new(longshore_files::private_dir(dir)?), None)),
        None => {
            let parent = std::env::temp_dir();
            abandoned::remove_once(&parent);
            let folder = tempfile::Builder::new()
                .prefix(abandoned::PREFIX)
                .permissions(std::fs::Permissions::from_mode(0o700))
                .tempdir()
                .map_err(Error::file("create a folder in", parent))?;
            Ok((Layout::new(folder.path()), Some(folder)))
        }
    }
}

/// Opens the store. The instance is ours, so a store that is in use is in use
/// by a predecessor that is about to end and let go of it.
async fn open_store(options: &Options, layout: &Layout) -> Result<Engine, Error> {
    const TRIES: u32 = 500;
    let mut tries = 0;
    loop {
        let storage = if options.ephemeral {
            Storage::Memory
        } else {
            Storage::File(layout.store())
        };
        let opened = Engine::open(longshore_engine::Options {
            storage,
            ..longshore_engine::Options::default()
        });
        match opened {
            Err(OpenError::InUse { .. }) if tries < TRIES => {
                tries += 1;
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            opened => return opened.map_err(Error::part("store")),
        }
    }
}

/// Takes the instance's lock. Who only looks whether it is held has it for a
/// moment, too: hence more than one try.
async fn take_lock(layout: &Layout) -> Result<Lock, Error> {
    for _ in 0..20 {
        if let Some(lock) = Lock::try_exclusive(&layout.lock())? {
            return Ok(lock);
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    Err(Error::Busy(layout.dir().to_owned()))
}

/// Binds the address; for port 0 first the port of the last time.
async fn bind(address: SocketAddr, last_port: u16) -> Result<TcpListener, Error> {
    if address.port() == 0 && last_port != 0 {
        let same = SocketAddr::new(address.ip(), last_port);
        if let Ok(listener) = TcpListener::bind(same).await {
            return Ok(listener);
        }
        tracing::info!(
            port = last_port,
            "the port of the last time is taken; choosing another"
        );
    }
    TcpListener::bind(address)
        .await
        .map_err(|source| Error::Listen { address, source })
}
