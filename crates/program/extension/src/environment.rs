//! Clusters that other launchers describe in environment variables.

use std::collections::BTreeMap;

use longshore::resolver::environment::{self, Described, EnvironmentError, SlurmOptions};
use pyo3::prelude::*;

use crate::{exceptions::invalid, spec::ClusterSpec};

/// The spec, the own task, the scheme of URLs, the URL of the master, and the environment.
type Parts = (
    ClusterSpec,
    Option<(String, u32)>,
    Option<String>,
    Option<String>,
    String,
);

fn parts(described: Result<Described, EnvironmentError>) -> PyResult<Parts> {
    let described = described.map_err(|error| invalid(error.to_string()))?;
    Ok((
        ClusterSpec {
            inner: described.spec,
        },
        described.task,
        described.rpc_layer,
        described.session_master,
        described.environment,
    ))
}

/// Reads the value of `TF_CONFIG`.
#[pyfunction]
pub(crate) fn read_tf_config(text: &str) -> PyResult<Parts> {
    parts(environment::tf_config(text))
}

/// Reads the variables of a job step of Slurm.
#[pyfunction]
#[pyo3(signature = (variables, jobs, port, tasks_per_node=None))]
#[expect(clippy::needless_pass_by_value, reason = "extracted from Python")]
pub(crate) fn read_slurm(
    variables: BTreeMap<String, String>,
    jobs: Vec<(String, u32)>,
    port: u16,
    tasks_per_node: Option<u32>,
) -> PyResult<Parts> {
    let mut options = SlurmOptions::default();
    options.jobs = jobs;
    options.port = port;
    options.tasks_per_node = tasks_per_node;
    parts(environment::slurm(
        |name| variables.get(name).cloned(),
        &options,
    ))
}

/// Reads the variables of a training job of SageMaker.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "extracted from Python")]
pub(crate) fn read_sagemaker(variables: BTreeMap<String, String>, port: u16) -> PyResult<Parts> {
    parts(environment::sagemaker(
        |name| variables.get(name).cloned(),
        port,
    ))
}
