//! Ray: `RAY_ADDRESS`.

use super::{Job, RenderError, Variables, leader};

/// The role of Ray's head.
pub(super) const HEAD: &str = "head";
/// Where a head's control store listens.
pub(super) const PORT: u16 = 6379;

/// Ray's variable: the address of the head, for `ray start --address` and
/// `ray.init()`.
///
/// # Errors
/// [`RenderError::Empty`] for a job without tasks.
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
