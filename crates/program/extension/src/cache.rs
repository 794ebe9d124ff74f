//! A copy of a view's objects that is kept up to date.

use futures::stream;
use longshore::{
    Error,
    client::{Cache as Inner, Change},
    kinds::Any,
};
use pyo3::prelude::*;

use crate::{
    face::Face,
    objects::Item,
    selector,
    stream::{Piece, Stream},
};

/// A copy of a view's objects. Reading it sends no request.
#[pyclass(frozen, generic, module = "longshore")]
pub(crate) struct Cache {
    inner: Inner<Any>,
    /// The namespace of its view.
    namespace: Option<String>,
    face: Face,
}

impl Cache {
    pub(crate) fn new(inner: Inner<Any>, namespace: Option<String>, face: Face) -> Self {
        Self {
            inner,
            namespace,
            face,
        }
    }

    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.into_pyobject(py)?.into_any().unbind())
    }

    fn items(&self, items: Vec<longshore::Item<Any>>) -> Vec<Item> {
        let items = items.into_iter();
        items.map(|item| Item::new(item, self.face)).collect()
    }
}

#[pymethods]
impl Cache {
    /// The object with this name, or `None`.
    ///
    /// :param namespace: The namespace of the object, if its kind has namespaces; default: that of
    ///     the view.
    #[pyo3(signature = (name, namespace=None))]
    fn get(&self, name: &str, namespace: Option<&str>) -> Option<Item> {
        let namespace = namespace.or(self.namespace.as_deref());
        let found = self.inner.get(namespace, name)?;
        Some(Item::new(found, self.face))
    }

    /// The objects, or those that a label selector selects.
    #[pyo3(signature = (*, labels=None, namespace=None))]
    fn list(
        &self,
        py: Python<'_>,
        labels: Option<&Bound<'_, PyAny>>,
        namespace: Option<&str>,
    ) -> PyResult<Vec<Item>> {
        let mut items = match (labels, namespace) {
            (Some(labels), _) => self.inner.matching(&selector::labels(py, labels)?),
            (None, Some(namespace)) => self.inner.by_namespace(namespace),
            (None, None) => self.inner.items(),
        };
        if let Some(namespace) = namespace {
            items.retain(|item| item.namespace() == Some(namespace));
        }
        Ok(self.items(items))
    }

    /// The changes: first all objects as `UPSERT`, then each change. Only the newest state of
    /// an object is kept for a slow reader.
    fn changes(&self) -> Stream {
        let changes = self.inner.subscribe();
        let changes = stream::unfold(changes, |mut changes| async {
            let change = changes.next().await?;
            let piece = match change {
                Change::Upsert(item) => Piece::Change("UPSERT", item),
                Change::Gone(item) => Piece::Change("GONE", item),
            };
            Some((Ok::<_, Error>(piece), changes))
        });
        Stream::new(self.face, changes)
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let items = self.items(self.inner.items()).into_pyobject(py)?;
        Ok(items.try_iter()?.into_any().unbind())
    }

    fn __repr__(&self) -> String {
        format!("<Cache of {} objects>", self.inner.len())
    }
}
