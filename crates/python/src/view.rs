//! The objects of one kind.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use futures::{StreamExt, stream::BoxStream};
use longshore::{Error, FieldSelector, LabelSelector, client::DeleteOptions, kinds::Any};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyMapping, PyString},
};

use crate::{
    errors::raise,
    html,
    item::{Item, Watch, patch},
    value::{text, to_json, type_name},
    wait::wait,
};

/// The objects of one kind, in one namespace or in all.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct View {
    inner: longshore::View<Any>,
}

impl View {
    pub(crate) fn new(inner: longshore::View<Any>) -> Self {
        Self { inner }
    }

    pub(crate) fn scoped(self, py: Python<'_>, namespace: Option<&str>) -> PyResult<Self> {
        let Some(namespace) = namespace else {
            return Ok(self);
        };
        let inner = self.inner.in_namespace(namespace).map_err(raise(py))?;
        Ok(Self { inner })
    }
}

/// A selector: a string, or a mapping of keys to required values.
enum Words {
    Text(String),
    Pairs(BTreeMap<String, String>),
}

impl Words {
    fn read(selector: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = selector.cast::<PyString>() {
            return self::text(text).map(Self::Text);
        }
        let Ok(mapping) = selector.cast::<PyMapping>() else {
            return Err(wrong_type(selector));
        };
        let mut pairs = BTreeMap::new();
        for pair in mapping.items()?.try_iter()? {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            let key = key.cast::<PyString>().map_err(|_| wrong_type(&key))?;
            let value = value.cast::<PyString>().map_err(|_| wrong_type(&value))?;
            pairs.insert(text(key)?, text(value)?);
        }
        Ok(Self::Pairs(pairs))
    }
}

fn wrong_type(found: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "a selector is a text, as in 'app=web', or a mapping of texts to texts, not {}",
        type_name(found)
    ))
}

/// Rejects a selector that selects everything, because it is usually a mistake.
fn narrow<S: ToString>(selector: S) -> PyResult<S> {
    if selector.to_string().is_empty() {
        return Err(PyValueError::new_err(
            "an empty selector selects everything: leave it out",
        ));
    }
    Ok(selector)
}

/// Parses a label selector.
pub(crate) fn labels(py: Python<'_>, selector: &Bound<'_, PyAny>) -> PyResult<LabelSelector> {
    let made = match Words::read(selector)? {
        Words::Text(text) => text.parse::<LabelSelector>(),
        Words::Pairs(pairs) => LabelSelector::exactly(pairs),
    };
    narrow(made.map_err(Error::from).map_err(raise(py))?)
}

fn fields(py: Python<'_>, selector: &Bound<'_, PyAny>) -> PyResult<FieldSelector> {
    let made = match Words::read(selector)? {
        Words::Text(text) => text.parse::<FieldSelector>(),
        Words::Pairs(pairs) => {
            let all = FieldSelector::everything();
            Ok(pairs
                .iter()
                .fold(all, |all, (key, value)| all.with(key, value)))
        }
    };
    narrow(made.map_err(Error::from).map_err(raise(py))?)
}

#[pymethods]
impl View {
    #[getter]
    fn kind(&self) -> &str {
        &self.inner.kind().gvk.kind
    }

    #[getter]
    fn namespace(&self) -> Option<&str> {
        self.inner.namespace()
    }

    /// The same kind in one namespace.
    fn in_namespace(&self, py: Python<'_>, namespace: &str) -> PyResult<Self> {
        Self::new(self.inner.clone()).scoped(py, Some(namespace))
    }

    /// A view of only the objects that the selectors select.
    #[pyo3(signature = (*, labels=None, fields=None))]
    fn filter(
        &self,
        py: Python<'_>,
        labels: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut inner = self.inner.clone();
        if let Some(selector) = labels {
            inner = inner.labels(self::labels(py, selector)?);
        }
        if let Some(selector) = fields {
            inner = inner.fields(self::fields(py, selector)?);
        }
        Ok(Self { inner })
    }

    fn __iter__(&self) -> Items {
        Items {
            stream: tokio::sync::Mutex::new(self.inner.stream().ready_chunks(AT_ONCE).boxed()),
            here: Mutex::default(),
        }
    }

    fn fetch(&self, py: Python<'_>, name: &str) -> PyResult<Item> {
        wait(py, self.inner.fetch(name)).map(Item::new)
    }

    fn create(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Item> {
        let data = to_json(data)?;
        wait(py, self.inner.create(&data)).map(Item::new)
    }

    #[pyo3(signature = (name, body, *, kind="strategic"))]
    fn patch(
        &self,
        py: Python<'_>,
        name: &str,
        body: &Bound<'_, PyAny>,
        kind: &str,
    ) -> PyResult<Item> {
        let patch = patch(kind, to_json(body)?)?;
        wait(py, self.inner.patch(name, &patch)).map(Item::new)
    }

    fn delete(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let options = DeleteOptions::default();
        wait(py, self.inner.delete(name, &options))
    }

    /// Watches changes, starting now.
    fn watch(&self, py: Python<'_>) -> PyResult<Watch> {
        wait(py, self.inner.watch()).map(Watch::new)
    }

    /// The current number of objects.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        wait(py, self.inner.count())
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

    fn __repr__(&self) -> String {
        let place = self.inner.namespace().unwrap_or("all namespaces");
        format!("<View of {} in {place}>", self.inner.kind().plural)
    }
}

type Next = Result<longshore::Item<Any>, Error>;

/// The maximum number of buffered items that one wait takes from the stream.
const AT_ONCE: usize = 1_000;

/// An iterator over items that requests one page after the other.
#[pyclass(frozen)]
struct Items {
    stream: tokio::sync::Mutex<BoxStream<'static, Vec<Next>>>,
    here: Mutex<std::vec::IntoIter<Next>>,
}

impl Items {
    fn here(&self) -> std::sync::MutexGuard<'_, std::vec::IntoIter<Next>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Items {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Item>> {
        let first = self.here().next();
        let next = match first {
            Some(next) => Some(next),
            None => {
                let more = async { Ok::<_, Error>(self.stream.lock().await.next().await) };
                let mut more = wait(py, more)?.unwrap_or_default().into_iter();
                let next = more.next();
                *self.here() = more;
                next
            }
        };
        let item = next.transpose().map_err(raise(py))?;
        Ok(item.map(Item::new))
    }
}
