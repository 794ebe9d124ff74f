//! The cluster for calls without a cluster.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::{
    cluster::Cluster,
    face::Face,
    program::{choose, open},
};

/// The cluster of a folder, as the program selects it, with the name of the context, if one is
/// selected. Starts the embedded cluster if needed.
#[pyfunction]
#[pyo3(signature = (folder, context=None, *, asyncio=false))]
pub(crate) fn selected_cluster(
    py: Python<'_>,
    folder: PathBuf,
    context: Option<String>,
    asyncio: bool,
) -> PyResult<Bound<'_, PyAny>> {
    let face = Face::of(asyncio);
    let (choice, name) = choose(py, &folder, context)?;
    let opening = open(py, choice)?;
    face.run(py, opening, move |py, selected| {
        let cluster = Cluster::of(selected, face);
        Ok((cluster, name).into_pyobject(py)?.into_any().unbind())
    })
}
