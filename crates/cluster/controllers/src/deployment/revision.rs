//! Annotations: revisions, and the sizes that show whether a Deployment was scaled.

use std::collections::BTreeMap;

use super::facts::{Deployment, ReplicaSet};

pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// The annotations that a ReplicaSet does not inherit.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];
/// The maximum length of the history.
const MAX_HISTORY_LENGTH: usize = 2000;

type Annotations = BTreeMap<String, String>;

/// Returns the revision of a ReplicaSet; `None` if it is not a number.
pub(crate) fn revision(set: &ReplicaSet) -> Option<i64> {
    let text = set.annotations.get(REVISION);
    text.map_or(Some(0), |text| text.parse().ok())
}

/// Returns the highest revision.
pub(crate) fn highest(sets: &[ReplicaSet]) -> i64 {
    sets.iter().filter_map(revision).max().unwrap_or(0).max(0)
}

/// Returns the Deployment's desired number of pods when the ReplicaSet was last
/// scaled.
pub(crate) fn desired(set: &ReplicaSet) -> Option<i64> {
    count(set.annotations.get(DESIRED)?)
}

/// Returns the Deployment's maximum number of pods when the ReplicaSet was last
/// scaled.
pub(crate) fn most(set: &ReplicaSet) -> Option<i64> {
    count(set.annotations.get(MAX)?).filter(|count| *count > 0)
}

fn count(text: &str) -> Option<i64> {
    text.parse::<u32>()
        .ok()
        .and_then(|count| i32::try_from(count).ok())
        .map(i64::from)
}

/// Records the sizes.
pub(crate) fn note_sizes(annotations: &mut Annotations, deployment: &Deployment) {
    let spec = &deployment.spec;
    annotations.insert(DESIRED.to_owned(), spec.replicas.to_string());
    annotations.insert(MAX.to_owned(), spec.most().to_string());
}

/// Gives the new ReplicaSet the Deployment's annotations, and the revision unless
/// it has a higher one. Its previous revision is added to its history.
pub(crate) fn note_revision(annotations: &mut Annotations, deployment: &Deployment, revision: i64) {
    for (key, value) in &deployment.annotations {
        if !NOT_COPIED.contains(&key.as_str()) {
            annotations.insert(key.clone(), value.clone());
        }
    }
    let old = annotations.get(REVISION).cloned();
    let number = match old.as_deref() {
        None | Some("") => 0,
        Some(text) => match text.parse::<i64>() {
            Ok(number) => number,
            Err(_) => return,
        },
    };
    if number >= revision {
        return;
    }
    annotations.insert(REVISION.to_owned(), revision.to_string());
    let Some(old) = old else { return };
    let history = annotations.get(HISTORY).cloned().unwrap_or_default();
    if let Some(history) = extended(&history, &old) {
        annotations.insert(HISTORY.to_owned(), history);
    }
}

/// Returns the history with one more revision. If it is too long, the oldest
/// revisions are removed.
fn extended(history: &str, revision: &str) -> Option<String> {
    if history.is_empty() {
        return Some(revision.to_owned());
    }
    let mut text = format!("{history},{revision}");
    while text.len() > MAX_HISTORY_LENGTH {
        text = text.split_once(',')?.1.to_owned();
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_keeps_the_newest_revisions() {
        assert_eq!(extended("", "3").as_deref(), Some("3"));
        assert_eq!(extended("1,3", "5").as_deref(), Some("1,3,5"));
        let long = vec!["100"; 500].join(",");
        let text = extended(&long, "7").unwrap_or_default();
        assert!(text.len() <= MAX_HISTORY_LENGTH && text.ends_with("100,7"));
    }
}
