//! The metrics to read from log lines.

use super::{ConfigError, RunOptions, layers::Layers, values::invalid_at};
use crate::metric_values::{MOST_NAMES, check_metric};

/// Merges and checks the names.
pub(super) fn resolve<const N: usize>(
    options: Layers<'_, RunOptions, N>,
) -> Result<Vec<String>, ConfigError> {
    let mut names: Vec<String> = Vec::new();
    for name in options.entries(|run| &run.metrics) {
        check_metric(name).map_err(|rule| invalid_at("metrics", name, rule))?;
        if names.len() == MOST_NAMES {
            let rule = format!("use at most {MOST_NAMES} metrics");
            return Err(invalid_at("metrics", name, rule));
        }
        if !names.contains(name) {
            names.push(name.to_string());
        }
    }
    Ok(names)
}
