//! The native part of the Python package `longshore`. It translates: values,
//! errors, waiting. What happens is decided in the crates below.
//!
//! A call that waits here releases the interpreter's lock, and ends on Ctrl-C.

mod cluster;
mod embedded;
mod errors;
mod html;
mod item;
mod options;
mod resolver;
mod spec;
mod tasks;
mod value;
mod view;
mod wait;
mod zenml;

use pyo3::prelude::*;

#[pymodule(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<cluster::Cluster>()?;
    module.add_class::<embedded::EmbeddedCluster>()?;
    module.add_class::<item::Item>()?;
    module.add_class::<view::View>()?;
    module.add_class::<item::Watch>()?;
    module.add_class::<resolver::Resolver>()?;
    module.add_class::<resolver::Generations>()?;
    module.add_class::<spec::ClusterSpec>()?;
    module.add_class::<tasks::Tasks>()?;
    module.add_class::<zenml::PipelineBackend>()?;
    module.add_class::<zenml::Run>()?;
    module.add_class::<zenml::Following>()?;
    module.add_function(wrap_pyfunction!(tasks::assemble, module)?)
}
