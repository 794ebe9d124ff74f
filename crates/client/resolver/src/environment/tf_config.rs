//! Reads TensorFlow's `TF_CONFIG`.

use serde::Deserialize;
use serde_json::Value;

use super::{Described, EnvironmentError, invalid};
use crate::spec::ClusterSpec;

const NAME: &str = "TF_CONFIG";

#[derive(Deserialize, Default)]
#[serde(default)]
struct Config {
    cluster: Option<Value>,
    task: Option<Task>,
    rpc_layer: Option<String>,
    session_master: Option<String>,
    environment: Option<String>,
}

#[derive(Deserialize)]
struct Task {
    r#type: Option<String>,
    index: Option<Index>,
}

/// Some launchers write the index as text, which TensorFlow converts.
#[derive(Deserialize)]
#[serde(untagged)]
enum Index {
    Number(u32),
    Text(String),
}

/// Reads the value of `TF_CONFIG`, in the format of TensorFlow's `TFConfigClusterResolver`. An empty
/// value has no tasks.
///
/// # Errors
/// [`EnvironmentError::Invalid`] or [`EnvironmentError::Spec`].
///
/// ```
/// use longshore_resolver::environment::tf_config;
/// let text = r#"{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}"#;
/// let described = tf_config(text).unwrap();
/// assert_eq!(described.spec.task_address("worker", 0), Ok("a:1"));
/// assert_eq!(described.task, Some(("worker".to_owned(), 1)));
/// ```
pub fn tf_config(text: &str) -> Result<Described, EnvironmentError> {
    if text.trim().is_empty() {
        return Ok(Described::default());
    }
    let config: Config = serde_json::from_str(text).map_err(|error| invalid(NAME, error))?;
    let spec = match &config.cluster {
        None => ClusterSpec::new(),
        Some(cluster) => ClusterSpec::from_value(cluster)
            .map_err(|source| EnvironmentError::Spec { name: NAME, source })?,
    };
    let task = match config.task {
        Some(Task {
            r#type: Some(role),
            index: Some(index),
        }) => Some((role, number(index)?)),
        _ => None,
    };
    Ok(Described {
        spec,
        task,
        rpc_layer: config.rpc_layer,
        session_master: config.session_master,
        environment: config.environment.unwrap_or_default(),
    })
}

fn number(index: Index) -> Result<u32, EnvironmentError> {
    match index {
        Index::Number(number) => Ok(number),
        Index::Text(text) => text.parse().map_err(|_| {
            invalid(
                NAME,
                format!("the index of the task must be a number, but is {text:?}"),
            )
        }),
    }
}
