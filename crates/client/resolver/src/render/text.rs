//! Renders variables and specs as text.

use super::Variables;
use crate::spec::ClusterSpec;

/// Renders `NAME=value` lines for `docker run --env-file` and `systemd`. No value
/// contains a newline.
#[must_use]
pub fn env_lines(variables: &Variables) -> String {
    let lines = variables
        .iter()
        .map(|(name, value)| format!("{name}={value}\n"));
    lines.collect()
}

/// Renders lines that a POSIX shell can `eval`.
///
/// ```
/// use longshore_resolver::render::shell_exports;
/// let variables = vec![("NAME", "it's".to_owned())];
/// assert_eq!(shell_exports(&variables), "export NAME='it'\\''s'\n");
/// ```
#[must_use]
pub fn shell_exports(variables: &Variables) -> String {
    let lines = variables.iter().map(|(name, value)| {
        let quoted = value.replace('\'', r"'\''");
        format!("export {name}='{quoted}'\n")
    });
    lines.collect()
}

pub(super) fn yaml(spec: &ClusterSpec) -> String {
    longshore_model::yaml::write(&spec.as_dict())
}
