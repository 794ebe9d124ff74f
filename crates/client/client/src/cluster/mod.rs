//! A connection to a cluster: its transport, and what is known about the server.

mod send;
mod watch_lists;

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use kube_client::{Client, client::Body};
use longshore_model::{Gvk, KindInfo, kind::BUILTIN};
use tower::{BoxError, Service};

use watch_lists::WatchLists;

use crate::{
    discovery::Discovery,
    error::Result,
    kind::KindRef,
    transport::{Timing, Transport},
    versions::Versions,
};

/// A connection to a cluster. Cheap to clone. Clones share one pool of connections and are
/// closed together.
///
/// Requests need a running tokio runtime.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use longshore_client::kinds::{Any, Deployment};
/// let painter = cluster.clone().with_user_agent("painter");
/// let maps = painter.configmaps().in_namespace(painter.default_namespace())?;
/// let data = serde_json::json!({"metadata": {"name": "a"}, "data": {"colour": "red"}});
/// let map = maps.create(&data).await?;
/// assert_eq!(map.raw()?["metadata"]["managedFields"][0]["manager"], "painter");
///
/// // Three ways to specify a kind.
/// let deployments = cluster.view::<Deployment>();
/// let by_word = cluster.kind("deploy").await?;
/// assert_eq!(by_word.kind(), deployments.kind());
/// let by_value = cluster.view_of::<Any>(by_word.kind().clone());
/// assert!(by_value.list().await?.items.is_empty());
///
/// let version = cluster.proxy().get("/version", &[]).await?;
/// assert_eq!(version["major"], "1");
/// cluster.close();
/// assert!(painter.is_closed());
/// # Ok(()) });
/// ```
#[derive(Clone)]
pub struct Cluster {
    pub(crate) transport: Transport,
    default_namespace: Arc<str>,
    pub(crate) shared: Arc<Shared>,
}

/// The connection of an item: a [`Cluster`], or one of [`blocking`](crate::blocking).
pub trait Connection: AsRef<Cluster> + Clone + Send + Sync + 'static {}

impl Connection for Cluster {}

impl AsRef<Cluster> for Cluster {
    fn as_ref(&self) -> &Cluster {
        self
    }
}

pub(crate) struct Shared {
    discovery: Discovery,
    pub(crate) versions: Versions,
    pub(crate) watch_lists: WatchLists,
}

impl Cluster {
    fn new(transport: Transport, default_namespace: &str) -> Self {
        let shared = Shared {
            discovery: Discovery::default(),
            versions: Versions::default(),
            watch_lists: WatchLists::default(),
        };
        Self {
            transport,
            default_namespace: default_namespace.into(),
            shared: Arc::new(shared),
        }
    }

    /// Returns true if this process runs in a pod that has credentials for the cluster. No request
    /// is sent.
    ///
    /// ```
    /// # use longshore_client::Cluster;
    /// let environment = if Cluster::is_in_pod() { "in a pod" } else { "elsewhere" };
    /// println!("this program runs {environment}");
    /// ```
    #[must_use]
    pub fn is_in_pod() -> bool {
        Transport::is_in_pod()
    }

