//! Rules: the operations and resources for which a webhook is called.

use longshore_builtin::json;
use serde_json::{Map, Value};

use super::attributes::{Operation, Resource};

/// A rule of a webhook. `*` matches everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Pairs of a resource and a subresource, which is empty for the resource itself.
    resources: Vec<(String, String)>,
    scope: String,
}

fn has(list: &[String], word: &str) -> bool {
    list.iter().any(|one| one == "*" || one == word)
}

impl Rule {
    pub(super) fn read(rule: &Map<String, Value>) -> Self {
        let words = |field: &str| -> Vec<String> {
            let list = rule.get(field).and_then(Value::as_array);
            let words = list.into_iter().flatten().filter_map(Value::as_str);
            words.map(str::to_owned).collect()
        };
        let resources = words("resources");
        let resources = resources.iter().map(|resource| {
            let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
            (resource.to_owned(), part.to_owned())
        });
        Self {
            operations: words("operations"),
            groups: words("apiGroups"),
            versions: words("apiVersions"),
            resources: resources.collect(),
            scope: json::text(rule, "scope").to_owned(),
        }
    }

    /// Returns true if the rule matches an operation on a resource.
    pub(super) fn matches(
        &self,
        operation: Operation,
        resource: &Resource,
        subresource: &str,
        namespace: &str,
    ) -> bool {
        self.is_in_scope(resource, namespace) && self.covers(operation, resource, subresource)
    }

    /// Like [`Rule::matches`], in any namespace.
    pub(super) fn covers(
        &self,
        operation: Operation,
        resource: &Resource,
        subresource: &str,
    ) -> bool {
        has(&self.operations, operation.as_str())
            && has(&self.groups, &resource.group)
            && has(&self.versions, &resource.version)
            && self.resources.iter().any(|(name, part)| {
                (name == "*" || *name == resource.plural) && (part == "*" || part == subresource)
            })
    }

    fn is_in_scope(&self, resource: &Resource, namespace: &str) -> bool {
        // Namespaces are cluster-scoped, although their requests have a namespace: the object's
        // name.
        let is_cluster_scoped = resource.is_namespaces() || namespace.is_empty();
        match self.scope.as_str() {
            "" | "*" => true,
            "Namespaced" => !is_cluster_scoped,
            "Cluster" => is_cluster_scoped,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::kind::builtin;
    use serde_json::json;

    use super::*;

    fn rule(resources: &[&str], scope: &str) -> Rule {
        let rule = json!({
            "operations": ["CREATE", "CONNECT"], "apiGroups": [""], "apiVersions": ["*"],
            "resources": resources, "scope": scope,
        });
        Rule::read(rule.as_object().unwrap())
    }

    #[test]
    fn resources_and_subresources() {
        let pods = Resource::of(builtin("", "Pod").unwrap());
        for (resources, subresource, expected) in [
            (&["pods"][..], "", true),
            (&["pods"], "exec", false),
            (&["pods/exec"], "exec", true),
            (&["pods/exec"], "", false),
            (&["pods/*"], "exec", true),
            // As in Kubernetes, an asterisk also matches requests without a subresource.
            (&["pods/*"], "", true),
            (&["*"], "", true),
            (&["*"], "exec", false),
            (&["*/*"], "exec", true),
            (&["*/*"], "", true),
            (&["*/exec"], "exec", true),
            (&["services", "pods"], "", true),
            (&["services"], "", false),
            (&[], "", false),
        ] {
            let rule = rule(resources, "*");
            let matched = rule.matches(Operation::Create, &pods, subresource, "default");
            assert_eq!(matched, expected, "{resources:?} {subresource}");
        }
        let rule = rule(&["pods"], "*");
        assert!(!rule.matches(Operation::Update, &pods, "", "default"));
        let jobs = Resource::of(builtin("batch", "Job").unwrap());
        assert!(!rule.matches(Operation::Create, &jobs, "", "default"));
    }

    #[test]
    fn scopes() {
        let of = |kind| Resource::of(builtin("", kind).unwrap());
        for (kind, namespace, cluster) in [
            ("Pod", "default", false),
            ("Node", "", true),
            ("Namespace", "a", true),
            ("Namespace", "", true),
        ] {
            for (scope, expected) in [
                ("*", true),
                ("Cluster", cluster),
                ("Namespaced", !cluster),
                ("Other", false),
            ] {
                let rule = rule(&["*"], scope);
                let matched = rule.matches(Operation::Create, &of(kind), "", namespace);
                assert_eq!(matched, expected, "{kind} {scope}");
            }
        }
    }
}
