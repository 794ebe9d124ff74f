//! A connection to a cluster, and the way to its views.

mod connection;
mod timing;

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use kube_client::{Client, Config, client::Body};
use longshore_model::{Gvk, kind::BUILTIN};
use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service};

use crate::{
    config::{self, Source},
    discovery::Discovery,
    error::{Error, Result},
    kinds::{Any, Kind},
    proxy::ApiServerProxy,
    versions::Versions,
    view::View,
    warnings::Warnings,
    watch::WatchLists,
};

use connection::{Connection, Make, Renewing};
pub use timing::Timing;

/// The user agent where no other is given.
const AGENT: &str = concat!("longshore/", env!("CARGO_PKG_VERSION"));

/// A connection to a cluster. Cheap to clone; clones share one pool of
/// connections and are closed together.
///
/// Its requests need a running tokio runtime.
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
/// // Three ways to say which kind.
/// let deployments = cluster.view::<Deployment>();
/// let by_word = cluster.kind("deploy").await?;
/// assert_eq!(by_word.kind(), deployments.kind());
/// let by_value = cluster.view_of(Any::new(by_word.kind().clone().into()));
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
    pub(crate) shared: Arc<Shared>,
    pub(crate) timing: Arc<Timing>,
    pub(crate) agent: HeaderValue,
    pub(crate) warnings: Warnings,
}

pub(crate) struct Shared {
    connection: RwLock<Connection>,
    /// One renewal of credentials at a time.
    renewing: tokio::sync::Mutex<()>,
    source: Option<Source>,
    default_namespace: String,
    url: String,
    pub(crate) closed: CancellationToken,
    pub(crate) discovery: Discovery,
    pub(crate) versions: Versions,
    pub(crate) watch_lists: WatchLists,
}

impl Cluster {
    fn new(connection: Connection, source: Option<Source>, url: String, namespace: &str) -> Self {
        let shared = Shared {
            connection: RwLock::new(connection),
            renewing: tokio::sync::Mutex::new(()),
            source,
            default_namespace: namespace.to_owned(),
            url,
            closed: CancellationToken::new(),
            discovery: Discovery::default(),
            versions: Versions::default(),
            watch_lists: WatchLists::default(),
        };
        Self {
            shared: Arc::new(shared),
            timing: Arc::new(Timing::default()),
            agent: HeaderValue::from_static(AGENT),
            warnings: Warnings::default(),
        }
    }

    async fn from_source(source: Source) -> Result<Self> {
        let config = source.load().await?;
        let (url, namespace) = (
            config::shown(&config.cluster_url),
            config.default_namespace.clone(),
        );
        let (client, expires) = config::client_in_background(config).await?;
        let connection = Connection {
            client: Some(client),
            make: Mutex::new(None),
            generation: 0,
            expires,
        };
        Ok(Self::new(connection, Some(source), url, &namespace))
    }