    /// Connects to the cluster that the environment selects: from `KUBECONFIG`, otherwise from
    /// `~/.kube/config`, otherwise, in a pod, the pod's own cluster. Sends no request.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if no cluster is configured, or its
    /// configuration is invalid.
    ///
    /// ```no_run
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let cluster = longshore_client::Cluster::connect().await?;
    /// println!("{}", cluster.url());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn connect() -> Result<Self> {
        let (transport, namespace) = Transport::infer().await?;
        Ok(Self::new(transport, &namespace))
    }

    /// Connects to the cluster of a kubeconfig: of the file `path` or the default files,
    /// and of `context` or the current context. Sends no request.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) names the file and the problem.
    ///
    /// ```
    /// # longshore_embedded::example(async |_| {
    /// use longshore_client::Cluster;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("config");
    /// let kubeconfig = "
    /// apiVersion: v1
    /// kind: Config
    /// clusters: [{name: here, cluster: {server: 'http://localhost:8001'}}]
    /// users: [{name: me, user: {}}]
    /// contexts: [{name: shop, context: {cluster: here, user: me, namespace: shop}}]
    /// ";
    /// std::fs::write(&path, kubeconfig)?;
    /// let cluster = Cluster::from_kubeconfig(Some(&path), Some("shop")).await?;
    /// assert_eq!(cluster.default_namespace(), "shop");
    /// assert_eq!(cluster.url(), "http://localhost:8001");
    /// let error = Cluster::from_kubeconfig(Some(&path), Some("none")).await.unwrap_err();
    /// assert!(error.to_string().contains("it has no context"));
    /// # Ok(()) });
    /// ```
    pub async fn from_kubeconfig(path: Option<&Path>, context: Option<&str>) -> Result<Self> {
        let (path, context) = (path.map(Path::to_owned), context.map(str::to_owned));
        let (transport, namespace) = Transport::from_kubeconfig(path, context).await?;
        Ok(Self::new(transport, &namespace))
    }

    /// Connects to the cluster at a URL without authentication, for example the URL of `kubectl
    /// proxy`. A path in the URL is the prefix of every request's path. `/api` at its end is
    /// ignored, because requests contain it already.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if the URL is not an http or https URL.
    ///
    /// ```
    /// let cluster = longshore_client::Cluster::from_url("http://localhost:8001")?;
    /// assert_eq!(cluster.url(), "http://localhost:8001");
    /// let same = longshore_client::Cluster::from_url("http://localhost:8001/api/")?;
    /// assert_eq!(same.url(), cluster.url());
    /// # Ok::<(), longshore_client::Error>(())
    /// ```
    pub fn from_url(url: &str) -> Result<Self> {
        Ok(Self::new(Transport::from_url(url)?, "default"))
    }

    /// Connects to a cluster in the same process: any service that answers HTTP requests as
    /// an API server does. No socket is opened.
    ///
    /// ```
    /// # longshore_embedded::example(async |_| {
    /// use http::{Request, Response};
    /// use http_body_util::Full;
    /// use kube_client::client::Body;
    /// use longshore_client::Cluster;
    /// let service = tower::service_fn(async |request: Request<Body>| {
    ///     let item = serde_json::json!({
    ///         "apiVersion": "v1", "kind": "Node",
    ///         "metadata": {"name": request.uri().path().rsplit('/').next()},
    ///     });
    ///     Ok::<_, http::Error>(Response::new(Full::<bytes::Bytes>::from(item.to_string())))
    /// });
    /// let cluster = Cluster::from_service(service, "default");
    /// assert_eq!(cluster.nodes().fetch("a").await?.name(), "a");
    /// # Ok(()) });
    /// ```
    pub fn from_service<S, B>(service: S, default_namespace: &str) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let transport = Transport::from_service(service, default_namespace);
        Self::new(transport, default_namespace)
    }

    /// Returns the same connection with other retries, back-off and timeouts.
    #[must_use]
    pub fn with_timing(mut self, timing: Timing) -> Self {
        self.transport.set_timing(timing);
        self
    }

    /// Returns the same connection with another client name: the part of the user agent
    /// before the slash. Servers record changes under this name. The default is
    /// `longshore`. A name that is not valid in a header changes nothing.
    #[must_use]
    pub fn with_user_agent(mut self, name: &str) -> Self {
        self.transport.set_user_agent(name);
        self
    }

    /// Returns the same connection with another default namespace.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// let team = cluster.clone().with_default_namespace("team");
    /// assert_eq!(team.default_namespace(), "team");
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn with_default_namespace(mut self, namespace: &str) -> Self {
        self.default_namespace = namespace.into();
        self
    }

    /// Returns the same connection with a handler for the server's warnings: unknown
    /// fields, deprecated versions, violated policies. `handler` is called with the text of
    /// each warning. Do not trust the text: it may have any length and contain control
    /// characters. Without a handler, warnings are logged.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// use std::sync::{Arc, Mutex};
    /// let seen = Arc::new(Mutex::new(Vec::new()));
    /// let cluster = cluster.clone().with_warning_handler({
    ///     let seen = seen.clone();
    ///     move |text| seen.lock().unwrap().push(text.to_owned())
    /// });
    /// let map = serde_json::json!({
    ///     "apiVersion": "v1", "kind": "ConfigMap", "dat": {},
    ///     "metadata": {"name": "a", "namespace": "default"},
    /// });
    /// cluster.create(&map, None).await?;
    /// assert_eq!(*seen.lock().unwrap(), [r#"unknown field "dat""#]);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn with_warning_handler(mut self, handler: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.transport.set_warning_handler(handler);
        self
    }

    /// Returns kube-client's client on the same connection, for features that this crate
    /// does not have.
    ///
    /// # Panics
    /// Outside a tokio runtime, if no request has been sent yet.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// use http::Request;
    /// let request = Request::get("/version").body(Vec::new())?;
    /// let version: serde_json::Value = cluster.kube_client().request(request).await?;
    /// assert_eq!(version["major"], "1");
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn kube_client(&self) -> Client {
        self.transport.kube_client(self.default_namespace())
    }

    /// The namespace of the context; `default` if the context has none.
    #[must_use]
    pub fn default_namespace(&self) -> &str {
        &self.default_namespace
    }

    /// The URL of the cluster, without credentials.
    #[must_use]
    pub fn url(&self) -> String {
        self.transport.url().to_owned()
    }

    /// Ends the watches and caches of this cluster and its clones, and rejects further
    /// requests.
    pub fn close(&self) {
        self.transport.closed().cancel();
    }

    /// Returns true if the cluster was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.transport.closed().is_cancelled()
    }

    /// Finds the kind for a word as kubectl accepts it.
    pub(crate) async fn kind_by_name(&self, word: &str) -> Result<KindRef> {
        let of_items = builtin_of_list(word, |_| true);
        if let Some(info) = of_items {
            return Ok(info.into());
        }
        let discovery = &self.shared.discovery;
        Ok(discovery.by_name(&self.transport, word).await?.into())
    }

    /// Finds the kind with this `apiVersion` and `kind`.
    pub(crate) async fn kind_of(&self, gvk: &Gvk) -> Result<KindRef> {
        let known = BUILTIN.iter().find(|info| info.gvk == *gvk);
        match known {
            Some(info) => Ok(info.into()),
            None => {
                let discovery = &self.shared.discovery;
                Ok(discovery.by_gvk(&self.transport, gvk).await?.into())
            }
        }
    }

    /// Like [`Cluster::kind_of`]; the kind of a list means the kind of its items.
    pub(crate) async fn kind_of_items(&self, gvk: &Gvk) -> Result<KindRef> {
        match Self::items_of(gvk) {
            Some(info) => Ok(info.into()),
            None => match (self.kind_of(gvk).await, gvk.kind.strip_suffix("List")) {
                (Err(error), Some(kind)) => {
                    let items = Gvk::from_api_version(&gvk.api_version(), kind);
                    self.kind_of(&items).await.map_err(|_| error)
                }
                (outcome, _) => outcome,
            },
        }
    }

    /// The built-in kind of the items, if `gvk` is the kind of a list.
    pub(crate) fn items_of(gvk: &Gvk) -> Option<&'static KindInfo> {
        builtin_of_list(&gvk.kind, |info| {
            info.gvk.group == gvk.group && info.gvk.version == gvk.version
        })
    }

    /// The paths of a kind, one for each version that the cluster serves.
    pub(crate) async fn api_paths(&self, info: &KindInfo) -> Result<Vec<String>> {
        let discovery = &self.shared.discovery;
        let versions = discovery.versions(&self.transport, &info.gvk).await?;
        Ok(versions.iter().map(|info| info.api_path()).collect())
    }
}

/// The built-in kind of the items of a list: `Pod` for `PodList`.
fn builtin_of_list(
    list_kind: &str,
    wanted: impl Fn(&KindInfo) -> bool,
) -> Option<&'static KindInfo> {
    let kind = list_kind.strip_suffix("List")?;
    BUILTIN
        .iter()
        .find(|info| info.gvk.kind == kind && wanted(info))
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("url", &self.transport.url())
            .finish_non_exhaustive()
    }
}
