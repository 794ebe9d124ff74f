//! Views.

use std::time::Duration;

use longshore_model::{FieldSelector, KindInfo, LabelSelector};
use serde_json::Value;

use super::{Item, List, Mirror, Taken, reads, run, waits};
use crate::{
    error::Result,
    item,
    kind::{Data, Object},
    options::{DeleteOptions, Patch},
    view::{self, Scale, Table},
};

/// The objects of a kind, in one namespace or all, that match selectors: see
/// [`View`](crate::View).
#[derive(Debug, Clone)]
pub struct View<K: Object> {
    pub(super) inner: view::View<K>,
}

impl<K: Object> Mirror for view::View<K> {
    type Here = View<K>;

    fn mirror(self) -> View<K> {
        View { inner: self }
    }
}

impl<K: Object> View<K> {
    pub(super) fn inner(&self) -> &view::View<K> {
        &self.inner
    }

    /// Like [`View::in_namespace`](crate::View::in_namespace).
    ///
    /// # Errors
    /// The errors of [`View::in_namespace`](crate::View::in_namespace).
    pub fn in_namespace(self, namespace: &str) -> Result<Self> {
        self.inner.in_namespace(namespace).map(Mirror::mirror)
    }

    /// Like [`View::filter`](crate::View::filter).
    ///
    /// # Errors
    /// The errors of [`View::filter`](crate::View::filter).
    pub fn filter(self, labels: &str) -> Result<Self> {
        self.inner.filter(labels).map(Mirror::mirror)
    }

    /// Like [`View::labels`](crate::View::labels).
    #[must_use]
    pub fn labels(self, selector: LabelSelector) -> Self {
        self.inner.labels(selector).mirror()
    }

    /// Like [`View::fields`](crate::View::fields).
    #[must_use]
    pub fn fields(self, selector: FieldSelector) -> Self {
        self.inner.fields(selector).mirror()
    }

    /// Like [`View::dry_run`](crate::View::dry_run).
    #[must_use]
    pub fn dry_run(self) -> Self {
        self.inner.dry_run().mirror()
    }

    /// Like [`View::field_manager`](crate::View::field_manager).
    #[must_use]
    pub fn field_manager(self, name: &str) -> Self {
        self.inner.field_manager(name).mirror()
    }

    /// Like [`View::strict`](crate::View::strict).
    #[must_use]
    pub fn strict(self) -> Self {
        self.inner.strict().mirror()
    }

    reads! {
        "View": namespace() -> Option<&str>;
        "View": kind() -> &KindInfo;
    }

    waits! {
        "View": api_paths() -> Vec<String>;
        "View": list() -> List<K>;
        "View": count() -> usize;
        "View": table() -> Table;
        "View": table_of_first(most: u32) -> Table;
        "View": table_of(name: &str) -> Table;
        "View": fetch(name: &str) -> Item<K>;
        "View": find(name: &str) -> Option<Item<K>>;
        "View": patch(name: &str, patch: &Patch) -> Item<K>;
        "View": patch_status(name: &str, patch: &Patch) -> Item<K>;
        "View": delete(name: &str, options: &DeleteOptions) -> ();
        "View": delete_all(options: &DeleteOptions) -> ();
        "View": scale(name: &str) -> Scale;
        "View": set_scale(name: &str, replicas: u32) -> Scale;
        "View": wait_gone(name: &str, timeout: Duration) -> ();
    }

    /// Like [`View::item_from`](crate::View::item_from).
    ///
    /// # Errors
    /// The errors of [`View::item_from`](crate::View::item_from).
    pub fn item_from(&self, object: &Value) -> Result<Item<K>> {
        self.inner.item_from(object).map(Mirror::mirror)
    }

    /// Like [`View::list_from`](crate::View::list_from).
    ///
    /// # Errors
    /// The errors of [`View::list_from`](crate::View::list_from).
    pub fn list_from(&self, list: &Value) -> Result<List<K>> {
        self.inner.list_from(list).map(Mirror::mirror)
    }

    /// Like [`View::create`](crate::View::create).
    ///
    /// # Errors
    /// The errors of [`View::create`](crate::View::create).
    pub fn create<Form>(&self, data: &impl Data<K, Form>) -> Result<Item<K>> {
        run(self.inner.create(data)).map(Mirror::mirror)
    }

    /// Like [`View::apply`](crate::View::apply).
    ///
    /// # Errors
    /// The errors of [`View::apply`](crate::View::apply).
    pub fn apply<Form>(
        &self,
        data: &impl Data<K, Form>,
        manager: &str,
        force: bool,
    ) -> Result<Item<K>> {
        run(self.inner.apply(data, manager, force)).map(Mirror::mirror)
    }

    /// Like [`View::replace`](crate::View::replace).
    ///
    /// # Errors
    /// The errors of [`View::replace`](crate::View::replace).
    pub fn replace<Form>(&self, name: &str, data: &impl Data<K, Form>) -> Result<Item<K>> {
        run(self.inner.replace(name, data)).map(Mirror::mirror)
    }

    /// Like [`View::replace_status`](crate::View::replace_status).
    ///
    /// # Errors
    /// The errors of [`View::replace_status`](crate::View::replace_status).
    pub fn replace_status<Form>(&self, name: &str, data: &impl Data<K, Form>) -> Result<Item<K>> {
        run(self.inner.replace_status(name, data)).map(Mirror::mirror)
    }

    /// Like [`View::update`](crate::View::update).
    ///
    /// # Errors
    /// The errors of [`View::update`](crate::View::update).
    pub fn update(
        &self,
        name: &str,
        change: impl FnMut(&mut K) -> Result<()> + Send,
    ) -> Result<Item<K>> {
        run(self.inner.update(name, change)).map(Mirror::mirror)
    }

    /// Like [`View::wait`](crate::View::wait).
    ///
    /// # Errors
    /// The errors of [`View::wait`](crate::View::wait).
    pub fn wait(
        &self,
        name: &str,
        mut until: impl FnMut(&Item<K>) -> bool + Send,
        timeout: Duration,
    ) -> Result<Item<K>> {
        let until = |item: &item::Item<K>| until(&item.clone().mirror());
        run(self.inner.wait(name, until, timeout)).map(Mirror::mirror)
    }

    /// Like [`View::stream`](crate::View::stream), one after the other.
    pub fn stream(&self) -> impl Iterator<Item = Result<Item<K>>> + use<K> {
        // A task reads the pages ahead. It needs a runtime.
        let view = self.inner.clone();
        let stream = async move { view.stream() };
        let stream = futures::FutureExt::flatten_stream(stream);
        Taken::new(stream).map(|item| item.map(Mirror::mirror))
    }
}
