//! The objects of one kind.

use futures::{StreamExt, TryStreamExt};
use longshore::Error;
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyInt, PySlice},
};

use crate::{
    cache::Cache,
    delete,
    errors::raise,
    face::Face,
    html,
    item::{Watch, patch},
    objects::{Item, View},
    selector,
    stream::{Piece, Stream},
    until::{Until, wait_until},
    value::{to_json, type_name},
    wait::{limit, wait},
};

/// Returns an object of the view, or an awaitable with it.
macro_rules! item {
    ($self:ident, $py:ident, |$view:ident| $future:expr) => {{
        let (face, $view) = ($self.face, $self.inner.clone());
        face.run($py, async move { $future.await }, move |py, item| {
            Item::new(item, face).into_python(py)
        })
    }};
}

/// Returns the number of objects, counted from the first one, that a position or slice needs;
/// `None` for all.
fn needed(position: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    if let Ok(slice) = position.cast::<PySlice>() {
        // Parts that are invalid positions, or beyond all positions, are left to the list.
        let part = |name| -> PyResult<Option<isize>> {
            Ok(slice.getattr(name)?.extract().unwrap_or(Some(-1)))
        };
        let from_start = |part: Option<isize>| part.is_none_or(|part| part >= 0);
        let (start, stop, step) = (part("start")?, part("stop")?, part("step")?);
        return Ok(stop
            .filter(|_| from_start(start) && from_start(step))
            .and_then(|stop| usize::try_from(stop).ok()));
    }
    if position.is_instance_of::<PyInt>() && position.extract::<isize>().is_err() {
        // A list cannot be that long.
        return Ok(Some(0));
    }
    let Ok(position) = position.extract::<isize>() else {
        let class = type_name(position);
        return Err(PyTypeError::new_err(format!(
            "positions in a view are integers or slices, not {class}: fetch(name) requests an object"
        )));
    };
    Ok(usize::try_from(position)
        .ok()
        .and_then(|position| position.checked_add(1)))
}

#[pymethods]
impl View {
    /// The kind of the objects, such as `Pod`.
    #[getter]
    fn kind(&self) -> &str {
        &self.inner.kind().gvk.kind
    }

    /// As in the field `apiVersion` of the objects.
    #[getter]
    fn api_version(&self) -> String {
        self.inner.kind().gvk.api_version()
    }

    /// The plural name in paths.
    #[getter]
    fn resource(&self) -> &str {
        &self.inner.kind().plural
    }

    /// The namespace of the objects; `None` for all namespaces.
    #[getter]
    fn namespace(&self) -> Option<&str> {
        self.inner.namespace()
    }

    /// The same kind in one namespace.
    fn in_namespace(&self, py: Python<'_>, namespace: &str) -> PyResult<Self> {
        let inner = self.inner.clone().in_namespace(namespace);
        Ok(Self::new(inner.map_err(raise(py))?, self.face))
    }

    /// A view of only the objects that the selectors select.
    ///
    /// :param labels: A label selector, such as `"app=web,tier in (a, b)"`, or a mapping of
    ///     labels to their values.
    /// :param fields: A field selector, such as `"status.phase=Running"`, or a mapping of
    ///     fields to their values.
    #[pyo3(signature = (*, labels=None, fields=None))]
    fn filter(
        &self,
        py: Python<'_>,
        labels: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut inner = self.inner.clone();
        if let Some(selector) = labels {
            inner = inner.labels(selector::labels(py, selector)?);
        }
        if let Some(selector) = fields {
            inner = inner.fields(selector::fields(py, selector)?);
        }
        Ok(Self::new(inner, self.face))
    }

    /// The same view whose changes the server only checks.
    fn dry_run(&self) -> Self {
        Self::new(self.inner.clone().dry_run(), self.face)
    }

    fn __iter__(&self) -> PyResult<Stream> {
        self.face.require(Face::Blocking, "async for")?;
        Ok(self.stream())
    }

    fn __aiter__(&self) -> PyResult<Stream> {
        self.face.require(Face::Asyncio, "for")?;
        Ok(self.stream())
    }

