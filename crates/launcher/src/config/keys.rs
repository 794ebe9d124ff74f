//! The valid keys of `longshore.toml`, and the closest key to a misspelled one.

use crate::suggest;

use super::{ConfigError, position, source::Source};

pub(super) const KEYS: &[&str] = &[
    "affinity",
    "allow_secrets",
    "annotations",
    "cluster",
    "code",
    "command",
    "concurrency_policy",
    "cron",
    "env",
    "env_from",
    "ignore",
    "image",
    "image_pull_policy",
    "image_pull_secrets",
    "jobset",
    "kubeconfig",
    "labels",
    "launcher_image",
    "name",
    "namespace",
    "node_selector",
    "peer_timeout",
    "port",
    "priority_class",
    "queue",
    "resources",
    "restricted",
    "retries",
    "roles",
    "service_account",
    "shared_memory",
    "start_timeout",
    "store",
    "template",
    "termination_grace",
    "time_zone",
    "timeout",
    "tolerations",
    "ttl",
    "volumes",
];

pub(super) const ROLE_KEYS: &[&str] = &[
    "affinity",
    "command",
    "count",
    "env",
    "env_from",
    "image",
    "node_selector",
    "priority_class",
    "resources",
    "service",
    "shared_memory",
    "template",
    "termination_grace",
    "tolerations",
    "volumes",
];

/// Rejects a table with an unknown key, and suggests the closest valid one.
pub(super) fn check(
    table: &toml::Table,
    valid: &[&str],
    tables: &[&str],
    source: &Source,
) -> Result<(), ConfigError> {
    let Some(key) = table.keys().find(|key| !valid.contains(&key.as_str())) else {
        return Ok(());
    };
    let (prefix, place) = match tables.join(".") {
        top if top.is_empty() => (String::new(), String::new()),
        place => (format!("{place}."), format!(" in [{place}]")),
    };
    let at = position::key(&source.text, &[tables, &[key]].concat());
    let at = at.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"));
    Err(ConfigError::UnknownKey {
        at: format!("{}{at}", source.path.display()),
        key: format!("{prefix}{key}"),
        place,
        nearest: match key.as_str() {
            "cpu" | "memory" | "gpu" => Some(format!("resources.{key}")),
            _ => nearest(key, valid).map(str::to_owned),
        },
        valid: valid.join(", "),
    })
}

/// The closest valid key to a misspelled one.
fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase().replace('-', "_");
    suggest::nearest(&word, candidates.iter().copied())
}
