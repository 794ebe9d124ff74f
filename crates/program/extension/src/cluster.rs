//! A connection to a cluster.

use std::path::{Path, PathBuf};

use longshore::{Cluster as Inner, Error, kinds::Any, launcher::run_outputs::LocalOutputs};
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyDict, PyString, PyType},
};
use serde_json::Value;

use crate::{
    errors::{one, raise},
    face::Face,
    leadership,
    objects::{Item, View},
    outputs,
    program::{self, Selected},
    proxy::Proxy,
    value::to_json,
    wait::wait,
};

/// A connection to a cluster.
#[pyclass(frozen, subclass, module = "longshore")]
pub(crate) struct Cluster {
    pub(crate) inner: Inner,
    pub(crate) face: Face,
    /// The folder for code that does not fit a Secret, if the cluster runs on this machine.
    pub(crate) code_folder: Option<PathBuf>,
    /// The folder for data of tasks, if the cluster runs on this machine.
    pub(crate) data_folder: Option<PathBuf>,
    /// The outputs of runs, if the cluster runs on this machine.
    pub(crate) outputs: Option<LocalOutputs>,
}

#[pymethods]
impl Cluster {
    #[new]
    #[pyo3(signature = (url=None, *, kubeconfig=None, context=None, asyncio=false, as_kubectl=false))]
    fn new(
        py: Python<'_>,
        url: Option<&str>,
        kubeconfig: Option<PathBuf>,
        context: Option<String>,
        asyncio: bool,
        as_kubectl: bool,
    ) -> PyResult<Self> {
        let face = Face::of(asyncio);
        if url.is_none() && kubeconfig.is_none() && !as_kubectl {
            let (choice, _) = program::choose(py, Path::new(""), context)?;
            let selected = wait(py, program::open(py, choice)?)?;
            return Ok(Self::of(selected, face));
        }
        let outputs = match &kubeconfig {
            Some(kubeconfig) => outputs::of_kubeconfig(py, kubeconfig),
            None => None,
        };
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
        Ok(Self {
            inner,
            face,
            code_folder: None,
            data_folder: None,
            outputs,
        })
    }

