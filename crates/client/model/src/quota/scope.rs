//! The scopes of quotas: properties of the objects that a quota counts.

use serde::Deserialize;

use super::pod::Pod;
use crate::meta::null_as_default;

/// A scope of a quota, with the requirement for its values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Scope {
    scope_name: String,
    operator: String,
    #[serde(deserialize_with = "null_as_default")]
    values: Vec<String>,
}

impl Scope {
    /// A scope without a requirement for its values.
    #[must_use]
    pub fn exists(name: String) -> Self {
        Self {
            scope_name: name,
            operator: "Exists".to_owned(),
            values: Vec::new(),
        }
    }

    /// Returns true if the requirement applies to values; none means that the object has none.
    fn allows(&self, values: &[&str]) -> bool {
        let mut listed = values.iter();
        let is_listed = listed.any(|value| self.values.iter().any(|own| own == value));
        match &*self.operator {
            "In" => is_listed,
            "NotIn" => !is_listed,
            "Exists" => !values.is_empty(),
            "DoesNotExist" => values.is_empty(),
            _ => false,
        }
    }

    /// Returns true if a pod is in the scope.
    pub(super) fn has_pod(&self, pod: &Pod) -> bool {
        match &*self.scope_name {
            "Terminating" => pod.has_deadline(),
            "NotTerminating" => !pod.has_deadline(),
            "BestEffort" => pod.is_best_effort(),
            "NotBestEffort" => !pod.is_best_effort(),
            "PriorityClass" => {
                let class = pod.priority_class();
                let values: &[&str] = match class {
                    "" => &[],
                    _ => &[class],
                };
                self.allows(values)
            }
            "CrossNamespacePodAffinity" => pod.has_cross_namespace_affinity(),
            _ => false,
        }
    }

    /// Returns true if a claim with these VolumeAttributesClasses is in the scope.
    pub(super) fn has_claim(&self, classes: &[&str]) -> bool {
        self.scope_name == "VolumeAttributesClass" && self.allows(classes)
    }
}
