//! Views: which objects are meant, and how to read and write them. Making one does
//! no I/O.

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
pub struct View<K: Object> {
    cluster: Cluster,
    kind: KindOf<K>,
    namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
    pub(crate) writing: Writing,
    /// Lists may come from the server's cache, see [`View::from_cache`].
    pub(crate) cached: bool,
    /// The method that was given an empty selector: every request is refused.
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

    /// Only the objects in a namespace.
    ///
    /// # Errors
    /// [`Error::Namespace`] for a kind that is in none, and for an invalid
    /// name.
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

    /// Only the objects whose labels match, besides the selectors there are.
    ///
    /// An empty selector would select every object, as when a variable is empty by
    /// accident. Every request of the view then fails with [`Error::Invalid`] before
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

    /// Only the objects whose fields match, besides the selectors there are.
    /// The server decides which fields can be selected by. An empty selector is refused
    /// as by [`View::labels`].
    #[must_use]
    pub fn fields(mut self, selector: FieldSelector) -> Self {
        self.refuse_empty(selector.is_everything(), "fields()");
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

    fn refuse_empty(&mut self, is_empty: bool, method: &'static str) {
        if is_empty {
            self.empty_selector.get_or_insert(method);
        }
    }

    /// Refuses every request of a view that was given an empty selector.
    fn check_selectors(&self) -> Result<()> {
        match self.empty_selector {
            None => Ok(()),
            Some(method) => Err(Error::Invalid(format!(
                "{method}: an empty selector selects every object: leave {method} out"
            ))),
        }
    }

    /// The namespace; `None` when the view is global.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The kind's type and place in the API.
    #[must_use]
    pub fn kind(&self) -> &KindInfo {
        &self.kind
    }

    /// The cluster it looks at.
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

    /// The path of one object. A namespaced kind needs the view's namespace.
    pub(crate) fn object_path(&self, name: &str) -> Result<String> {
        self.check_selectors()?;
        let info = &self.kind;
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
