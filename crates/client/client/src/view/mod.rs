//! Views: a selection of objects, and how to read and write them. Creating a view does no
//! I/O.

mod delete;
mod list;
mod open;
mod prepare;
mod read;
mod scale;
mod table;
mod update;
mod write;

use longshore_model::{FieldSelector, KindInfo, LabelSelector, name};

use crate::{
    cluster::Cluster,
    error::{Error, Result},
    kind::{KindOf, Object},
    options::Writing,
    transport::{Call, escape},
};
pub(crate) use list::read_consistent;
pub use {
    list::{Expired, Paging},
    scale::Scale,
    table::{Column, Row, Table},
};

/// The objects of a kind, in one namespace or all, that match selectors.
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
pub struct View<K: Object> {
    cluster: Cluster,
    kind: KindOf<K>,
    namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
    pub(crate) writing: Writing,
    /// True if lists may come from the server's cache, see [`View::from_cache`].
    pub(crate) cached: bool,
    /// The method that was called with an empty selector. Every request is then rejected.
    empty_selector: Option<&'static str>,
}

impl<K: Object> View<K> {
    pub(crate) fn new(cluster: Cluster, kind: KindOf<K>) -> Self {
        Self {
            cluster,
            kind,
            namespace: None,
            labels: LabelSelector::everything(),
            fields: FieldSelector::everything(),
            writing: Writing::default(),
            cached: false,
            empty_selector: None,
        }
    }

    pub(crate) fn with_namespace(mut self, namespace: Option<String>) -> Self {
        self.namespace = namespace;
        self
    }

    /// Selects the objects of a namespace.
    ///
    /// # Errors
    /// [`Error::Namespace`] if the kind is not namespaced, or the name is invalid.
    pub fn in_namespace(self, namespace: &str) -> Result<Self> {
        let info = &self.kind;
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

    /// Selects the objects whose labels match, in addition to the existing selectors.
    ///
    /// An empty selector would select all objects, for example if a variable is empty by
    /// mistake. Every request of the view then fails with [`Error::Invalid`] before
    /// anything is sent.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// use longshore_client::{DeleteOptions, Error, LabelSelector};
    /// let maps = cluster.configmaps().in_namespace("default")?;
    /// let all = maps.labels(LabelSelector::everything());
    /// let error = all.delete_all(&DeleteOptions::default()).await.unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "labels(): an empty selector selects every object: leave labels() out",
    /// );
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn labels(mut self, selector: LabelSelector) -> Self {
        self.refuse_empty(selector.is_everything(), "labels()");
        self.labels = self.labels.and(selector);
        self
    }

    /// Selects the objects whose fields match, in addition to the existing selectors. The
    /// server decides which fields are supported. An empty selector is rejected as by
    /// [`View::labels`].
    #[must_use]
    pub fn fields(mut self, selector: FieldSelector) -> Self {
        self.refuse_empty(selector.is_everything(), "fields()");
        self.fields = self.fields.and(selector);
        self
    }

    /// Selects the objects whose labels match a selector in text form.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the selector is empty or invalid.
    pub fn filter(self, labels: &str) -> Result<Self> {
        if labels.trim().is_empty() {
            let problem = "an empty label selector selects everything: leave the filter out";
            return Err(Error::Invalid(problem.to_owned()));
        }
        let selector = labels.parse()?;
        Ok(self.labels(selector))
    }

    fn refuse_empty(&mut self, is_empty: bool, method: &'static str) {
        if is_empty {
            self.empty_selector.get_or_insert(method);
        }
    }

    /// Rejects every request of a view with an empty selector.
    fn check_selectors(&self) -> Result<()> {
        match self.empty_selector {
            None => Ok(()),
            Some(method) => Err(Error::Invalid(format!(
                "{method}: an empty selector selects every object: leave {method} out"
            ))),
        }
    }

    /// The namespace; `None` if the view has all namespaces.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The kind and its place in the API.
    #[must_use]
    pub fn kind(&self) -> &KindInfo {
        &self.kind
    }

    /// The cluster of the view.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(crate) fn marker(&self) -> &KindOf<K> {
        &self.kind
    }

    pub(crate) fn collection_path(&self) -> String {
        self.kind.collection_path(self.namespace())
    }

    /// The path of one object. A namespaced kind requires the view's namespace.
    pub(crate) fn object_path(&self, name: &str) -> Result<String> {
        self.check_selectors()?;
        let info = &self.kind;
        if info.is_namespaced() && self.namespace.is_none() {
            return Err(Error::Namespace(format!(
                "{} {name:?} needs a namespace: take the view with in_namespace()",
                info.singular
            )));
        }
        // The rule of path segments. The server has stricter rules.
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '%']) {
            return Err(Error::Invalid(format!(
                "{name:?} is not the name of a {}",
                info.singular
            )));
        }
        Ok(format!("{}/{}", self.collection_path(), escape(name)))
    }

    /// A request for the collection, with the selectors.
    pub(crate) fn selection(&self) -> Result<Call> {
        self.check_selectors()?;
        let mut call = Call::get(self.collection_path());
        if !self.labels.is_everything() {
            call = call.with("labelSelector", self.labels.to_string());
        }
        if !self.fields.is_everything() {
            call = call.with("fieldSelector", self.fields.to_string());
        }
        Ok(call)
    }
}
