//! The default roles and bindings as objects.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::{
    bindings::{CLUSTER, DefaultSubject, NAMESPACED, ROLES},
    controller_roles, system_roles,
    table::DefaultRole,
    user_roles,
};
use crate::authorization::{GROUP, rule::Rule};

/// The annotation that lets the server keep an object up to date.
pub(super) const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";
const AGGREGATE: &str = "rbac.authorization.k8s.io/aggregate-to-";
/// The start of the names of controllers' roles.
const CONTROLLER: &str = "system:controller:";

/// A default object.
#[derive(Debug)]
pub(super) struct DefaultObject {
    pub(super) plural: &'static str,
    pub(super) namespace: Option<&'static str>,
    pub(super) name: String,
    pub(super) object: Value,
}

/// All default objects; roles come before their bindings. Made once per process, because tests
/// start many servers.
pub(super) fn all() -> &'static [DefaultObject] {
    static ALL: LazyLock<Vec<DefaultObject>> = LazyLock::new(render);
    &ALL
}

fn render() -> Vec<DefaultObject> {
    let mut objects = Vec::new();
    for role in cluster_roles() {
        objects.push(DefaultObject {
            plural: "clusterroles",
            namespace: None,
            name: role.name.to_owned(),
            object: cluster_role(role),
        });
    }
    let binding = |name: &str, subjects: Vec<Value>| DefaultObject {
        plural: "clusterrolebindings",
        namespace: None,
        name: name.to_owned(),
        object: self::binding(metadata(name, None), ("ClusterRole", name), subjects),
    };
    for (name, subjects) in CLUSTER {
        objects.push(binding(
            name,
            subjects.iter().map(DefaultSubject::json).collect(),
        ));
    }
    for role in controller_roles::ROLES {
        let account = role.name.strip_prefix(CONTROLLER).unwrap_or(role.name);
        objects.push(binding(role.name, vec![DefaultSubject::account(account)]));
    }
    for (namespace, role) in ROLES {
        objects.push(DefaultObject {
            plural: "roles",
            namespace: Some(namespace),
            name: role.name.to_owned(),
            object: json!({"metadata": metadata(role.name, None), "rules": rules(role)}),
        });
    }
    for (namespace, name, role, subjects) in NAMESPACED {
        let subjects = subjects.iter().map(DefaultSubject::json).collect();
        objects.push(DefaultObject {
            plural: "rolebindings",
            namespace: Some(namespace),
            name: (*name).to_owned(),
            object: self::binding(metadata(name, None), ("Role", role), subjects),
        });
    }
    objects
}

fn cluster_roles() -> impl Iterator<Item = &'static DefaultRole> + Clone {
    let users = user_roles::ROLES.iter();
    users
        .chain(system_roles::ROLES)
        .chain(controller_roles::ROLES)
}

fn rules(role: &DefaultRole) -> Vec<Rule> {
    role.rules.iter().map(|rule| rule.rule()).collect()
}

fn metadata(name: &str, added_to: Option<&str>) -> Value {
    let mut labels = Map::new();
    labels.insert(BOOTSTRAPPING.to_owned(), "rbac-defaults".into());
    if let Some(role) = added_to {
        labels.insert(format!("{AGGREGATE}{role}"), "true".into());
    }
    json!({"name": name, "annotations": {AUTO_UPDATE: "true"}, "labels": labels})
}

/// A ClusterRole. An aggregated role already has the rules that the controller would aggregate.
fn cluster_role(role: &DefaultRole) -> Value {
    let metadata = metadata(role.name, role.added_to);
    let Some(selected) = role.gathers else {
        return json!({"metadata": metadata, "rules": rules(role)});
    };
    let label = format!("{AGGREGATE}{selected}");
    json!({
        "metadata": metadata,
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]},
        "rules": gathered(selected),
    })
}

/// The rules of the roles that are added to an aggregated role, in the order of their names,
/// without repetitions.
fn gathered(to: &str) -> Vec<Rule> {
    let mut added: Vec<&DefaultRole> = cluster_roles()
        .filter(|role| role.added_to == Some(to))
        .collect();
    added.sort_unstable_by_key(|role| role.name);
    let mut all: Vec<Rule> = Vec::new();
    for role in added {
        let rules = match role.gathers {
            Some(inner) => gathered(inner),
            None => rules(role),
        };
        for rule in rules {
            if !all.contains(&rule) {
                all.push(rule);
            }
        }
    }
    all
}

fn binding(metadata: Value, (kind, role): (&str, &str), subjects: Vec<Value>) -> Value {
    let mut binding = json!({
        "metadata": metadata,
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
    });
    if !subjects.is_empty() {
        binding["subjects"] = subjects.into();
    }
    binding
}

impl DefaultSubject {
    fn json(&self) -> Value {
        match self {
            Self::User(name) => json!({"apiGroup": GROUP, "kind": "User", "name": name}),
            Self::Group(name) => json!({"apiGroup": GROUP, "kind": "Group", "name": name}),
            Self::Account(name) => Self::account(name),
        }
    }

    fn account(name: &str) -> Value {
        json!({"kind": "ServiceAccount", "name": name, "namespace": "kube-system"})
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_binding_has_its_role() {
        let objects = all();
        let names: BTreeSet<_> = objects
            .iter()
            .map(|one| (one.plural, one.namespace, one.name.as_str()))
            .collect();
        assert_eq!(names.len(), objects.len());
        let mut bindings = 0;
        for one in objects {
            let role = &one.object["roleRef"];
            if role.is_null() {
                continue;
            }
            bindings += 1;
            let plural = if role["kind"] == "Role" {
                "roles"
            } else {
                "clusterroles"
            };
            let name = role["name"].as_str().unwrap_or_default();
            assert!(names.contains(&(plural, one.namespace, name)), "{one:?}");
        }
        assert_eq!((objects.len(), bindings), (141, 61));
    }

    #[test]
    fn aggregated_roles_have_their_rules() {
        let verbs = |to: &str, resource: &str| {
            let rules = gathered(to);
            let rules = rules.iter().filter(|rule| {
                rule.api_groups.iter().any(String::is_empty)
                    && rule.resources.iter().any(|one| one == resource)
            });
            let verbs = rules.flat_map(|rule| rule.verbs.clone());
            verbs.collect::<BTreeSet<_>>()
        };
        let view: BTreeSet<_> = ["get", "list", "watch"].map(str::to_owned).into();
        assert_eq!(verbs("view", "pods"), view);
        assert!(verbs("view", "secrets").is_empty());
        assert!(verbs("edit", "secrets").contains("delete"));
        assert!(verbs("admin", "pods").is_superset(&verbs("edit", "pods")));
        let admin = gathered("admin");
        let grants = |rule: &Rule| rule.resources.iter().any(|one| one == "rolebindings");
        assert!(admin.iter().any(grants) && !gathered("edit").iter().any(grants));
    }
}