    /// All objects, as a list.
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (face, view) = (self.face, self.inner.clone());
        face.run(py, async move { view.list().await }, move |py, list| {
            let items = list.items.into_iter().map(|item| Item::new(item, face));
            let items: Vec<Item> = items.collect();
            Ok(items.into_pyobject(py)?.unbind())
        })
    }

    /// The object with this name. Raises `NotFoundError` if it does not exist.
    fn fetch<'py>(&self, py: Python<'py>, name: String) -> PyResult<Bound<'py, PyAny>> {
        item!(self, py, |view| view.fetch(&name))
    }

    /// As `fetch`, but returns `None` for an object that does not exist.
    fn find<'py>(&self, py: Python<'py>, name: String) -> PyResult<Bound<'py, PyAny>> {
        let (face, view) = (self.face, self.inner.clone());
        face.run(
            py,
            async move { view.find(&name).await },
            move |py, found| match found {
                Some(item) => Item::new(item, face).into_python(py),
                None => Ok(py.None()),
            },
        )
    }

    /// Creates an object. Raises `AlreadyExistsError` if the name is taken.
    fn create<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let data = to_json(data)?;
        item!(self, py, |view| view.create(&data))
    }

    /// Replaces an object. With its `resourceVersion`, raises `ConflictError` if it has changed
    /// since.
    fn replace<'py>(
        &self,
        py: Python<'py>,
        name: String,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let data = to_json(data)?;
        item!(self, py, |view| view.replace(&name, &data))
    }

    /// Changes fields.
    ///
    /// :param body: The patch: a mapping, or a list of operations for `"json"`.
    /// :param kind: `"strategic"` (lists such as containers are merged by name), `"merge"`
    ///     (lists are replaced), `"json"` (operations) or `"apply"` (server-side apply).
    #[pyo3(signature = (name, body, *, kind="strategic"))]
    fn patch<'py>(
        &self,
        py: Python<'py>,
        name: String,
        body: &Bound<'py, PyAny>,
        kind: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let patch = patch(kind, to_json(body)?)?;
        item!(self, py, |view| view.patch(&name, &patch))
    }

    /// Applies fields (server-side apply) as `manager`. Raises `ConflictError` for fields of another
    /// manager, unless `force` is set.
    #[pyo3(signature = (data, *, manager="longshore", force=false))]
    fn apply<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        manager: &str,
        force: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (data, manager) = (to_json(data)?, manager.to_owned());
        item!(self, py, |view| view.apply(&data, &manager, force))
    }

    /// Deletes the object. Does nothing if it does not exist.
    ///
    /// :param propagation: What happens to the objects that it owns: `"background"` (deleted
    ///     after it), `"foreground"` (deleted before it) or `"orphan"` (kept); default: that of
    ///     the kind.
    /// :param grace_seconds: The seconds that a pod has to terminate; 0 deletes it immediately.
    /// :param uid: Delete only the object with this UID; another raises `ConflictError`.
    /// :param version: Delete only this resource version; another raises `ConflictError`.
    #[pyo3(signature = (name, *, propagation=None, grace_seconds=None, uid=None, version=None))]
    fn delete<'py>(
        &self,
        py: Python<'py>,
        name: String,
        propagation: Option<&str>,
        grace_seconds: Option<u32>,
        uid: Option<String>,
        version: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = delete::options(propagation, grace_seconds, uid, version)?;
        let view = self.inner.clone();
        self.face
            .done(py, async move { view.delete(&name, &options).await })
    }

    /// Deletes all objects that the view selects. A view of a kind with namespaces must have
    /// one.
    ///
    /// :param propagation: As for `delete`.
    /// :param grace_seconds: As for `delete`.
    #[pyo3(signature = (*, propagation=None, grace_seconds=None))]
    fn delete_all<'py>(
        &self,
        py: Python<'py>,
        propagation: Option<&str>,
        grace_seconds: Option<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = delete::options(propagation, grace_seconds, None, None)?;
        let view = self.inner.clone();
        self.face
            .done(py, async move { view.delete_all(&options).await })
    }

    /// Watches changes, starting now, or after a resource version. `"0"` starts with all
    /// objects as `ADDED`.
    #[pyo3(signature = (*, since=None))]
    fn watch<'py>(&self, py: Python<'py>, since: Option<String>) -> PyResult<Bound<'py, PyAny>> {
        let (face, view) = (self.face, self.inner.clone());
        let opening = async move {
            let watch = match since {
                Some(version) => view.watch_since(&version).await?,
                None => view.watch().await?,
            };
            Ok::<_, Error>(Watch::new(watch, face))
        };
        face.run(py, opening, |py, watch| watch.into_python(py))
    }

    /// Waits until an object fulfils a condition, and returns its version then. An object that
    /// does not exist yet is waited for.
    ///
    /// `"ready"` means that a Pod or Node is ready, that a Deployment, StatefulSet, DaemonSet
    /// or ReplicaSet has all its pods, ready and of the current template, that a Job is
    /// complete, that a claim is bound, or that the kind of a CustomResourceDefinition is
    /// served; for other kinds, that the condition `Ready` or `Available` is true or that they
    /// have neither. `"finished"` means that a Job is complete or has failed, or that a Pod has
    /// succeeded or failed.
    ///
    /// :param until: `"ready"`, `"finished"`, `"deleted"` (then the result is `None`), the type
    ///     of a condition whose status must be `"True"`, such as `"Available"`, or a function,
    ///     which is called with each version until it returns true. Its exceptions are raised.
    /// :raises WaitTimeoutError: If the timeout expires; the message contains the last state.
    #[pyo3(signature = (name, until, *, timeout=None))]
    fn wait<'py>(
        &self,
        py: Python<'py>,
        name: String,
        until: Until,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        wait_until(
            py,
            self.face,
            self.inner.clone(),
            name,
            until,
            limit(timeout)?,
        )
    }

    /// A copy of the objects that is kept up to date.
    fn cache<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (face, view) = (self.face, self.inner.clone());
        let namespace = view.namespace().map(str::to_owned);
        face.run(py, async move { view.cache().await }, move |py, cache| {
            Cache::new(cache, namespace, face).into_python(py)
        })
    }

    /// The current number of objects.
    fn count<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let view = self.inner.clone();
        self.face
            .run(py, async move { view.count().await }, |py, count| {
                Ok(count.into_pyobject(py)?.into_any().unbind())
            })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.face.require(Face::Blocking, "await view.count()")?;
        wait(py, self.inner.count())
    }

    /// The object at a position, or those of a slice. Requests only the pages that it needs.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        position: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.face.require(Face::Blocking, "await view.list()")?;
        let needed = needed(position)?.unwrap_or(usize::MAX);
        let view = self.inner.clone();
        let reading = async move { view.stream().take(needed).try_collect::<Vec<_>>().await };
        let items = wait(py, reading)?.into_iter();
        let items: Vec<Item> = items.map(|item| Item::new(item, self.face)).collect();
        items.into_pyobject(py)?.get_item(position)
    }

    /// A view is always true. Without this method, Python would request its length.
    fn __bool__(&self) -> bool {
        true
    }

    /// The first objects as a table, for notebooks.
    #[pyo3(name = "_repr_html_")]
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        let most = u32::try_from(html::ROWS).unwrap_or(u32::MAX);
        let table = wait(py, self.inner.table_of_first(most.saturating_add(1)))?;
        let with_namespace = self.inner.kind().is_namespaced() && self.inner.namespace().is_none();
        Ok(html::table(&table, with_namespace))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(crate::value::no_pickle("View"))
    }

    fn __repr__(&self) -> String {
        let place = self.inner.namespace().unwrap_or("all namespaces");
        format!("<View of {} in {place}>", self.inner.kind().plural)
    }
}

impl View {
    fn stream(&self) -> Stream {
        let items = self.inner.stream();
        Stream::new(self.face, items.map(|item| item.map(Piece::Item)))
    }
}