    /// The cluster that kubectl uses: that of a kubeconfig or, in a pod, of the service account.
    ///
    /// :param kubeconfig: The file; default: those of `KUBECONFIG`, or `~/.kube/config`.
    /// :param context: A context of the kubeconfig; default: its current one.
    #[classmethod]
    #[pyo3(signature = (kubeconfig=None, context=None))]
    fn from_kubeconfig<'py>(
        class: &Bound<'py, PyType>,
        kubeconfig: Option<PathBuf>,
        context: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = PyDict::new(class.py());
        arguments.set_item("kubeconfig", kubeconfig)?;
        arguments.set_item("context", context)?;
        arguments.set_item("as_kubectl", true)?;
        class.call((), Some(&arguments))
    }

    /// The same connection, for blocking calls or for asyncio.
    #[pyo3(signature = (*, asyncio))]
    fn _facing(this: &Bound<'_, Self>, asyncio: bool) -> PyResult<Py<Self>> {
        let face = Face::of(asyncio);
        let own = this.get();
        if own.face == face {
            return Ok(this.clone().unbind());
        }
        let facing = Self {
            inner: own.inner.clone(),
            face,
            code_folder: own.code_folder.clone(),
            data_folder: own.data_folder.clone(),
            outputs: own.outputs.clone(),
        };
        Py::new(this.py(), facing)
    }

    /// The URL of the server.
    #[getter]
    fn url(&self) -> String {
        self.inner.url()
    }

    /// The namespace of objects for which no other is given: that of the kubeconfig's context
    /// or of the pod, otherwise `default`.
    #[getter]
    fn default_namespace(&self) -> &str {
        self.inner.default_namespace()
    }

    /// Whether the connection was closed, or the embedded cluster stopped.
    #[getter]
    fn closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// Closes the connection. Later requests raise `ClosedError`.
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

    fn __reduce__(&self) -> PyResult<()> {
        Err(crate::value::no_pickle("Cluster"))
    }

    fn __repr__(&self) -> String {
        format!("Cluster({:?})", self.inner.url())
    }

    /// A view of a kind, in one namespace or in all.
    ///
    /// :param kind: Any name of the kind: `"Pod"`, `"pods"`, `"po"`, `"deployments.apps"`.
    /// :param namespace: Only objects of this namespace; default: of all namespaces.
    #[pyo3(signature = (kind, namespace=None))]
    fn view<'py>(
        &self,
        py: Python<'py>,
        kind: String,
        namespace: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if kind.len() > MAX_KIND {
            let message = format!("no kind has a name of {} bytes", kind.len());
            return Err(one(py, "InvalidError", &message)?);
        }
        let (face, cluster) = (self.face, self.inner.clone());
        let finding = async move {
            let view = cluster.kind(&kind).await?;
            match namespace {
                Some(namespace) => view.in_namespace(&namespace),
                None => Ok(view),
            }
        };
        face.run(py, finding, move |py, view| {
            let view = View::new(view, face).into_pyobject(py)?;
            Ok(view.into_any().unbind())
        })
    }

    /// Waits until this process leads, of all that call this with the same name and namespace.
    /// They compete for a Lease, as with client-go's `leaderelection`, and need the permission
    /// to get, create and update it. All should have the same times.
    ///
    /// :param name: The name of the Lease.
    /// :param namespace: The namespace of the Lease; default: that of the cluster.
    /// :param identity: The name of this process, unique among all; default: the host's name,
    ///     which is the pod's name, and a random part.
    /// :param lease_duration: After how many seconds without a renewal another process can
    ///     lead; whole seconds, by default 15.
    /// :param renew_deadline: After how many seconds without a successful renewal this process
    ///     loses the leadership, by default 10. Less than `lease_duration`.
    /// :param retry_interval: The seconds between two attempts, by default 2. Less than
    ///     `renew_deadline`.
    #[pyo3(signature = (
        name, namespace=None, *, identity=None, lease_duration=None, renew_deadline=None,
        retry_interval=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn lead<'py>(
        &self,
        py: Python<'py>,
        name: String,
        namespace: Option<String>,
        identity: Option<String>,
        lease_duration: Option<f64>,
        renew_deadline: Option<f64>,
        retry_interval: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let times = leadership::Times {
            lease_duration,
            renew_deadline,
            retry_interval,
        };
        let identity = match identity {
            Some(identity) => identity,
            None => leadership::unique_identity(py)?,
        };
        let connection = (self.inner.clone(), self.face);
        leadership::lead(py, connection, name, namespace, identity, &times)
    }

    /// Requests by path.
    fn proxy(&self) -> Proxy {
        Proxy::new(self.inner.proxy(), self.face)
    }

    /// An item of an object's JSON. Sends no request but for the kinds that the server has.
    fn item<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (face, cluster, data) = (self.face, self.inner.clone(), to_json(data)?);
        let making = async move {
            let namespace = data["metadata"]["namespace"].as_str();
            let view = cluster.view_for(&data, namespace).await?;
            view.item_from(&data)
        };
        face.run(py, making, move |py, item| {
            Item::new(item, face).into_python(py)
        })
    }

    /// Creates the object of a mapping, or the objects of all documents in a YAML string.
    ///
    /// :param namespace: The namespace of objects that name none; default: that of the cluster.
    #[pyo3(signature = (data, namespace=None))]
    fn create<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        namespace: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (cluster, data) = (self.inner.clone(), Data::read(data)?);
        self.made(py, async move {
            let namespace = namespace.as_deref();
            match data {
                Data::Yaml(text) => {
                    let items = cluster.create_manifest(&text, namespace).await?;
                    Ok(Made::List(items))
                }
                Data::Object(data) => {
                    let view = placed(&cluster, &data, namespace).await?;
                    view.create(&data).await.map(Made::One)
                }
            }
        })
    }

    /// Applies the object of a mapping, or the objects of all documents in a YAML string, by
    /// server-side apply.
    ///
    /// :param namespace: The namespace of objects that name none; default: that of the cluster.
    /// :param manager: The name of the field manager.
    /// :param force: Take fields of other managers, instead of raising `ConflictError`.
    #[pyo3(signature = (data, namespace=None, *, manager="longshore", force=false))]
    fn apply<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        namespace: Option<String>,
        manager: &str,
        force: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (cluster, data) = (self.inner.clone(), Data::read(data)?);
        let manager = manager.to_owned();
        self.made(py, async move {
            let namespace = namespace.as_deref();
            match data {
                Data::Yaml(text) => {
                    let applying = cluster.apply_manifest(&text, namespace, &manager, force);
                    applying.await.map(Made::List)
                }
                Data::Object(data) => {
                    let view = placed(&cluster, &data, namespace).await?;
                    view.apply(&data, &manager, force).await.map(Made::One)
                }
            }
        })
    }
}

