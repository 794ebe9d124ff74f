//! Reads the variables of Amazon SageMaker's training jobs.

use super::{Described, EnvironmentError, invalid, required};

/// The port of the tasks, as in TensorFlow's `SageMakerClusterResolver`.
pub const SAGEMAKER_PORT: u16 = 2223;

const REMEDY: &str = "SageMaker sets it in the containers of a training job";

/// Reads `SM_HOSTS` and `SM_CURRENT_HOST`: one role `worker`, with a task per host in the order of
/// their names, as in TensorFlow's `SageMakerClusterResolver`.
///
/// # Errors
/// [`EnvironmentError::Missing`], [`EnvironmentError::Invalid`].
///
/// ```
/// use longshore_resolver::environment::{SAGEMAKER_PORT, sagemaker};
/// let variable = |name: &str| match name {
///     "SM_HOSTS" => Some(r#"["algo-1", "algo-2"]"#.to_owned()),
///     "SM_CURRENT_HOST" => Some("algo-2".to_owned()),
///     _ => None,
/// };
/// let described = sagemaker(variable, SAGEMAKER_PORT).unwrap();
/// assert_eq!(described.spec.task_address("worker", 0), Ok("algo-1:2223"));
/// assert_eq!(described.task, Some(("worker".to_owned(), 1)));
/// ```
pub fn sagemaker(
    variable: impl Fn(&str) -> Option<String>,
    port: u16,
) -> Result<Described, EnvironmentError> {
    let hosts = required(&variable, "SM_HOSTS", REMEDY)?;
    let mut hosts: Vec<String> =
        serde_json::from_str(&hosts).map_err(|error| invalid("SM_HOSTS", error))?;
    hosts.sort();
    let current = required(&variable, "SM_CURRENT_HOST", REMEDY)?;
    let mut described = Described::default();
    for host in &hosts {
        let index = described.spec.push("worker", format!("{host}:{port}"));
        if *host == current {
            described.task = Some(("worker".to_owned(), index));
        }
    }
    if described.task.is_none() {
        let problem = format!("{current:?} is not one of SM_HOSTS: {}", hosts.join(", "));
        return Err(invalid("SM_CURRENT_HOST", problem));
    }
    Ok(described)
}