    /// The cluster that the environment names: `KUBECONFIG`, else
    /// `~/.kube/config`, else, in a pod, its own cluster. No request is sent.
    ///
    /// # Errors
    /// [`Error::Config`] when none is configured, or not rightly.
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
        Self::from_source(Source::Infer).await
    }

    /// The cluster of a kubeconfig: of the file `path` or the default ones,
    /// and of `context` or the current one. No request is sent.
    ///
    /// # Errors
    /// [`Error::Config`] names the file and what is wrong with it.
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
        Self::from_source(Source::Kubeconfig { path, context }).await
    }

    /// The cluster at a plain URL, as `kubectl proxy` gives one. A path in
    /// the URL stands before every request's.
    ///
    /// # Errors
    /// [`Error::Config`] when it is no http or https URL.
    ///
    /// ```
    /// let cluster = longshore_client::Cluster::from_url("http://localhost:8001")?;
    /// assert_eq!(cluster.url(), "http://localhost:8001");
    /// # Ok::<(), longshore_client::Error>(())
    /// ```
    pub fn from_url(url: &str) -> Result<Self> {
        let wrong = || {
            Error::Config(
                "the cluster's URL is not valid: write it as http://localhost:8001/".to_owned(),
            )
        };
        let uri: http::Uri = url.trim_end_matches('/').parse().map_err(|_| wrong())?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(wrong());
        }
        let shown = config::shown(&uri);
        let config = Config::new(uri);
        let refused = Arc::new(RwLock::new(None));
        let make: Make = {
            let refused = refused.clone();
            Box::new(move || {
                config::client(config).unwrap_or_else(|error| {
                    *refused.write() = Some(error.to_string());
                    let failing = tower::service_fn(move |_| {
                        let problem = refused.read().clone().unwrap_or_default();
                        async move { Err::<Response<Body>, BoxError>(problem.into()) }
                    });
                    Client::new(failing, "default")
                })
            })
        };
        let connection = Connection {
            client: None,
            make: Mutex::new(Some(make)),
            generation: 0,
            expires: None,
        };
        Ok(Self::new(connection, None, shown, "default"))
    }

    /// A cluster in the same process: any service that answers HTTP requests
    /// as an API server does. No socket is opened.
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
        let namespace = default_namespace.to_owned();
        let make: Make = Box::new(move || Client::new(service, namespace));
        let connection = Connection {
            client: None,
            make: Mutex::new(Some(make)),
            generation: 0,
            expires: None,
        };
        Self::new(
            connection,
            None,
            "http://in-process".to_owned(),
            default_namespace,
        )
    }

    /// The same connection with another patience.
    #[must_use]
    pub fn with_timing(mut self, timing: Timing) -> Self {
        self.timing = Arc::new(timing);
        self
    }

    /// With another name for this client: the part of its user agent before the
    /// slash. Servers record what it writes under that name. The default is
    /// `longshore`; a name that cannot stand in a header changes nothing.
    #[must_use]
    pub fn with_user_agent(mut self, name: &str) -> Self {
        let agent = format!("{name}/{}", env!("CARGO_PKG_VERSION"));
        if let Ok(agent) = HeaderValue::from_str(&agent) {
            self.agent = agent;
        }
        self
    }

    /// With a handler for the server's warnings: unknown fields, deprecated versions,
    /// violated policies. `handler` is called with the text of each warning, which is
    /// not trusted: it may be of any length and hold control characters. Without a
    /// handler, warnings are logged.
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
        self.warnings = Warnings::to(handler);
        self
    }

    /// kube-client's client on the same connection, for what this crate does
    /// not do.
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
        match self.shared.source {
            Some(_) => Client::new(Renewing(self.clone()), self.default_namespace()),
            None => self.current().0,
        }
    }

    /// The namespace of the context; `default` if it names none.
    #[must_use]
    pub fn default_namespace(&self) -> &str {
        &self.shared.default_namespace
    }

    /// Where the cluster is, without credentials.
    #[must_use]
    pub fn url(&self) -> String {
        self.shared.url.clone()
    }

    /// Requests by path, for what has no view.
    #[must_use]
    pub fn proxy(&self) -> ApiServerProxy {
        ApiServerProxy::new(self.clone())
    }

    /// Ends the watches and caches of this cluster and its clones, and
    /// refuses further requests.
    pub fn close(&self) {
        self.shared.closed.cancel();
    }

    /// Whether it was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.closed.is_cancelled()
    }

    /// All objects of a kind; nothing is requested yet.
    #[must_use]
    pub fn view<K: Kind + Default>(&self) -> View<K> {
        self.view_of(K::default())
    }

    /// All objects of a kind given by value; nothing is requested yet.
    #[must_use]
    pub fn view_of<K: Kind>(&self, kind: K) -> View<K> {
        View::new(self.clone(), kind)
    }

    /// All objects of the kind that a person means by `word`: `deploy`,
    /// `jobs.batch`, `Pod`. What this crate does not know is looked up in
    /// the cluster, once.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the cluster has no such kind.
    pub async fn kind(&self, word: &str) -> Result<View<Any>> {
        let info = self.shared.discovery.called(self, word).await?;
        Ok(self.view_of(Any(info)))
    }

    /// All objects of the kind of an object's own words: its `apiVersion` and
    /// `kind`. What this crate does not know is looked up in the cluster.
    ///
    /// # Errors
    /// As [`Cluster::kind`].
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// # cluster.create_manifest("
    /// # apiVersion: apiextensions.k8s.io/v1
    /// # kind: CustomResourceDefinition
    /// # metadata: {name: certificates.cert-manager.io}
    /// # spec:
    /// #   group: cert-manager.io
    /// #   scope: Namespaced
    /// #   names:
    /// #     plural: certificates
    /// #     singular: certificate
    /// #     kind: Certificate
    /// #     listKind: CertificateList
    /// #   versions:
    /// #   - name: v1
    /// #     served: true
    /// #     storage: true
    /// #     schema: {openAPIV3Schema: {type: object}}
    /// # ---
    /// # {apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: web}}
    /// # ", Some("default")).await?;
    /// let certificates = cluster.kind_in("cert-manager.io/v1", "Certificate").await?;
    /// for certificate in certificates.list().await? {
    ///     assert_eq!(certificate.name(), "web");
    /// }
    /// # Ok(()) });
    /// ```
    pub async fn kind_in(&self, api_version: &str, kind: &str) -> Result<View<Any>> {
        let gvk = Gvk::from_api_version(api_version, kind);
        Ok(self.view_of(self.kind_of(&gvk).await?))
    }

    /// The kind of an object's own words.
    pub(crate) async fn kind_of(&self, gvk: &Gvk) -> Result<Any> {
        let known = BUILTIN.iter().find(|info| info.gvk == *gvk);
        Ok(Any(match known {
            Some(info) => Arc::new(info.clone()),
            None => self.shared.discovery.of_type(self, gvk).await?,
        }))
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("url", &self.shared.url)
            .finish_non_exhaustive()
    }
}
