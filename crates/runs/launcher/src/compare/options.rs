//! The results, the options and the environment of a run as texts by name. Pure.

use std::collections::BTreeMap;

use longshore_client::k8s_openapi::api::batch::v1::Job;
use longshore_diagnosis::names;
use serde::Serialize;

use crate::{
    pod::PodConfig,
    runs::RunSummary,
    usage::{RunUsageSummary, TaskUsage, bytes},
};

/// Texts by name.
pub(super) type Texts = BTreeMap<String, String>;

/// A value that differs. `None` if a run does not have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The name of the value.
    pub name: String,
    /// The values of both runs.
    pub values: [Option<String>; 2],
}

/// A variable that differs, without its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EnvironmentChange {
    /// The role.
    pub role: String,
    /// The name of the variable.
    pub name: String,
    /// `added`, `removed` or `changed`.
    pub change: &'static str,
}

/// The differences between two maps.
pub(super) fn changes(one: &Texts, other: &Texts) -> Vec<Change> {
    let added = other.keys().filter(|name| !one.contains_key(*name));
    let mut names: Vec<&String> = one.keys().chain(added).collect();
    names.sort();
    names
        .into_iter()
        .map(|name| Change {
            name: name.clone(),
            values: [one.get(name).cloned(), other.get(name).cloned()],
        })
        .filter(|change| change.values[0] != change.values[1])
        .collect()
}

/// The results of a run.
pub(super) fn results(summary: &RunSummary, tasks: &[TaskUsage]) -> Texts {
    let mut texts = Texts::new();
    let mut set = |name: &str, text: String| texts.insert(name.to_owned(), text);
    set("state", summary.state.as_str().to_owned());
    if let Some(code) = summary.exit_code {
        set("exit code", code.to_string());
    }
    if let Some((from, to)) = summary.created.zip(summary.finished) {
        let seconds = to.as_second().saturating_sub(from.as_second());
        set("duration", format!("{seconds} s"));
    }
    if let Some(usage) = RunUsageSummary::of(tasks) {
        set("mean CPU", format!("{:.1}", usage.mean_cpu));
        set("peak memory", bytes(usage.peak_memory as f64));
        if let Some((percent, memory)) = usage.gpu {
            set("mean GPU", format!("{percent:.0}%"));
            set("peak GPU memory", bytes(memory as f64));
        }
    }
    texts
}

/// The options of a run that its Jobs contain.
pub(super) fn options(summary: &RunSummary, jobs: &[Job]) -> Texts {
    let mut texts = Texts::new();
    let mut set = |name: String, text: String| texts.insert(name, text);
    for (key, value) in &summary.tags {
        set(format!("tag {key}"), value.clone());
    }
    for (key, value) in &summary.labels {
        set(format!("label {key}"), value.clone());
    }
    if let Some(note) = &summary.note {
        set("note".to_owned(), note.clone());
    }
    for job in jobs {
        let labels = job.metadata.labels.as_ref();
        let role = labels.and_then(|labels| labels.get(names::ROLE));
        let role = role.map_or("", String::as_str);
        let mut set = |name: &str, text: Option<String>| {
            text.and_then(|text| set(format!("{role}: {name}"), text))
        };
        let annotations = job.metadata.annotations.as_ref();
        let annotation = |key: &str| annotations.and_then(|all| all.get(key)).cloned();
        set("command", annotation(names::COMMAND));
        set("outputs", annotation(names::OUTPUTS));
        let Some(spec) = &job.spec else { continue };
        set("tasks", spec.completions.map(|count| count.to_string()));
        let retries = spec.backoff_limit_per_index.or(spec.backoff_limit);
        set("retries", retries.map(|count| count.to_string()));
        let timeout = spec.active_deadline_seconds;
        set("timeout", timeout.map(|seconds| format!("{seconds} s")));
        let Some(pod) = &spec.template.spec else {
            continue;
        };
        set("service account", pod.service_account_name.clone());
        let host_network = pod.host_network.filter(|on| *on);
        set("host network", host_network.map(|on| on.to_string()));
        set("priority class", pod.priority_class_name.clone());
        for (key, value) in pod.node_selector.iter().flatten() {
            set(&format!("node selector {key}"), Some(value.clone()));
        }
        let main = pod.containers.iter().find(|one| one.name == names::MAIN);
        let Some(main) = main else { continue };
        set("image", main.image.clone());
        let Some(resources) = &main.resources else {
            continue;
        };
        for (kind, amounts) in [
            ("request", &resources.requests),
            ("limit", &resources.limits),
        ] {
            for (resource, amount) in amounts.iter().flatten() {
                set(&format!("{kind} {resource}"), Some(amount.0.clone()));
            }
        }
    }
    texts
}

/// The variables that differ, by role and name.
pub(super) fn environment(one: &PodConfig, other: &PodConfig) -> Vec<EnvironmentChange> {
    let variables = |config: &PodConfig| {
        let roles = config.roles.iter();
        let of_role = |role: &crate::pod::PodRole| {
            let name = role.name.clone();
            let env = role.env.clone().into_iter();
            env.map(move |(key, value)| ((name.clone(), key), value))
        };
        roles.flat_map(of_role).collect::<BTreeMap<_, _>>()
    };
    let (one, other) = (variables(one), variables(other));
    let added = other.keys().filter(|key| !one.contains_key(*key));
    let mut keys: Vec<_> = one.keys().chain(added).collect();
    keys.sort();
    let change = |key: &(String, String)| {
        let change = match (one.get(key), other.get(key)) {
            (None, _) => "added",
            (_, None) => "removed",
            (one, other) if one != other => "changed",
            _ => return None,
        };
        Some(EnvironmentChange {
            role: key.0.clone(),
            name: key.1.clone(),
            change,
        })
    };
    keys.into_iter().filter_map(change).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_differences_remain() {
        let texts = |pairs: &[(&str, &str)]| -> Texts {
            let owned = pairs
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
            owned.collect()
        };
        let found = changes(
            &texts(&[("a", "1"), ("b", "2"), ("c", "3")]),
            &texts(&[("a", "1"), ("b", "9"), ("0", "4")]),
        );
        let found: Vec<String> = found
            .iter()
            .map(|change| {
                let [one, other] = &change.values;
                format!(
                    "{} {:?} {:?}",
                    change.name,
                    one.as_deref(),
                    other.as_deref()
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                "0 None Some(\"4\")",
                "b Some(\"2\") Some(\"9\")",
                "c Some(\"3\") None"
            ]
        );
    }

    #[test]
    fn variables_are_compared_without_their_values() {
        let config = |env: &[(&str, &str)]| -> PodConfig {
            serde_json::from_value(serde_json::json!({
                "run": "r", "peer_timeout": 1, "bundle": null,
                "roles": [{"name": "main", "tasks": [], "env": env.iter().copied().collect::<BTreeMap<_, _>>()}],
            }))
            .unwrap()
        };
        let one = config(&[("A", "secret1"), ("B", "x"), ("C", "y")]);
        let other = config(&[("A", "secret2"), ("B", "x"), ("D", "z")]);
        let found = environment(&one, &other);
        let text = serde_json::to_string(&found).unwrap();
        assert!(!text.contains("secret"), "{text}");
        let found: Vec<String> = found
            .iter()
            .map(|one| format!("{} {}", one.name, one.change))
            .collect();
        assert_eq!(found, ["A changed", "C removed", "D added"]);
    }
}
