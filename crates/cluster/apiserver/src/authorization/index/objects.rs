//! The fields of roles and bindings that decide about permissions.

use serde::Deserialize;
use serde_json::Value;

use super::Stored;
use crate::{
    authorization::{
        GROUP,
        rule::{Rule, list},
    },
    user::User,
};

/// A Role or a ClusterRole.
#[derive(Debug)]
pub(super) struct Role {
    pub(super) revision: u64,
    pub(super) rules: Vec<Rule>,
}

/// The fields of a role that matter for permissions.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RoleFacts {
    #[serde(deserialize_with = "list")]
    pub(crate) rules: Vec<Rule>,
    aggregation_rule: Option<AggregationRule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AggregationRule {
    #[serde(deserialize_with = "list")]
    cluster_role_selectors: Vec<Value>,
}

impl RoleFacts {
    /// Returns true if the role aggregates the rules of other roles.
    pub(crate) fn has_aggregation_rule(&self) -> bool {
        let rule = self.aggregation_rule.as_ref();
        rule.is_some_and(|rule| !rule.cluster_role_selectors.is_empty())
    }
}

/// Reads the relevant fields of a role in a request.
pub(crate) fn role_of(object: &Value) -> Result<RoleFacts, serde_json::Error> {
    RoleFacts::deserialize(object)
}

/// Reads the relevant fields of a binding in a request.
pub(crate) fn binding_of(object: &Value) -> Result<RoleRef, serde_json::Error> {
    RoleRef::deserialize(&object["roleRef"])
}

impl Role {
    pub(super) fn parse(revision: u64, json: &[u8]) -> Self {
        let facts = serde_json::from_slice(json);
        let facts: RoleFacts = facts.unwrap_or_else(|error| {
            tracing::error!(%error, "a stored role cannot be read and grants nothing");
            RoleFacts::default()
        });
        Self {
            revision,
            rules: facts.rules,
        }
    }
}

/// A RoleBinding or a ClusterRoleBinding.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) revision: u64,
    /// Empty for a ClusterRoleBinding.
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
    pub(super) role: RoleRef,
    pub(super) subjects: Vec<Subject>,
}

/// The role that a binding refers to.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct RoleRef {
    pub(crate) kind: String,
    pub(crate) name: String,
}

impl RoleRef {
    /// The error that the role does not exist, in the words of Kubernetes' authorizer.
    pub(super) fn not_found(&self) -> String {
        let kind = self.kind.to_ascii_lowercase();
        format!("{kind}.{GROUP} {:?} not found", self.name)
    }
}

/// A subject of a binding.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BindingFacts {
    role_ref: RoleRef,
    #[serde(deserialize_with = "list")]
    subjects: Vec<Subject>,
}

impl Binding {
    pub(super) fn parse(stored: &Stored<'_>) -> Self {
        let facts = serde_json::from_slice(stored.json);
        let facts: BindingFacts = facts.unwrap_or_else(|error| {
            tracing::error!(%error, "a stored role binding cannot be read and grants nothing");
            BindingFacts::default()
        });
        Self {
            revision: stored.revision,
            namespace: stored.namespace.into(),
            name: stored.name.into(),
            role: facts.role_ref,
            subjects: facts.subjects,
        }
    }

    /// Describes the binding and its first subject that applies to a user.
    pub(super) fn describe(&self, user: &User) -> String {
        let (kind, name) = match &*self.namespace {
            "" => ("ClusterRoleBinding", self.name.to_string()),
            namespace => ("RoleBinding", format!("{}/{namespace}", self.name)),
        };
        let mut subjects = self.subjects.iter();
        let subject = subjects.find(|subject| match subject.user_or_group(&self.namespace) {
            Some((true, group)) => user.groups.contains(&group),
            Some((false, name)) => user.name == name,
            None => false,
        });
        let subject = subject.map(|subject| subject.describe(&self.namespace));
        let RoleRef {
            kind: role_kind,
            name: role,
        } = &self.role;
        format!(
            "{kind} {name:?} of {role_kind} {role:?} to {}",
            subject.unwrap_or_default()
        )
    }
}

impl Subject {
    /// The namespace of a service account. It defaults to the namespace of the binding.
    fn namespace<'a>(&'a self, of_binding: &'a str) -> &'a str {
        match self.namespace.as_str() {
            "" => of_binding,
            namespace => namespace,
        }
    }

    /// The name of the user or group, and true for a group.
    pub(super) fn user_or_group(&self, of_binding: &str) -> Option<(bool, String)> {
        match self.kind.as_str() {
            "User" => Some((false, self.name.clone())),
            "Group" => Some((true, self.name.clone())),
            "ServiceAccount" => match self.namespace(of_binding) {
                "" => None,
                namespace => Some((
                    false,
                    format!("system:serviceaccount:{namespace}:{}", self.name),
                )),
            },
            _ => None,
        }
    }

    fn describe(&self, of_binding: &str) -> String {
        let (kind, name) = (&self.kind, &self.name);
        match kind.as_str() {
            "ServiceAccount" => {
                let name = format!("{name}/{}", self.namespace(of_binding));
                format!("{kind} {name:?}")
            }
            _ => format!("{kind} {name:?}"),
        }
    }
}
