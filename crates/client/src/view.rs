//! Views: which objects are meant, and how to read them. Making one does no
//! I/O. Lists are in `list.rs`, writing is in `write.rs`.

use std::sync::Arc;

use longshore_model::{FieldSelector, KindInfo, LabelSelector, name};

use crate::{
    cache::Cache,
    cluster::Cluster,
    data::Snapshot,
    error::{Error, Result},
    item::Item,
    kinds::Kind,
    options::Writing,
    transport::{Call, escape},
    watch::Watch,
};

/// The objects of a kind, of one namespace or all, that selectors match.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use longshore_client::FieldSelector;
/// use serde_json::json;
///
/// # cluster.namespaces().create(&json!({"metadata": {"name": "shop"}})).await?;
/// let maps = cluster.configmaps().in_namespace("shop")?;
/// maps.create(&json!({"metadata": {"name": "a", "labels": {"app": "web"}}})).await?;
/// assert_eq!(maps.fetch("a").await?.name(), "a");
/// assert!(maps.find("b").await?.is_none());
///
/// let web = maps.clone().filter("app=web")?;
/// for map in web.list().await? {
///     println!("{}", map.name());
/// }
/// let others = maps.clone().labels("app!=web".parse()?);
/// assert!(others.list().await?.items.is_empty());
/// let called = web.fields(FieldSelector::everything().with("metadata.name", "a"));
/// assert_eq!(called.list().await?.items.len(), 1);
///
/// assert_eq!(called.namespace(), Some("shop"));
/// assert_eq!(called.kind().plural, "configmaps");
/// assert_eq!(called.cluster().url(), cluster.url());
/// # Ok(()) });
/// ```
#[derive(Debug, Clone)]
pub struct View<K: Kind> {
    cluster: Cluster,
    kind: K,
    namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
    pub(crate) writing: Writing,
    /// Lists may come from the server's cache, see [`View::from_cache`].
    pub(crate) cached: bool,
}

impl<K: Kind> View<K> {
    pub(crate) fn new(cluster: Cluster, kind: K) -> Self {
        Self {
            cluster,
            kind,
            namespace: None,
            labels: LabelSelector::everything(),
            fields: FieldSelector::everything(),
            writing: Writing::default(),
            cached: false,
        }
    }

    pub(crate) fn with_namespace(mut self, namespace: Option<String>) -> Self {
        self.namespace = namespace;
        self
    }

    /// Only the objects in a namespace.
    ///
    /// # Errors
    /// [`Error::Namespace`] for a kind that is in none, and for an invalid
    /// name.
    pub fn in_namespace(self, namespace: &str) -> Result<Self> {
        let info = self.kind.info();
        if !info.is_namespaced() {
            let problem = format!(
                "{} are in no namespace, so not in {namespace:?}",
                info.plural
            );
            return Err(Error::Namespace(problem));
        }
        name::dns_label("namespace", namespace)
            .map_err(|error| Error::Namespace(error.to_string()))?;
        Ok(self.with_namespace(Some(namespace.to_owned())))
    }

    /// Only the objects whose labels match, besides the selectors there are.
    #[must_use]
    pub fn labels(mut self, selector: LabelSelector) -> Self {
        self.labels = self.labels.and(selector);
        self
    }

    /// Only the objects whose fields match, besides the selectors there are.
    /// Which fields may be selected by, the server decides.
    #[must_use]
    pub fn fields(mut self, selector: FieldSelector) -> Self {
        self.fields = self.fields.and(selector);
        self
    }

    /// Only the objects whose labels match a selector in text form.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty selector and one that cannot be read.
    pub fn filter(self, labels: &str) -> Result<Self> {
        if labels.trim().is_empty() {
            let problem = "an empty label selector selects everything: leave the filter out";
            return Err(Error::Invalid(problem.to_owned()));
        }
        let selector = labels.parse()?;
        Ok(self.labels(selector))
    }

    /// The namespace; `None` when the view is global.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The kind's type and place in the API.
    #[must_use]
    pub fn kind(&self) -> &KindInfo {
        self.kind.info()
    }

    /// The cluster it looks at.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(crate) fn marker(&self) -> &K {
        &self.kind
    }

    pub(crate) fn collection_path(&self) -> String {
        self.kind.info().collection_path(self.namespace())
    }

    /// The path of one object. A namespaced kind needs the view's namespace.
    pub(crate) fn object_path(&self, name: &str) -> Result<String> {
        let info = self.kind.info();
        if info.is_namespaced() && self.namespace.is_none() {
            return Err(Error::Namespace(format!(
                "{} {name:?} needs a namespace: take the view with in_namespace()",
                info.singular
            )));
        }
        // The rule of path segments; stricter rules are the server's.
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '%']) {
            return Err(Error::Invalid(format!(
                "{name:?} is no name of a {}",
                info.singular
            )));
        }
        Ok(format!("{}/{}", self.collection_path(), escape(name)))
    }

    /// A request for the collection, narrowed by the selectors.
    pub(crate) fn selection(&self) -> Call {
        let mut call = Call::get(self.collection_path());
        if !self.labels.is_everything() {
            call = call.with("labelSelector", self.labels.to_string());
        }
        if !self.fields.is_everything() {
            call = call.with("fieldSelector", self.fields.to_string());
        }
        call
    }

    pub(crate) fn item(&self, body: &bytes::Bytes, request: &str) -> Result<Item<K>> {
        Item::read(self.cluster.clone(), self.kind.clone(), body, request)
    }

    pub(crate) fn wrap(&self, snapshot: Arc<Snapshot>) -> Item<K> {
        Item::new(self.cluster.clone(), self.kind.clone(), snapshot)
    }

    /// Reads one object.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Namespace`] when the view lacks one;
    /// [`Error::Invalid`] for an empty name.
    pub async fn fetch(&self, name: &str) -> Result<Item<K>> {
        let call = Call::get(self.object_path(name)?);
        let body = self.cluster.bytes(&call).await?;
        self.item(&body, &call.name())
    }

    /// Reads one object; `None` when it is not there.
    ///
    /// # Errors
    /// As [`View::fetch`], save for the object's absence.
    pub async fn find(&self, name: &str) -> Result<Option<Item<K>>> {
        match self.fetch(name).await {
            Ok(item) => Ok(Some(item)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Changes from now on.
    ///
    /// # Errors
    /// As the server refuses, or does not answer, at the first connection.
    pub async fn watch(&self) -> Result<Watch<K>> {
        let version = self.version().await?;
        self.watch_since(&version).await
    }

    /// Changes after a version: of a [`List`](crate::List), or of an item.
    ///
    /// # Errors
    /// As [`View::watch`]. A version that the server no longer knows is no
    /// error: the first event is then a `Resync`.
    pub async fn watch_since(&self, version: &str) -> Result<Watch<K>> {
        Watch::open(self.clone(), version.to_owned()).await
    }

    /// A copy of all objects, kept fresh by a watch in the background.
    ///
    /// # Errors
    /// As [`View::list`], at the first list.
    pub async fn cache(&self) -> Result<Cache<K>> {
        Cache::open(self.clone()).await
    }
}
