//! Ray: `RAY_ADDRESS`.

use super::{Job, RenderError, Variables, leader};

/// The role of Ray's head node.
pub(super) const HEAD: &str = "head";
/// The port of the head node's control store (GCS).
pub(super) const PORT: u16 = 6379;

/// Returns Ray's environment variable: the address of the head node, for `ray start
/// --address` and `ray.init()`.
///
/// # Errors
/// [`RenderError::Empty`] if the job has no tasks.
///
/// ```
/// use longshore_resolver::{ClusterSpec, render::{Job, ray}};
/// let mut spec = ClusterSpec::new();
/// spec.push("head", "10.0.0.1:6379");
/// spec.push("worker", "10.0.0.2:6379");
/// assert_eq!(ray(&Job::new(spec)).unwrap(), [("RAY_ADDRESS", "10.0.0.1:6379".to_owned())]);
/// ```
pub fn ray(job: &Job) -> Result<Variables, RenderError> {
    let (role, index) = leader(job.spec()).ok_or(RenderError::Empty)?;
    let address = job.spec().task_address(role, index)?;
    Ok(vec![("RAY_ADDRESS", address.to_owned())])
}