/// The maximum length of a kind's name with its group, in bytes: both are DNS names.
/// A longer name is rejected without comparing it with the names of all kinds.
const MAX_KIND: usize = 512;

/// The objects to create or apply.
enum Data {
    Yaml(String),
    Object(Value),
}

impl Data {
    fn read(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        match data.cast::<PyString>() {
            Ok(text) => Ok(Self::Yaml(text.to_str()?.to_owned())),
            Err(_) => to_json(data).map(Self::Object),
        }
    }
}

/// The objects that were created or applied.
enum Made {
    One(longshore::Item<Any>),
    List(Vec<longshore::Item<Any>>),
}

/// The view for creating an object. An object without a namespace belongs to the default
/// namespace, as with kubectl.
async fn placed(
    cluster: &Inner,
    data: &Value,
    namespace: Option<&str>,
) -> Result<longshore::View<Any>, Error> {
    match namespace {
        Some(_) => cluster.view_for(data, namespace).await,
        None => cluster.home(data).await,
    }
}

impl Cluster {
    /// A selected cluster.
    pub(crate) fn of(selected: Selected, face: Face) -> Self {
        let Selected {
            connection,
            embedded,
        } = selected;
        let embedded = embedded.as_ref();
        Self {
            face,
            code_folder: embedded.map(|(layout, _)| layout.bundles()),
            data_folder: embedded.map(|(layout, _)| layout.data()),
            outputs: embedded.map(|(layout, ephemeral)| outputs::of(layout, *ephemeral)),
            ..Self::blocking(connection)
        }
    }

    pub(crate) fn blocking(inner: Inner) -> Self {
        Self {
            inner,
            face: Face::Blocking,
            code_folder: None,
            data_folder: None,
            outputs: None,
        }
    }

    fn made<'py>(
        &self,
        py: Python<'py>,
        making: impl Future<Output = Result<Made, Error>> + Send + 'static,
    ) -> PyResult<Bound<'py, PyAny>> {
        let face = self.face;
        face.run(py, making, move |py, made| match made {
            Made::One(item) => Item::new(item, face).into_python(py),
            Made::List(items) => {
                let items = items.into_iter().map(|item| Item::new(item, face));
                let items: Vec<Item> = items.collect();
                Ok(items.into_pyobject(py)?.unbind())
            }
        })
    }

    pub(crate) fn ready(&self, py: Python<'_>) -> PyResult<Inner> {
        self.face
            .require(Face::Blocking, "one of longshore.Cluster")?;
        if self.inner.is_closed() {
            return Err(crate::errors::raised(py, Error::Closed.into()));
        }
        Ok(self.inner.clone())
    }
}
