//! A pod or the template of pods, as the standards see it.

use serde_json::Value;

use crate::json::{self, Object};

/// A pod or the template of pods.
#[derive(Debug, Clone, Copy)]
pub struct Template<'a> {
    annotations: Option<&'a Object>,
    spec: &'a Value,
}

/// The names of a list of containers.
pub(super) struct Found<'a> {
    pub(super) names: Vec<&'a str>,
}

impl<'a> Template<'a> {
    /// Returns the pod, or the pod template of the object; `None` if the kind has no pods.
    #[must_use]
    pub fn of(kind: &str, object: &'a Object) -> Option<Self> {
        let template = match kind {
            "Pod" => object,
            "PodTemplate" => object.get("template")?.as_object()?,
            "ReplicationController"
            | "ReplicaSet"
            | "Deployment"
            | "DaemonSet"
            | "StatefulSet"
            | "Job" => json::at(object, "spec.template")?.as_object()?,
            "CronJob" => json::at(object, "spec.jobTemplate.spec.template")?.as_object()?,
            _ => return None,
        };
        let annotations = json::at(template, "metadata.annotations");
        Some(Self {
            annotations: annotations.and_then(Value::as_object),
            spec: template.get("spec")?,
        })
    }

    pub(super) fn spec(&self) -> &'a Value {
        self.spec
    }

    pub(super) fn annotations(&self) -> impl Iterator<Item = (&'a String, &'a str)> {
        let annotations = self.annotations.into_iter().flatten();
        annotations.filter_map(|(key, value)| Some((key, value.as_str()?)))
    }

    /// All containers, in the order of Kubernetes' messages.
    pub(super) fn containers(&self) -> impl Iterator<Item = &'a Value> {
        let spec = self.spec;
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        lists
            .into_iter()
            .flat_map(move |list| spec[list].as_array().into_iter().flatten())
    }

    /// The containers for which a condition holds.
    pub(super) fn containers_where(&self, mut condition: impl FnMut(&Value) -> bool) -> Found<'a> {
        let containers = self.containers().filter(|container| condition(container));
        let names = containers.map(|container| container["name"].as_str().unwrap_or_default());
        Found {
            names: names.collect(),
        }
    }

    /// Names the pod and the containers whose `securityContext` satisfies a condition, for example
    /// `pod and container "a"`.
    pub(super) fn setters(&self, mut condition: impl FnMut(&Value) -> bool) -> Vec<String> {
        let mut setters = Vec::new();
        if condition(&self.spec["securityContext"]) {
            setters.push("pod".to_owned());
        }
        let found = self.containers_where(|container| condition(&container["securityContext"]));
        if !found.names.is_empty() {
            setters.push(found.to_string());
        }
        setters
    }

    /// Returns true if the pod runs in a separate user namespace.
    pub(super) fn has_user_namespace(&self) -> bool {
        self.spec["hostUsers"] == false
    }

    pub(super) fn is_windows(&self) -> bool {
        self.spec["os"]["name"] == "windows"
    }
}

/// For example `container "a"` or `containers "a", "b"`.
impl std::fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = plural("container", self.names.len());
        write!(f, "{word} {}", quoted(self.names.iter().copied()))
    }
}

/// Returns the word, with an `s` unless `count` is 1.
pub(super) fn plural(word: &str, count: usize) -> String {
    match count {
        1 => word.to_owned(),
        _ => format!("{word}s"),
    }
}

/// Returns the quoted items, separated by commas: `"a", "b"`.
pub(super) fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items = items.into_iter().map(|item| format!("\"{item}\""));
    items.collect::<Vec<_>>().join(", ")
}
