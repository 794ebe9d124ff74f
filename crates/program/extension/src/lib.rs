//! The native extension module of the Python package `longshore`. It converts values
//! and errors, and waits for results. The wrapped crates implement everything else.
//!
//! Calls that wait release the interpreter's lock, and Ctrl-C interrupts them.

mod awaitable;
mod cache;
mod cluster;
mod delete;
mod embedded;
mod environment;
mod errors;
mod exceptions;
mod face;
mod html;
mod item;
mod leadership;
mod objects;
mod options;
mod outputs;
mod pieces;
mod program;
mod proxy;
mod recording;
mod resolver;
mod run_list;
mod runs;
mod selected;
mod selector;
mod spec;
mod stream;
mod tasks;
mod tracking;
mod until;
mod value;
mod view;
mod wait;
mod zenml;

use pyo3::prelude::*;

#[pymodule(name = "_native")]
/// Fills the module.
pub fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<cache::Cache>()?;
    module.add_class::<cluster::Cluster>()?;
    module.add_class::<embedded::EmbeddedCluster>()?;
    module.add_class::<embedded::Faults>()?;
    module.add_class::<embedded::Snapshot>()?;
    module.add_class::<leadership::Leadership>()?;
    module.add_class::<objects::Item>()?;
    module.add_class::<item::PortForward>()?;
    module.add_class::<item::Session>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<objects::View>()?;
    module.add_class::<item::Watch>()?;
    module.add_class::<proxy::Proxy>()?;
    module.add_class::<recording::Replay>()?;
    module.add_class::<resolver::Resolver>()?;
    module.add_class::<resolver::Generations>()?;
    module.add_class::<spec::ClusterSpec>()?;
    module.add_class::<tasks::Tasks>()?;
    module.add_class::<zenml::PipelineBackend>()?;
    module.add_class::<runs::Run>()?;
    module.add_function(wrap_pyfunction!(runs::launch, module)?)?;
    module.add_function(wrap_pyfunction!(selected::selected_cluster, module)?)?;
    module.add_function(wrap_pyfunction!(runs::find_run, module)?)?;
    module.add_function(wrap_pyfunction!(runs::settings_keys, module)?)?;
    module.add_function(wrap_pyfunction!(runs::nearest, module)?)?;
    module.add_function(wrap_pyfunction!(run_list::list_runs, module)?)?;
    module.add_function(wrap_pyfunction!(selector::check_label, module)?)?;
    module.add_function(wrap_pyfunction!(value::quantity, module)?)?;
    module.add_function(wrap_pyfunction!(environment::read_sagemaker, module)?)?;
    module.add_function(wrap_pyfunction!(environment::read_slurm, module)?)?;
    module.add_function(wrap_pyfunction!(environment::read_tf_config, module)?)?;
    module.add_function(wrap_pyfunction!(tasks::assemble, module)?)
}
