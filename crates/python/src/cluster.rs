//! A connection to a cluster.

use std::path::PathBuf;

use longshore::{Cluster as Inner, Error, kinds::Any};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyString};
use serde_json::Value;

use crate::{
    errors::{one, raise},
    item::Item,
    proxy::Proxy,
    value::to_json,
    view::View,
    wait::wait,
};

/// A connection to a cluster.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct Cluster {
    pub(crate) inner: Inner,
}

#[pymethods]
impl Cluster {
    #[new]
    #[pyo3(signature = (url=None, *, kubeconfig=None, context=None))]
    fn new(
        py: Python<'_>,
        url: Option<&str>,
        kubeconfig: Option<PathBuf>,
        context: Option<String>,
    ) -> PyResult<Self> {
        let inner = match (url, kubeconfig, context) {
            (Some(url), None, None) => Inner::from_url(url).map_err(raise(py))?,
            (Some(_), ..) => {
                return Err(PyTypeError::new_err(
                    "a url leads to a cluster without a kubeconfig or a context: give one of them",
                ));
            }
            (None, None, None) => wait(py, Inner::connect())?,
            (None, kubeconfig, context) => wait(
                py,
                Inner::from_kubeconfig(kubeconfig.as_deref(), context.as_deref()),
            )?,
        };
        Ok(Self { inner })
    }

    #[getter]
    fn url(&self) -> String {
        self.inner.url()
    }

    #[getter]
    fn default_namespace(&self) -> &str {
        self.inner.default_namespace()
    }

    #[getter]
    fn closed(&self) -> bool {
        self.inner.is_closed()
    }

    fn close(&self) {
        self.inner.close();
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyAny>) {
        self.inner.close();
    }

    fn __repr__(&self) -> String {
        format!("Cluster({:?})", self.inner.url())
    }

    /// A view of a kind, in one namespace or in all. Accepts every name of the kind.
    #[pyo3(signature = (kind, namespace=None))]
    fn view(&self, py: Python<'_>, kind: &str, namespace: Option<&str>) -> PyResult<View> {
        if kind.len() > MAX_KIND {
            let message = format!("no kind has a name of {} bytes", kind.len());
            return Err(one(py, "InvalidError", &message)?);
        }
        let view = wait(py, self.inner.kind(kind))?;
        View::new(view).scoped(py, namespace)
    }

    /// Requests by path.
    fn proxy(&self) -> Proxy {
        Proxy::new(self.inner.proxy())
    }

    /// An item of an object's JSON. Sends no request but for the kinds that the server has.
    fn item(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Item> {
        let data = to_json(data)?;
        let namespace = data["metadata"]["namespace"].as_str();
        let view = wait(py, self.inner.view_for(&data, namespace))?;
        view.item_from(&data).map(Item::new).map_err(raise(py))
    }

    /// Creates the object of a mapping, or the objects of all documents in a YAML string.
    #[pyo3(signature = (data, namespace=None))]
    fn create(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        namespace: Option<&str>,
    ) -> PyResult<Py<PyAny>> {
        if let Ok(text) = data.cast::<PyString>() {
            let made = wait(py, self.inner.create_manifest(text.to_str()?, namespace))?;
            return items(py, made);
        }
        let data = to_json(data)?;
        let creating = async { self.placed(&data, namespace).await?.create(&data).await };
        item(py, wait(py, creating)?)
    }

    /// Applies the object of a mapping, or the objects of all documents in a YAML string.
    #[pyo3(signature = (data, namespace=None, *, manager="longshore", force=false))]
    fn apply(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        namespace: Option<&str>,
        manager: &str,
        force: bool,
    ) -> PyResult<Py<PyAny>> {
        if let Ok(text) = data.cast::<PyString>() {
            let applying = self
                .inner
                .apply_manifest(text.to_str()?, namespace, manager, force);
            return items(py, wait(py, applying)?);
        }
        let data = to_json(data)?;
        let applying = async {
            let view = self.placed(&data, namespace).await?;
            view.apply(&data, manager, force).await
        };
        item(py, wait(py, applying)?)
    }
}

/// The maximum length of a kind's name with its group, in bytes: both are DNS names.
/// A longer name is rejected without comparing it with the names of all kinds.
const MAX_KIND: usize = 512;

type Made = longshore::Item<Any>;

fn item(py: Python<'_>, made: Made) -> PyResult<Py<PyAny>> {
    Ok(Item::new(made).into_pyobject(py)?.into_any().unbind())
}

fn items(py: Python<'_>, made: Vec<Made>) -> PyResult<Py<PyAny>> {
    let items: Vec<Item> = made.into_iter().map(Item::new).collect();
    Ok(items.into_pyobject(py)?.unbind())
}

impl Cluster {
    /// The view for creating an object. An object without a namespace belongs to the
    /// default namespace, as with kubectl.
    async fn placed(
        &self,
        data: &Value,
        namespace: Option<&str>,
    ) -> Result<longshore::View<Any>, Error> {
        match namespace {
            Some(_) => self.inner.view_for(data, namespace).await,
            None => self.inner.home(data).await,
        }
    }

    pub(crate) fn ready(&self, py: Python<'_>) -> PyResult<Inner> {
        if self.inner.is_closed() {
            return Err(crate::errors::raised(py, Error::Closed.into()));
        }
        Ok(self.inner.clone())
    }
}
