//! Users can grant only permissions that they have. A user who writes a role must have its
//! permissions or the verb `escalate`; a user who writes a binding must have the permissions of the
//! bound role or the verb `bind`.

use std::sync::Arc;

use longshore_model::KindInfo;
use serde_json::Value;

use super::{
    Attributes, GROUP, Index, Rule,
    attributes::forbidden,
    index::{RoleRef, binding_of, role_of},
    rule::{describe_missing, missing, quoted},
};
use crate::{status_error::StatusError, user::User};

/// Checks the change of a role or a binding by a user, against the current roles and bindings.
pub(crate) struct EscalationCheck<'a> {
    pub(crate) index: Arc<Index>,
    pub(crate) user: &'a User,
    pub(crate) kind: &'a KindInfo,
    /// Empty for cluster-scoped kinds.
    pub(crate) namespace: &'a str,
    /// The name in the path; empty for a create.
    pub(crate) name: &'a str,
}

impl EscalationCheck<'_> {
    /// Returns true if objects of a kind grant permissions.
    pub(crate) fn concerns(kind: &KindInfo) -> bool {
        &*kind.gvk.group == GROUP
    }

    /// Checks the new state of the object. `before` is the state that it replaces.
    pub(crate) fn check(&self, before: Option<&Value>, after: &Value) -> Result<(), StatusError> {
        if before.is_some_and(|before| differ_only_for_garbage_collection(before, after)) {
            return Ok(());
        }
        match &*self.kind.plural {
            "roles" | "clusterroles" => self.check_role(before, after),
            "rolebindings" | "clusterrolebindings" => self.check_binding(after),
            _ => Ok(()),
        }
    }

    fn check_role(&self, before: Option<&Value>, after: &Value) -> Result<(), StatusError> {
        if self.may("escalate", &self.kind.plural, self.name) {
            return Ok(());
        }
        let facts = role_of(after).map_err(|error| self.unreadable(&error))?;
        let name = after["metadata"]["name"].as_str().unwrap_or_default();
        self.check_rules(&facts.rules)
            .map_err(|why| forbidden(GROUP, &self.kind.plural, name, &why))?;
        let before = before.and_then(|before| role_of(before).ok());
        let gathers = facts.has_aggregation_rule()
            || before.is_some_and(|before| before.has_aggregation_rule());
        if &*self.kind.plural == "clusterroles"
            && gathers
            && self.check_rules(&full_authority()).is_err()
        {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(forbidden(GROUP, &self.kind.plural, name, why));
        }
        Ok(())
    }

    fn check_binding(&self, after: &Value) -> Result<(), StatusError> {
        let role = binding_of(after).map_err(|error| self.unreadable(&error))?;
        let plural = match role.kind.as_str() {
            "ClusterRole" => "clusterroles",
            "Role" => "roles",
            // Validation refuses the binding.
            _ => return Ok(()),
        };
        if self.may("bind", plural, &role.name) {
            return Ok(());
        }
        let Some(rules) = self.index.rules_of(&role, self.namespace) else {
            return Err(not_found(plural, &role));
        };
        let name = after["metadata"]["name"].as_str().unwrap_or_default();
        self.check_rules(rules)
            .map_err(|why| forbidden(GROUP, &self.kind.plural, name, &why))
    }

    fn may(&self, verb: &str, resource: &str, name: &str) -> bool {
        let request = Attributes {
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            resource: resource.to_owned(),
            namespace: self.namespace.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        };
        self.index.decide(self.user, &request).allowed
    }

    /// Checks that the user has all permissions of `rules`.
    fn check_rules(&self, rules: &[Rule]) -> Result<(), String> {
        let (own, errors) = self.index.rules_for(self.user, self.namespace);
        let missing = missing(&own, rules.iter())?;
        if missing.is_empty() {
            return Ok(());
        }
        let mut why = format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            self.user.name,
            quoted(&self.user.groups),
            describe_missing(&missing),
        );
        if !errors.is_empty() {
            let errors = super::joined(&errors).unwrap_or_default();
            why.push_str(&format!("; resolution errors: [{errors}]"));
        }
        Err(why)
    }

    fn unreadable(&self, error: &serde_json::Error) -> StatusError {
        let kind = &self.kind.gvk.kind;
        StatusError::bad_request(format!("{kind} in the request cannot be read: {error}"))
    }
}

fn not_found(plural: &str, role: &RoleRef) -> StatusError {
    longshore_engine::Error::NotFound(longshore_engine::Subject {
        group: GROUP.into(),
        resource: plural.into(),
        kind: role.kind.as_str().into(),
        name: role.name.as_str().into(),
    })
    .into()
}

/// The permissions of cluster-admin.
fn full_authority() -> [Rule; 2] {
    let all = || vec!["*".to_owned()];
    [
        Rule {
            verbs: all(),
            api_groups: all(),
            resources: all(),
            ..Rule::default()
        },
        Rule {
            verbs: all(),
            non_resource_urls: all(),
            ..Rule::default()
        },
    ]
}

/// Returns true if only fields differ that the garbage collector changes.
fn differ_only_for_garbage_collection(before: &Value, after: &Value) -> bool {
    let without = |object: &Value| {
        let mut object = object.clone();
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            for field in ["ownerReferences", "finalizers", "managedFields"] {
                metadata.remove(field);
            }
        }
        object
    };
    without(before) == without(after)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_garbage_collector_changes_only_its_fields() {
        let role = |finalizers: &[&str], verb: &str| {
            json!({"metadata": {"name": "r", "finalizers": finalizers},
                   "rules": [{"verbs": [verb]}]})
        };
        let before = role(&["a"], "get");
        assert!(differ_only_for_garbage_collection(
            &before,
            &role(&[], "get")
        ));
        assert!(!differ_only_for_garbage_collection(
            &before,
            &role(&["a"], "list")
        ));
    }
}
