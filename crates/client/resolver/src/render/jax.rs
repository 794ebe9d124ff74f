//! JAX: `jax.distributed.initialize()`.

use super::{Job, RenderError, Variables};

/// The port that JAX uses when it detects a Kubernetes Job.
pub(super) const PORT: u16 = 8476;

/// Returns JAX's environment variables for one task: the coordinator's address, the
/// number of processes and the process ID. `jax.distributed.initialize()` reads the
/// first variable itself; the program must pass the other two to it as integers.
///
/// # Errors
/// [`RenderError::Spec`] if the task does not exist.
///
/// ```
/// use longshore_resolver::{ClusterSpec, render::{Job, jax}};
/// let mut spec = ClusterSpec::new();
/// spec.push("worker", "w-0.train:8476");
/// spec.push("worker", "w-1.train:8476");
/// assert_eq!(jax(&Job::new(spec), "worker", 1).unwrap(), [
///     ("JAX_COORDINATOR_ADDRESS", "w-0.train:8476".to_owned()),
///     ("JAX_NUM_PROCESSES", "2".to_owned()),
///     ("JAX_PROCESS_ID", "1".to_owned()),
/// ]);
/// ```
pub fn jax(job: &Job, role: &str, index: u32) -> Result<Variables, RenderError> {
    let (leader, rank, world) = job.rank(role, index)?;
    Ok(vec![
        ("JAX_COORDINATOR_ADDRESS", leader.address.to_owned()),
        ("JAX_NUM_PROCESSES", world.to_string()),
        ("JAX_PROCESS_ID", rank.to_string()),
    ])
}
