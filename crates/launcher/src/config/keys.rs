//! The keys that `longshore.toml` knows, and the nearest one to a word.

use super::{ConfigError, Source, place};

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

/// Refuses a table with a key that is none, and tells the nearest one.
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
    let at = place::key(&source.text, &[tables, &[key]].concat());
    let at = at.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"));
    Err(ConfigError::UnknownKey {
        at: format!("{}{at}", source.path.display()),
        key: format!("{prefix}{key}"),
        place,
        nearest: nearest(key, valid).map(str::to_owned),
        valid: valid.join(", "),
    })
}

/// The candidate that is fewest edits away, when it is near enough to be
/// meant.
fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase().replace('-', "_");
    let distance = |candidate: &str| edits(&word, candidate);
    let best = candidates
        .iter()
        .min_by_key(|candidate| distance(candidate))?;
    (distance(best) <= best.len().div_ceil(3)).then_some(*best)
}

/// The number of letters to insert, delete or change (Levenshtein).
fn edits(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
