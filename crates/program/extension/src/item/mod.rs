//! An object at one version, and watches of objects.

mod pod;
mod watch;

use longshore::{Error, Patch, kinds::Any};
use pyo3::{prelude::*, types::PyInt};
use serde_json::Value;

use crate::{
    delete,
    errors::{invalid, one, raise},
    face::Face,
    objects::{Item, View},
    until::{Until, wait_until},
    value::{from_serde, to_json},
    wait::limit,
};

pub(crate) use pod::{PortForward, Session};
pub(crate) use watch::Watch;

/// A list of items.
fn list(py: Python<'_>, face: Face, items: Vec<longshore::Item<Any>>) -> PyResult<Py<PyAny>> {
    let items = items.into_iter().map(|item| Item::new(item, face));
    let items: Vec<Item> = items.collect();
    Ok(items.into_pyobject(py)?.unbind())
}

/// A patch of the given kind: `strategic`, `merge`, `json` or `apply`.
pub(crate) fn patch(kind: &str, body: Value) -> PyResult<Patch> {
    Ok(match kind {
        "strategic" => Patch::strategic(body),
        "merge" => Patch::merge(body),
        "json" => Patch::json(body),
        "apply" => Patch::apply(body, "longshore", false),
        other => {
            return Err(invalid(format!(
                "there is no kind of patch {other:?}: choose strategic, merge, json or apply"
            )));
        }
    })
}

/// Returns the item's new version, or an awaitable with it.
macro_rules! item {
    ($self:ident, $py:ident, |$item:ident| $future:expr) => {{
        let (face, $item) = ($self.face, $self.inner.clone());
        face.run($py, async move { $future.await }, move |py, item| {
            Item::new(item, face).into_python(py)
        })
    }};
}

#[pymethods]
impl Item {
    /// The name.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// The namespace; `None` for kinds without namespaces.
    #[getter]
    fn namespace(&self) -> Option<&str> {
        self.inner.namespace()
    }

    /// The UID, which no other object has, not even a later one of the same name.
    #[getter]
    fn uid(&self) -> &str {
        self.inner.uid()
    }

    /// The resource version.
    #[getter]
    fn version(&self) -> &str {
        self.inner.version()
    }

    /// The kind, such as `Pod`.
    #[getter]
    fn kind(&self) -> &str {
        &self.inner.kind().gvk.kind
    }

    /// The path of the object on the server.
    #[getter]
    fn link(&self) -> String {
        self.inner.link()
    }

