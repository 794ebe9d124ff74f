//! The sweeps of a cluster: their tables, and retries of their failed combinations.

mod error;
mod objects;
mod retry;
mod table;

use futures::future::BoxFuture;
use longshore_client::Cluster;

pub use error::SweepError;
pub use table::SweepTable;

use crate::{metrics::MetricSources, plan::Plan, run::Run};

/// Reads the combinations of a sweep with their states and metrics, merged with the combinations of
/// retries. `run` is the sweep or a retry of it.
///
/// # Errors
/// See [`SweepError`].
pub fn table<'a>(
    cluster: &'a Cluster,
    run: &'a Run,
    metrics: MetricSources<'a>,
) -> BoxFuture<'a, Result<SweepTable, SweepError>> {
    // Boxed, so that this crate compiles the future, not each crate that awaits it.
    Box::pin(table::read(cluster, run, metrics))
}

/// Plans a run of the combinations of a sweep that failed or were cancelled, with the same code,
/// command and settings. `run` is the sweep or a retry of it.
///
/// # Errors
/// [`SweepError::NothingToRetry`] if no combination failed. See [`SweepError`].
pub fn retry<'a>(
    cluster: &'a Cluster,
    run: &'a Run,
    suffix: &'a str,
) -> BoxFuture<'a, Result<Plan, SweepError>> {
    // Boxed for the same reason as above.
    Box::pin(retry::plan(cluster, run, suffix))
}