    /// The labels. Each call returns a new copy.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_serde(py, &self.inner.labels().to_map())
    }

    /// The annotations. Each call returns a new copy.
    #[getter]
    fn annotations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_serde(py, &self.inner.annotations().to_map())
    }

    /// The whole object. Each call returns a new copy.
    #[getter]
    fn raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_serde(py, &self.inner.raw().map_err(raise(py))?)
    }

    /// One field by its path, or `None` if the object lacks it. Parses only this field.
    #[pyo3(signature = (*path))]
    fn field<'py>(&self, py: Python<'py>, path: Vec<String>) -> PyResult<Bound<'py, PyAny>> {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let found = self.inner.field::<Value>(&path);
        from_serde(py, &found.map_err(raise(py))?)
    }

    /// The fields that are needed to create the object again.
    fn spec<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_serde(py, &self.inner.spec().map_err(raise(py))?)
    }

    /// The newest version of the object.
    fn fetch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        item!(self, py, |item| item.fetch())
    }

    /// Changes fields, and returns the new version.
    ///
    /// :param body: The patch: a mapping, or a list of operations for `"json"`.
    /// :param kind: `"strategic"`, `"merge"`, `"json"` or `"apply"`, as for `View.patch`.
    #[pyo3(signature = (body, *, kind="strategic"))]
    fn patch<'py>(
        &self,
        py: Python<'py>,
        body: &Bound<'py, PyAny>,
        kind: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let patch = patch(kind, to_json(body)?)?;
        item!(self, py, |item| item.patch(&patch))
    }

    /// Replaces the object, if it still has this version, and returns the new version.
    ///
    /// :param data: The new object, such as a changed `raw`. A `metadata.resourceVersion` replaces
    ///     this version.
    /// :raises ConflictError: If the object has changed since.
    fn replace<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let data = to_json(data)?;
        item!(self, py, |item| item.replace(&data))
    }

    /// Changes fields of the status, and returns the new version.
    ///
    /// :param body: The patch, as for `patch`: a mapping with the key `status`.
    /// :param kind: As for `patch`.
    #[pyo3(signature = (body, *, kind="strategic"))]
    fn patch_status<'py>(
        &self,
        py: Python<'py>,
        body: &Bound<'py, PyAny>,
        kind: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let patch = patch(kind, to_json(body)?)?;
        item!(self, py, |item| item.patch_status(&patch))
    }

    /// Deletes the object. Does nothing if it does not exist.
    ///
    /// :param propagation: What happens to the objects that it owns: `"background"`,
    ///     `"foreground"` or `"orphan"`, as for `View.delete`.
    /// :param grace_seconds: The seconds that a pod has to terminate; 0 deletes it immediately.
    /// :param uid: Delete only the object with this UID; another raises `ConflictError`.
    /// :param version: Delete only this resource version; another raises `ConflictError`.
    #[pyo3(signature = (*, propagation=None, grace_seconds=None, uid=None, version=None))]
    fn delete<'py>(
        &self,
        py: Python<'py>,
        propagation: Option<&str>,
        grace_seconds: Option<u32>,
        uid: Option<String>,
        version: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = delete::options(propagation, grace_seconds, uid, version)?;
        let item = self.inner.clone();
        self.face
            .done(py, async move { item.delete(&options).await })
    }

    /// Watches changes to this object, after its version.
    fn watch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (face, item) = (self.face, self.inner.clone());
        let opening = async move { Ok::<_, Error>(Watch::new(item.watch().await?, face)) };
        face.run(py, opening, |py, watch| watch.into_python(py))
    }

    /// Waits until the object fulfils a condition, and returns its version then.
    ///
    /// :param until: `"ready"`, `"finished"`, `"deleted"`, the type of a condition, such as
    ///     `"Available"`, or a function of the object, as for `View.wait`.
    /// :raises WaitTimeoutError: If the timeout expires; the message contains the last state.
    #[pyo3(signature = (until, *, timeout=None))]
    fn wait<'py>(
        &self,
        py: Python<'py>,
        until: Until,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let name = self.inner.name().to_owned();
        wait_until(
            py,
            self.face,
            self.inner.view(),
            name,
            until,
            limit(timeout)?,
        )
    }

    /// The objects that own this one.
    fn owners<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (face, item) = (self.face, self.inner.clone());
        face.run(py, async move { item.owners().await }, move |py, items| {
            list(py, face, items)
        })
    }

    /// The objects of a view that this one owns.
    fn children<'py>(
        &self,
        py: Python<'py>,
        view: &Bound<'py, View>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (face, item) = (self.face, self.inner.clone());
        let view = view.get().inner.clone();
        face.run(
            py,
            async move { item.children_in(&view).await },
            move |py, items| list(py, face, items),
        )
    }

    /// The events about the object, oldest first.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (face, item) = (self.face, self.inner.clone());
        let reading = async move {
            let events = item.events().await?;
            let events = events.into_iter().map(longshore::Item::into_any);
            Ok::<_, Error>(events.collect::<Vec<_>>())
        };
        face.run(py, reading, move |py, items| list(py, face, items))
    }

    /// Sets the number of replicas, and returns it.
    fn scale<'py>(
        &self,
        py: Python<'py>,
        replicas: &Bound<'py, PyInt>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let number: Option<i32> = replicas.extract().ok();
        let number = number.and_then(|number| u32::try_from(number).ok());
        let Some(replicas) = number else {
            let message = format!("replicas must be from 0 to {}, not {replicas}", i32::MAX);
            return Err(one(py, "InvalidError", &message)?);
        };
        let item = self.inner.clone();
        self.face.run(
            py,
            async move { item.set_scale(replicas).await },
            |py, scale| Ok(scale.wanted.into_pyobject(py)?.into_any().unbind()),
        )
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.inner == other.inner
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        (self.inner.uid(), self.inner.version()).hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(crate::value::no_pickle("Item"))
    }

    fn __repr__(&self) -> String {
        format!("<{} {}>", self.inner.kind().gvk.kind, self.inner.link())
    }
}
